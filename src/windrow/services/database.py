"""The database's tables: bringing them up to date and saying how they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from windrow.errors import SchemaOutdated, SchemaTooNew
from windrow.queue.copying import CopyStore
from windrow.queue.records import QueueInfo
from windrow.queue.store import open_store

_SECRET: Final = re.compile(r"((?:^|&)(?:ssl)?password=)[^&]*", re.IGNORECASE)
_ROWS: Final = re.compile(r"((?:^|&)rows=)([^&]*)")


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
        except (SchemaOutdated, SchemaTooNew) as problem:
            return DatabaseStatus(without_password(url), version, str(problem), ())
        queues = tuple(await store.list_queues())
        targets = set((await cast(CopyStore, store).list_parcels()).values())
        return DatabaseStatus(
            without_password(url),
            version,
            None,
            queues,
            leaving_for=tuple(sorted(targets)),
            polls_because=await store.check_wake_ups(),
        )
    finally:
        await store.close()


def without_password(url: str) -> str:
    """The URL as it may be shown. A password may stand before the host, or in the query, where
    libpq takes it too; and the database beside a queue has one of its own."""
    parts = urlsplit(url)
    address = parts.netloc
    if parts.password:
        address = f"{parts.username or ''}:***@{address.rpartition('@')[2]}"
    query = _ROWS.sub(_shown_rows, _SECRET.sub(r"\1***", parts.query))
    if (address, query) == (parts.netloc, parts.query):
        return url
    return urlunsplit(parts._replace(netloc=address, query=query))


def _shown_rows(found: re.Match[str]) -> str:
    return f"{found[1]}{without_password(unquote(found[2]))}"
