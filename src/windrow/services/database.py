"""A database's tables and the dialects over them: install, bring up to date, describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from windrow.errors import SchemaOutdated, SchemaTooNew, SchemaTooOld
from windrow.queue.copying import CopyStore
from windrow.queue.dialects.loading import DialectInfo
from windrow.queue.opening import open_store
from windrow.queue.records import QueueInfo
from windrow.queue.store import Store
from windrow.redaction import redact_url


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
