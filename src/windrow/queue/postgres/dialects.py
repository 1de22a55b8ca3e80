"""Installing dialects: foreign schemas made of views, functions and triggers over windrow.job.

What they have in common lies in the schema windrow_dialect, which comes with the first dialect and
goes with the last. There the store's own statements are functions of the same names, so that a job
that is written through a dialect goes the same way as any other and no rule is written twice.
"""

from __future__ import annotations

import re
from typing import Any, Final

from windrow.db.statements import Statement
from windrow.errors import ConfigError
from windrow.queue.dialects.loading import Dialect, DialectInfo, dialect_names, find_dialect
from windrow.queue.postgres.rows import sql
from windrow.queue.postgres.schema import LOCK, Schema
from windrow.queue.postgres.securing import secure_views

# The statements that dialects call as windrow_dialect.<name>(…), every argument by its name.
SHARED: Final = (
    *("insert_jobs", "end_jobs", "return_jobs", "wait_for_group", "promote_followers"),
    *("settle_groups", "lock_groups", "find_groups", "find_members", "tell_jobs", "add_errors"),
    *("delete_leases", "delete_jobs", "find_bounds", "count_unclaimed"),
    *("lock_blobs", "delete_blobs", "lock_finished", "retry_jobs"),
)
# As on the store's own connections: one plan, made once, that does not depend on statistics.
_PLANNING: Final = (
    "SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off "
    "SET enable_bitmapscan = off"
)
# What was left of an earlier version under a name would make its calls ambiguous. Functions that
# something is built on (a trigger, an index) stay, and are replaced.
_DROP_FUNCTIONS: Final = """
    DO $$
    DECLARE
        known regprocedure;
    BEGIN
        FOR known IN SELECT oid FROM pg_catalog.pg_proc
                      WHERE pronamespace = 'windrow_dialect'::regnamespace
        LOOP
            BEGIN
                EXECUTE format('DROP FUNCTION %s', known);
            EXCEPTION WHEN dependent_objects_still_exist THEN
                CONTINUE;
            END;
        END LOOP;
    END $$
"""
_DROP_SHARED: Final = "DROP SCHEMA IF EXISTS windrow_dialect CASCADE"


class Dialects(Schema):
    async def install_dialect(self, name: str) -> bool:
        dialect = find(name)
        await self.check_schema()
        async with self._database.connection() as connection, connection.transaction():
            await connection.execute(LOCK)
            is_new = name not in await _installed(connection)
            await self._bring_up_to_date(connection)
            await self._install(connection, dialect)
        return is_new

    async def remove_dialect(self, name: str) -> bool:
        dialect = find(name)
        await self.check_schema()
        async with self._database.connection() as connection, connection.transaction():
            await connection.execute(LOCK)
            if name not in await _installed(connection):
                return False
            await connection.execute(dialect.remove)
            await connection.execute(sql("remove_dialect").numbered, name)
            if not await _installed(connection):
                await connection.execute(_DROP_SHARED)
        return True

    async def list_dialects(self) -> list[DialectInfo]:
        await self.check_schema()
        async with self._database.connection() as connection:
            installed = await _installed(connection)
        names = sorted({*dialect_names("postgres"), *installed})
        return [_described(name, installed.get(name)) for name in names]

    async def migrate(self) -> list[str]:
        """Dialects that are installed are brought up to date with the tables."""
        applied = await super().migrate()
        async with self._database.connection() as connection, connection.transaction():
            await connection.execute(LOCK)
            updated = await self._bring_up_to_date(connection)
        return applied + [f"dialect {name}" for name in updated]

    async def _bring_up_to_date(self, connection: Any) -> list[str]:
        """All that are installed at once: they share functions, which may look different now."""
        installed = await _installed(connection)
        outdated = [name for name, row in installed.items() if not _described(name, row).is_current]
        if outdated:
            await connection.execute(_DROP_FUNCTIONS)
            for name in installed:
                if name in dialect_names("postgres"):
                    await self._install(connection, find(name))
        return outdated

    async def _install(self, connection: Any, dialect: Dialect) -> None:
        await connection.execute(dialect.install)
        values = {"name": dialect.name, "version": dialect.version, "now": self.clock.now()}
        record = sql("record_dialect")
        await connection.execute(record.numbered, *record.bind(values))
        await secure_views(connection)


def find(name: str) -> Dialect:
    return find_dialect(name, "postgres", shared=shared_functions())


def _described(name: str, row: Any) -> DialectInfo:
    if row is None:
        return DialectInfo(name, None, is_current=False)
    is_known = name in dialect_names("postgres")
    is_current = is_known and find(name).version == row["version"]
    return DialectInfo(name, row["installed_at"], is_current)


async def _installed(connection: Any) -> dict[str, Any]:
    rows = await connection.fetch(sql("list_dialects").numbered)
    return {row["name"]: row for row in rows}


def shared_functions() -> str:
    """The schema and the store's statements as functions in it."""
    functions = "\n".join(_as_function(sql(name)) for name in SHARED)
    return f"CREATE SCHEMA IF NOT EXISTS windrow_dialect;\n{functions}"


def _as_function(statement: Statement) -> str:
    """A statement as a function of its parameters, each row of the answer as an object. Events are
    drafted, because the transaction is a caller's."""
    parameters = ", ".join(
        f'"{name}" {_type_of(name, statement)} DEFAULT NULL' for name in statement.parameters
    )
    text = statement.numbered.replace("INTO windrow.event (", "INTO windrow_dialect.event (")
    if re.match(r"(INSERT|UPDATE|DELETE)\b", text) and "RETURNING" not in text:
        body = f"{text};"
    else:
        body = f"FOR found IN {text}\nLOOP\nRETURN NEXT to_jsonb(found);\nEND LOOP;"
    return (
        f"CREATE OR REPLACE FUNCTION windrow_dialect.{statement.name}({parameters})\n"
        f"RETURNS SETOF jsonb LANGUAGE plpgsql {_PLANNING} AS $function$\n"
        "#variable_conflict use_column\nDECLARE\n    found record;\n"
        f"BEGIN\n{body}\nEND\n$function$;"
    )


def _type_of(name: str, statement: Statement) -> str:
    """What the statement casts a parameter to first."""
    found = re.search(rf":{name}::((?:double precision|[a-z]+)(?:\[\])?)", statement.text)
    if found is None:
        raise ConfigError(f"{statement.name}.sql does not say what :{name} is")
    return found[1]
