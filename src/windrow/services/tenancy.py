"""Keeping tenants apart by row-level security."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from windrow.errors import ConfigError
from windrow.queue.postgres.connection import Database
from windrow.queue.postgres.securing import RlsStatus, disable_rls, enable_rls, rls_status
from windrow.queue.store import open_store


async def enable_tenancy(url: str) -> RlsStatus:
    """Switch row-level security on, or bring it up to date. Safe to do again."""
    async with _connection(url) as connection:
        await enable_rls(connection)
        return await rls_status(connection)


async def disable_tenancy(url: str) -> RlsStatus:
    """Switch it off; which role belongs to which tenant is kept."""
    async with _connection(url) as connection:
        await disable_rls(connection)
        return await rls_status(connection)


async def tenancy_status(url: str) -> RlsStatus:
    """Whether it is on, for whom, and what it leaves open."""
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
    database = await Database.open(url)
    try:
        async with database.connection() as connection:
            yield connection
    finally:
        await database.close()
