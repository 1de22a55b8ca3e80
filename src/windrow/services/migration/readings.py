"""Which tables of an origin are read, and how."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from windrow.errors import MigrationFailed
from windrow.services.migration import archon, legacy, nuq, tables
from windrow.services.migration.archon import JsonOrigin
from windrow.services.migration.arriving import Reading
from windrow.services.migration.origins import Origin, Table, open_database

_DATABASES: Final = ("sqlite", "postgresql", "postgres")
_PLACES: Final = "the path of a SQLite file or of a .json, sqlite:///… or postgresql://…"
_READINGS: Final = {
    reading.name: reading
    for reading in [*legacy.READINGS, *tables.READINGS, *nuq.READINGS, *archon.READINGS]
}


async def open_origin(place: str) -> Origin:
    """A file of SQLite or JSON, by path or URL, or a Postgres database. Raises MigrationFailed."""
    if place.endswith(".json"):
        return await asyncio.to_thread(lambda: JsonOrigin(Path(place).expanduser()))
    scheme, is_url, _ = place.partition("://")
    if is_url and scheme not in _DATABASES:
        raise MigrationFailed(f"nothing can be moved from {scheme}://…: --from takes {_PLACES}")
    return await open_database(place)


def choose(found: Iterable[Table]) -> list[tuple[Table, Reading]]:
    """The tables that are read, in the order of the list."""
    return [(table, reading) for table in found if (reading := _reading_of(table.name)) is not None]


def _reading_of(name: str) -> Reading | None:
    return _READINGS.get(name) or tables.reading_of(name)
