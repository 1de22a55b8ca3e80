"""Row-level security: switching it on and off, and saying what it leaves open.

Everything it makes follows from the tables that are there, so it is simply made again after a
migration. docs/decisions/0010-tenancy.md says who may see and do what.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

import asyncpg

from windrow.db.postgres.connections import Connections
from windrow.db.postgres.failures import PACKAGE, sqlstate
from windrow.queue.postgres.gating import (
    SCHEMA,
    function_name,
    list_gated,
    make_functions,
    statement_of,
)

Access = Literal["all", "tenant", "enqueue", "nothing"]

# Every table is locked for a moment. Whoever is in the way is not waited for longer than this.
_PATIENCE: Final = "SET LOCAL lock_timeout = '5s'"
_HAS_TENANCY: Final = """
    SELECT EXISTS (SELECT FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
                    WHERE nspname = 'windrow' AND proname = 'session_access')
"""
_ACCESS: Final = "SELECT windrow.session_access() AS access, windrow.session_tenant() AS tenant"
_IS_ON: Final = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)"


@dataclass(frozen=True, slots=True)
class TenantRole:
    role: str
    tenant: str


@dataclass(frozen=True, slots=True)
class RlsStatus:
    is_on: bool
    tables: int  # that policies hold for
    roles: tuple[TenantRole, ...]
    problems: tuple[str, ...]  # what is open that should not be


async def find_access(database: Connections) -> tuple[Access, str | None]:
    """What the role we are connected as may do, and the tenant it belongs to, if any."""
    async with database.connection() as connection:
        if not await connection.fetchval(_HAS_TENANCY):
            return "all", None
        try:
            found = await connection.fetchrow(_ACCESS)
        except asyncpg.PostgresError as error:
            if sqlstate(error) != "42501":
                raise
            return "all", None  # it has no right to anything, and is told so when it asks
    return found["access"], found["tenant"]


async def is_enabled(connection: Any) -> bool:
    return bool(await connection.fetchval(_IS_ON, SCHEMA))


async def enable_rls(connection: Any) -> None:
    """Switch it on, or bring it up to date with the tables and statements of now."""
    async with connection.transaction():
        await connection.execute(_PATIENCE)
        await connection.execute(_script("roles"))
        await connection.execute(_script("enable"))
        await make_functions(connection)
        await connection.execute(_script("views"))


async def secure_views(connection: Any) -> None:
    """Bring views and the functions behind them up to date, after a dialect was installed."""
    if await is_enabled(connection):
        await connection.execute(_script("views"))


async def disable_rls(connection: Any) -> None:
    async with connection.transaction():
        await connection.execute(_PATIENCE)
        if await is_enabled(connection):
            await connection.execute(_script("disable"))


async def rls_status(connection: Any) -> RlsStatus:
    is_on = await is_enabled(connection)
    tables = await connection.fetch(_script("tables"))
    roles = await connection.fetch("SELECT role, tenant FROM windrow.tenant_role ORDER BY role")
    problems = [row["problem"] for row in tables if row["problem"] is not None]
    if is_on:
        problems += [row["problem"] for row in await connection.fetch(_script("openings"))]
        if await are_outdated(connection):
            problems.append("the functions are of another version of Windrow")
    return RlsStatus(
        is_on=is_on,
        tables=sum(row["is_secured"] for row in tables),
        roles=tuple(TenantRole(row["role"], row["tenant"]) for row in roles),
        problems=tuple(problems) if is_on else (),
    )


async def are_outdated(connection: Any) -> bool:
    """Whether statements of this version have no functions that tenants run them by."""
    rows = await connection.fetch(
        "SELECT proname FROM pg_proc WHERE pronamespace = $1::regnamespace", SCHEMA
    )
    there = {row["proname"] for row in rows}
    wanted = {function_name(statement_of(name)) for name in list_gated()}
    return not wanted <= there


@cache
def _script(name: str) -> str:
    return (resources.files(PACKAGE) / "tenancy" / f"{name}.sql").read_text("utf-8")
