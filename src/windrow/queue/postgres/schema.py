"""The tables themselves: which version is there, and how to bring it up to date."""

from __future__ import annotations

from typing import Any, Final

import asyncpg

from windrow.db.migrations import (
    History,
    Migration,
    check_history,
    check_upgradable,
    load_migrations,
)
from windrow.db.postgres.connections import retried
from windrow.db.postgres.failures import PACKAGE, wrapped_errors
from windrow.queue.postgres.rows import sql
from windrow.queue.postgres.securing import are_outdated, enable_rls, is_enabled
from windrow.queue.postgres.verbs import Verbs

# Held while the tables are changed; any number will do, as long as nobody else locks it.
LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('windrow.migration', 0))"
# By query, not by to_regclass: that may answer from a cache filled before the lock was waited for.
_HAS_SCHEMA: Final = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'windrow')"
_HAS_HISTORY: Final = (
    "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'windrow' AND tablename = 'migration')"
)
_READ_HISTORY: Final = """
    SELECT coalesce(max(version), 0), (array_agg(name ORDER BY version))[1] FROM windrow.migration
"""
_MAKE_HISTORY: Final = """
    CREATE TABLE windrow.migration (
        version integer PRIMARY KEY,
        name text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""


class Schema(Verbs):
    async def schema_version(self) -> int:
        async with self._database.connection() as connection:
            return (await _read_history(connection)).version

    async def check_schema(self) -> None:
        async with self._database.connection() as connection:
            check_history(await _read_history(connection), PACKAGE)

    async def migrate(self) -> list[str]:
        applied: list[str] = []

        async def go_on() -> None:
            """From what is there: a worker that has a part of a table locked may want the whole of
            it while we have that and want the part, and then one of us is told to begin again."""
            async with self._database.connection() as connection:
                check_upgradable(await _read_history(connection), PACKAGE)
                *earlier, last = load_migrations(PACKAGE)
                for one in earlier:
                    if await _apply(connection, one):
                        applied.append(one.name)  # noqa: PERF401 - it stays if the next fails
                async with connection.transaction():  # no tables before they are secured
                    is_new = await _apply(connection, last)
                    is_changed = bool(applied) or is_new
                    if await is_enabled(connection) and (
                        is_changed or await are_outdated(connection)
                    ):
                        await enable_rls(connection)
                if is_new:
                    applied.append(last.name)

        await retried(go_on)
        return applied


async def _apply(connection: Any, migration: Migration) -> bool:
    """Apply a migration in a transaction of its own, unless somebody else has."""
    async with connection.transaction():
        await connection.execute(LOCK)
        if (await _read_history(connection)).version >= migration.version:
            return False
        # Asked for first: to create a schema that is there needs a right the owner may not have.
        if not await connection.fetchval(_HAS_SCHEMA):
            await connection.execute("CREATE SCHEMA windrow")
        if not await connection.fetchval(_HAS_HISTORY):
            await connection.execute(_MAKE_HISTORY)
        await connection.execute(migration.sql)
        await connection.execute(
            "INSERT INTO windrow.migration (version, name) VALUES ($1, $2)",
            *(migration.version, migration.name),
        )
        return True


async def _read_history(connection: Any) -> History:
    if not await connection.fetchval(_HAS_HISTORY):
        return History()
    version, first = await connection.fetchrow(_READ_HISTORY)
    return History(version, first)


async def describe_schema(url: str) -> str:
    """Everything in the schema, one line each in a fixed order: two databases with the same tables,
    columns, defaults, constraints, indexes and partitions give the same text."""
    with wrapped_errors():
        connection = await asyncpg.connect(url)
        try:
            rows = await connection.fetch(sql("describe_schema").numbered)
        finally:
            await connection.close()
    return "".join(f"{row['line']}\n" for row in rows)
