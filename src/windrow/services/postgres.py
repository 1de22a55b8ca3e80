"""What only Postgres does: it keeps tenants apart by row-level security, and its scheduler pg_cron
does maintenance."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from windrow.errors import ConfigError
from windrow.queue.opening import open_store

if TYPE_CHECKING:
    from windrow.queue.postgres.cron import Cron, CronJob
    from windrow.queue.postgres.securing import RlsStatus


async def enable_tenancy(url: str) -> RlsStatus:
    """Switch row-level security on, or bring it up to date. Safe to do again."""
    from windrow.queue.postgres.securing import enable_rls, rls_status

    async with _connection(url) as connection:
        await enable_rls(connection)
        return await rls_status(connection)


async def disable_tenancy(url: str) -> RlsStatus:
    """Switch it off; which role belongs to which tenant is kept."""
    from windrow.queue.postgres.securing import disable_rls, rls_status

    async with _connection(url) as connection:
        await disable_rls(connection)
        return await rls_status(connection)


async def tenancy_status(url: str) -> RlsStatus:
    """Whether it is on, for whom, and what it leaves open."""
    from windrow.queue.postgres.securing import rls_status

    async with _connection(url) as connection:
        return await rls_status(connection)


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator[Any]:
    if not _is_postgres(url):
        raise ConfigError("row-level security is Postgres's: SQLite has no roles to keep apart")
    await _check_schema(url)
    from windrow.db.postgres.connections import Connections

    database = await Connections.open(url)
    try:
        async with database.connection() as connection:
            yield connection
    finally:
        await database.close()


async def install_cron(url: str, home: str | None = None) -> list[CronJob]:
    """Let pg_cron do what needs no Python, from now on; what it does. Safe to do again."""
    await _check_schema(_of_postgres(url))
    async with _open_cron(url, home) as cron:
        return await cron.install()


async def remove_cron(url: str, home: str | None = None) -> list[CronJob]:
    """Let pg_cron do nothing for this database any more; what it did."""
    async with _open_cron(url, home) as cron:
        return await cron.remove()


async def list_cron(url: str, home: str | None = None) -> list[CronJob]:
    """What pg_cron does for this database, and how it went last."""
    async with _open_cron(url, home) as cron:
        return await cron.jobs()


def _open_cron(url: str, home: str | None) -> AbstractAsyncContextManager[Cron]:
    from windrow.queue.postgres.cron import Cron

    return Cron.open(_of_postgres(url), home)


def _of_postgres(url: str) -> str:
    if not _is_postgres(url):
        raise ConfigError("pg_cron is an extension of Postgres; workers do the same elsewhere")
    return url


async def _check_schema(url: str) -> None:
    store = await open_store(url)
    try:
        await store.check_schema()
    finally:
        await store.close()


def _is_postgres(url: str) -> bool:
    return url.partition(":")[0] in ("postgresql", "postgres")
