"""Keeping tenants apart by row-level security."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from windrow.errors import ConfigError
from windrow.queue.opening import open_store

if TYPE_CHECKING:
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
    if url.partition(":")[0] not in ("postgresql", "postgres"):
        raise ConfigError("row-level security is Postgres's: SQLite has no roles to keep apart")
    store = await open_store(url)
    try:
        await store.check_schema()
    finally:
        await store.close()
    from windrow.db.postgres.connections import Connections

    database = await Connections.open(url)
    try:
        async with database.connection() as connection:
            yield connection
    finally:
        await database.close()
