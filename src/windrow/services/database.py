"""A database's tables and the dialects over them: install, bring up to date, describe; and copies
of a SQLite in a file, made while workers run, and the way back from one."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from windrow.db.sqlite.location import Location, parse_url
from windrow.errors import ConfigError, SchemaOutdated, SchemaTooNew, SchemaTooOld, StoreError
from windrow.queue.copying import CopyStore
from windrow.queue.dialects.loading import DialectInfo
from windrow.queue.opening import open_store
from windrow.queue.records import QueueInfo
from windrow.queue.sqlite.backups import Backup, back_up, restore
from windrow.queue.store import Store
from windrow.redaction import redact_url
from windrow.services.indexing import index_folder, owning
from windrow.settings import Settings

_ELSEWHERE: Final = {
    "backup": "a Postgres is backed up by its own tools: pg_dump, or a base backup and the log; "
    "see docs/operations/backups.md",
    "restore": "a Postgres is restored by its own tools: pg_restore, or a base backup and the log; "
    "see docs/operations/backups.md",
}


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    url: str
    version: int
    problem: str | None  # what is wrong and what to do, if anything
    queues: tuple[QueueInfo, ...]
    leaving_for: tuple[str, ...] = ()  # where an unfinished copy was moving jobs that wait here
    polls_because: str | None = None  # why nothing is heard of what other processes do


async def migrate_database(url: str) -> list[str]:
    """Apply what is missing; the names of the migrations applied."""
    store = await open_store(url)
    try:
        applied = await store.migrate()
        await store.check_schema()
        return applied
    finally:
        await store.close()


async def database_status(
    url: str, direct_url: str | None = None, notifier: str | None = None
) -> DatabaseStatus:
    """Schema version, whether it fits this Windrow, the queues, and whether wake-ups arrive."""
    store = await open_store(url, direct_url=direct_url, notifier=notifier)
    try:
        version = await store.schema_version()
        try:
            await store.check_schema()
        except (SchemaOutdated, SchemaTooNew, SchemaTooOld) as problem:
            return DatabaseStatus(redact_url(url), version, str(problem), ())
        queues = tuple(await store.list_queues())
        return DatabaseStatus(
            redact_url(url),
            version,
            None,
            queues,
            leaving_for=await _leaving_for(store),
            polls_because=await store.check_wake_ups(),
        )
    finally:
        await store.close()


async def install_dialect(url: str, name: str) -> bool:
    """Install a dialect or bring it up to date; whether it is new."""
    store = await open_store(url)
    try:
        return await store.install_dialect(name)
    finally:
        await store.close()


async def remove_dialect(url: str, name: str) -> bool:
    """Take a dialect away; whether it was there."""
    store = await open_store(url)
    try:
        return await store.remove_dialect(name)
    finally:
        await store.close()


async def list_dialects(url: str) -> list[DialectInfo]:
    """The dialects there are for a database, and which of them are installed."""
    store = await open_store(url)
    try:
        return await store.list_dialects()
    finally:
        await store.close()


async def _leaving_for(store: Store) -> tuple[str, ...]:
    """The databases that jobs in the outbox are copied to."""
    if not store.capabilities.transfers:
        return ()
    return tuple(sorted(set((await cast(CopyStore, store).list_parcels()).values())))


async def back_up_database(settings: Settings, target: Path) -> Backup:
    """Copy the database as it is now. Workers and producers go on meanwhile."""
    return await asyncio.to_thread(back_up, _sqlite_location(settings, "backup"), target)


async def restore_database(settings: Settings, source: Path) -> Backup:
    """Make the database anew from a copy.

    An index beside it is of later documents, so it goes: it is built again from those that came
    back.
    """
    location = _sqlite_location(settings, "restore")
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


def _sqlite_location(settings: Settings, what: str) -> Location:
    scheme = settings.database_url.partition(":")[0]
    if scheme in ("postgresql", "postgres"):
        raise ConfigError(_ELSEWHERE[what])
    if scheme != "sqlite":
        raise ConfigError(f"this is for SQLite, not for {scheme}: it has tools of its own")
    return parse_url(settings.database_url)
