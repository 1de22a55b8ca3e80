"""Which tables of an origin are read, and how."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

from windrow.errors import MigrationFailed
from windrow.services.migration import (
    archon,
    celery,
    legacy,
    nuq,
    pgmq,
    procrastinate,
    rq,
    tables,
)
from windrow.services.migration.archon import JsonOrigin
from windrow.services.migration.arriving import Reading
from windrow.services.migration.origins import Origin, Table, open_database
from windrow.services.migration.redis_origin import RedisOrigin

System = Literal["legacy", "celery", "rq", "procrastinate"]

_DATABASES: Final = ("sqlite", "postgresql", "postgres")
_PLACES: Final = "the path of a SQLite file or of a .json, sqlite:///…, postgresql://… or redis://…"
_LEGACY: Final = {
    reading.name: reading
    for reading in [*legacy.READINGS, *tables.READINGS, *nuq.READINGS, *archon.READINGS]
}
_PROCRASTINATE: Final = {reading.name: reading for reading in procrastinate.READINGS}
_READERS: Final[Mapping[System, Callable[[str], Reading | None]]] = {
    "legacy": lambda name: _LEGACY.get(name) or pgmq.reading_of(name),
    "celery": celery.reading_of,
    "rq": rq.reading_of,
    "procrastinate": _PROCRASTINATE.get,
}


async def open_origin(place: str) -> Origin:
    """A file of SQLite or JSON, by path or URL, a Postgres database or a Redis. Raises
    MigrationFailed."""
    if place.endswith(".json"):
        return await asyncio.to_thread(lambda: JsonOrigin(Path(place).expanduser()))
    if place.startswith(("redis://", "rediss://", "unix://")):
        return await RedisOrigin.open(place)
    scheme, is_url, _ = place.partition("://")
    if is_url and scheme not in _DATABASES:
        raise MigrationFailed(f"nothing can be moved from {scheme}://…: --from takes {_PLACES}")
    return await open_database(place)


def choose(found: Iterable[Table], system: System) -> list[tuple[Table, Reading]]:
    """The tables of a system that are read, in the order of the list."""
    reading_of = _READERS[system]
    return [(table, reading) for table in found if (reading := reading_of(table.name)) is not None]
