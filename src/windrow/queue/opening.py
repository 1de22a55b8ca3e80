"""Opening the store that a URL names: the one place that knows all stores.

Each store is imported when its URL is opened, so that a queue needs no driver but its own.
"""

from __future__ import annotations

from windrow.clock import Clock
from windrow.errors import ConfigError, MissingExtra
from windrow.queue.notifying import open_notifier
from windrow.queue.store import Store


async def open_store(
    url: str,
    *,
    clock: Clock | None = None,
    direct_url: str | None = None,
    notifier: str | None = None,
) -> Store:
    """Connect to the store a URL names. The tables are checked or made by `Queue.open`.
    `direct_url` is the same Postgres past a pooler, for LISTEN; `notifier` who wakes sleepers
    instead of the database."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        from windrow.queue.sqlite.store import SqliteStore

        told = open_notifier(notifier, scheme)
        return await SqliteStore.open(url, clock=clock or Clock(), notifier=told)
    if scheme in ("postgresql", "postgres"):
        try:
            from windrow.queue.postgres.store import PostgresStore
        except ModuleNotFoundError as error:
            if error.name != "asyncpg":
                raise
            raise MissingExtra("postgres", "a queue on Postgres") from error

        told = open_notifier(notifier, scheme)
        return await PostgresStore.open(
            url, clock=clock or Clock(), direct_url=direct_url, notifier=told
        )
    if scheme in ("bullmq+redis", "bullmq+rediss"):
        return await _open_bullmq(url)
    # Only how it begins: there may be a password in the rest.
    raise ConfigError(
        f"cannot open a database at {url[:10]!r}…: use sqlite:///path/to/jobs.db, "
        "postgresql://user@host/database or bullmq+redis://host:6379/0"
    )


async def _open_bullmq(url: str) -> Store:
    try:
        from windrow.queue.bullmq.store import BullmqStore
    except ModuleNotFoundError as error:
        if error.name not in ("bullmq", "redis"):
            raise
        raise MissingExtra("bullmq", "a queue on BullMQ") from error
    return await BullmqStore.open(url, open_rows=open_store)
