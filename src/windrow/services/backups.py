"""Copies of a database in a file, made while workers run, and the way back from one."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Final

from windrow.db.sqlite.location import Location, parse_url
from windrow.errors import ConfigError, StoreError
from windrow.queue.sqlite.backups import Backup, back_up, restore
from windrow.services.indexing import index_folder, owning
from windrow.settings import Settings

_ELSEWHERE: Final = {
    "backup": "a Postgres is backed up by its own tools: pg_dump, or a base backup and the log; "
    "see docs/operations/backups.md",
    "restore": "a Postgres is restored by its own tools: pg_restore, or a base backup and the log; "
    "see docs/operations/backups.md",
}


async def back_up_database(settings: Settings, target: Path) -> Backup:
    """Copy the database as it is now. Workers and producers go on meanwhile."""
    return await asyncio.to_thread(back_up, _location(settings, "backup"), target)


async def restore_database(settings: Settings, source: Path) -> Backup:
    """Make the database anew from a copy.

    An index beside it is of later documents, so it goes: it is built again from those that came
    back.
    """
    location = _location(settings, "restore")
    folder = index_folder(settings)
    with owning(folder) as is_ours:
        if not is_ours:
            raise StoreError(
                f"a worker or a server is at work on {location.path}: stop it first (the one that "
                f"owns its index is named in {folder / 'owner.lock'})"
            )
        restored = await asyncio.to_thread(restore, source, location)
        await asyncio.to_thread(shutil.rmtree, folder / "spaces", ignore_errors=True)
        return restored


def _location(settings: Settings, what: str) -> Location:
    scheme = settings.database_url.partition(":")[0]
    if scheme in ("postgresql", "postgres"):
        raise ConfigError(_ELSEWHERE[what])
    if scheme != "sqlite":
        raise ConfigError(f"this is for SQLite, not for {scheme}: it has tools of its own")
    return parse_url(settings.database_url)
