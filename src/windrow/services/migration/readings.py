"""Which tables of an origin are read, and how."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from windrow.services.migration import archon, legacy, nuq, pgmq, tables
from windrow.services.migration.archon import JsonOrigin
from windrow.services.migration.arriving import Reading
from windrow.services.migration.origins import Origin, Table, open_database

_BY_NAME: Final = {
    reading.name: reading
    for reading in [*legacy.READINGS, *tables.READINGS, *nuq.READINGS, *archon.READINGS]
}


async def open_origin(place: str) -> Origin:
    """A file of SQLite or JSON, by path or URL, or a Postgres database. Raises MigrationFailed."""
    if place.endswith(".json"):
        return await asyncio.to_thread(lambda: JsonOrigin(Path(place).expanduser()))
    return await open_database(place)


def choose(found: Iterable[Table]) -> list[tuple[Table, Reading]]:
    """The tables that are read, in the order of the list."""
    chosen = []
    for table in found:
        reading = _BY_NAME.get(table.name) or pgmq.reading_of(table.name)
        if reading is not None:
            chosen.append((table, reading))
    return chosen
