"""Maintenance handed to pg_cron, the scheduler inside Postgres."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from windrow.errors import ConfigError
from windrow.queue.opening import open_store

if TYPE_CHECKING:
    from windrow.queue.postgres.cron import Cron, CronJob


async def install_cron(url: str, home: str | None = None) -> list[CronJob]:
    """Let pg_cron do what needs no Python, from now on; what it does. Safe to do again."""
    store = await open_store(_of_postgres(url))
    try:
        await store.check_schema()
    finally:
        await store.close()
    async with _open(url, home) as cron:
        return await cron.install()


async def remove_cron(url: str, home: str | None = None) -> list[CronJob]:
    """Let pg_cron do nothing for this database any more; what it did."""
    async with _open(url, home) as cron:
        return await cron.remove()


async def list_cron(url: str, home: str | None = None) -> list[CronJob]:
    """What pg_cron does for this database, and how it went last."""
    async with _open(url, home) as cron:
        return await cron.jobs()


def _open(url: str, home: str | None) -> AbstractAsyncContextManager[Cron]:
    from windrow.queue.postgres.cron import Cron

    return Cron.open(_of_postgres(url), home)


def _of_postgres(url: str) -> str:
    if url.partition(":")[0] not in ("postgresql", "postgres"):
        raise ConfigError("pg_cron is an extension of Postgres; workers do the same elsewhere")
    return url
