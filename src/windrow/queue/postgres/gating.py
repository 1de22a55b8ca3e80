"""The gate: statements that tenants run through functions, because they may not write any table.

A function of the gate is one of our statements, word for word. Its owner, `windrow_gate`, may write
the tables but owns none of them, so row-level security holds inside: it sees the rows of the tenant
that the session acts for. Whatever a tenant calls, in whatever order, each statement keeps the
counts and events true, and none of those here writes what a caller says about rows of others.

A function's name carries a digest of its statement: another version of Windrow finds its own
functions or none, never a statement that does something else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from windrow.db.statements import Gate, Statement, load_gates, parse_statement
from windrow.db.transactions import Executor
from windrow.db.typed import find_statements, typed
from windrow.queue.postgres.rows import PACKAGE, Row, sql

SCHEMA: Final = "windrow_gate"

# The headers of statements name the gate. `-- gate enqueue`: what inserts take, for tenants and for
# roles that only enqueue. It ends no jobs and counts no members, so these roles enqueue into no
# group and drop nothing from a full queue. `-- gate tenant`: what looking and changing take too. It
# writes no counts or events that the caller hands in, claims nothing, and touches no limits,
# queues or schedules.


# Which jobs a lease has is not for tenants: those of one claim may be anybody's.
_ACTIVE_BY_LEASE: Final = "ARRAY(SELECT unnest(job_ids) FROM windrow.lease)"


@lru_cache(maxsize=1000)  # there is a text for each set of filters that jobs are listed by
def gated(statement: Statement) -> Statement:
    """The call of the function that is this statement; those that need none as they are."""
    if statement.name == "list_jobs":
        text = statement.text.replace(_ACTIVE_BY_LEASE, "ARRAY[job.id]")
        return parse_statement(statement.name, text)
    if statement.name not in list_gated():
        return statement
    values = ", ".join(f":{name}" for name in statement.parameters)
    call = f"SELECT * FROM {SCHEMA}.{function_name(statement)}({values})"  # noqa: S608 - names of our own files
    return parse_statement(statement.name, call)


def function_name(statement: Statement) -> str:
    digest = hashlib.sha256(statement.numbered.encode()).hexdigest()[:8]
    return f"{statement.name}_{digest}"


@cache
def list_gated() -> Mapping[str, Gate]:
    """The statements that tenants run through the gate, by name."""
    gated: dict[str, Gate] = dict(load_gates(PACKAGE))
    return gated | {
        name: gate
        for package in set(find_statements().values())
        for name, gate in load_gates(package).items()
    }


def statement_of(name: str) -> Statement:
    """A statement of the queue, or of another package that has tables here."""
    return typed(name, "postgres").statement if name in find_statements() else sql(name)


class GatedExecutor:
    """Runs statements through the gate, wherever the executor beneath it runs them."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row]:
        return await self._executor.fetch(gated(statement), values)


async def make_functions(connection: Any) -> None:
    """The functions of the gate, for the statements of this version."""
    for name, gate in sorted(list_gated().items()):
        statement = statement_of(name)
        prepared = await connection.prepare(statement.numbered)
        given = ", ".join(one.name for one in prepared.get_parameters())
        returned = ", ".join(f'"{one.name}" {one.type.name}' for one in prepared.get_attributes())
        signature = f"{SCHEMA}.{function_name(statement)}({given})"
        callers = "windrow_tenant" + (", windrow_enqueuer" if gate == "enqueue" else "")
        await connection.execute(
            f"CREATE OR REPLACE FUNCTION {signature} "
            f"RETURNS {f'TABLE ({returned})' if returned else 'void'} "
            "LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp "
            f"AS $statement$ {statement.numbered} $statement$; "
            f"ALTER FUNCTION {signature} OWNER TO windrow_gate; "
            f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC; "
            f"GRANT EXECUTE ON FUNCTION {signature} TO {callers}"
        )
