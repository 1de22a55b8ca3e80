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
from functools import lru_cache
from typing import Any, Final

from windrow.db.statements import Statement, parse_statement
from windrow.queue.postgres.rows import Row, sql
from windrow.queue.transactions import Executor

SCHEMA: Final = "windrow_gate"

# What inserts take, for tenants and for those who only enqueue: not what ends jobs or counts
# members, which would let these do more. So they enqueue into no group, and drop nothing from a
# full queue.
ENQUEUING: Final = frozenset(
    {
        *("insert_job", "insert_jobs", "find_known", "find_holders", "replace_jobs"),
        *("find_bounds", "lock_bounds", "count_unclaimed", "promote_followers"),
    }
)
# What looking and changing take besides. No statement is here that writes counts or events which
# the caller hands in, that claims, or that touches limits, queues or schedules.
TENANT: Final = ENQUEUING | {
    *("lock_jobs", "lock_finished", "pause_jobs", "resume_jobs", "hasten_jobs", "retry_jobs"),
    *("delete_steps", "find_blockers", "delete_jobs", "lock_blobs", "delete_blobs", "edit_job"),
    *("edit_payload", "find_groups", "find_members", "create_group", "set_root", "pause_group"),
    *("resume_group", "find_horizon", "count_own_jobs", "find_dependents", "find_oldest"),
    *("lock_groups", "seize_groups", "seize_jobs", "settle_groups", "end_jobs", "add_errors"),
    *("tell_jobs", "take_group_keys", "keep_group_keys"),
    *("ensure_collection", "begin_generation", "put_sources", "note_sources", "delete_sources"),
    *("drop_superseded", "put_contents", "put_documents", "let_go_of_documents"),
    *("delete_documents", "let_go_of_source_documents", "delete_source_documents"),
    *("lift_documents", "move_documents", "delete_pages"),
    *("change_sources", "hold_sources", "lock_sources"),
}


# Which jobs a lease has is not for tenants: those of one claim may be anybody's.
_ACTIVE_BY_LEASE: Final = "ARRAY(SELECT unnest(job_ids) FROM windrow.lease)"


@lru_cache(maxsize=1000)  # there is a text for each set of filters that jobs are listed by
def gated(statement: Statement) -> Statement:
    """The call of the function that is this statement; those that need none as they are."""
    if statement.name == "list_jobs":
        text = statement.text.replace(_ACTIVE_BY_LEASE, "ARRAY[job.id]")
        return parse_statement(statement.name, text)
    if statement.name not in TENANT:
        return statement
    values = ", ".join(f":{name}" for name in statement.parameters)
    call = f"SELECT * FROM {SCHEMA}.{function_name(statement)}({values})"  # noqa: S608 - names of our own files
    return parse_statement(statement.name, call)


def function_name(statement: Statement) -> str:
    digest = hashlib.sha256(statement.numbered.encode()).hexdigest()[:8]
    return f"{statement.name}_{digest}"


class GatedExecutor:
    """Runs statements through the gate, wherever the executor beneath it runs them."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row]:
        return await self._executor.fetch(gated(statement), values)


async def make_functions(connection: Any) -> None:
    """The functions of the gate, for the statements of this version."""
    for name in sorted(TENANT):
        statement = sql(name)
        prepared = await connection.prepare(statement.numbered)
        given = ", ".join(one.name for one in prepared.get_parameters())
        returned = ", ".join(f'"{one.name}" {one.type.name}' for one in prepared.get_attributes())
        signature = f"{SCHEMA}.{function_name(statement)}({given})"
        callers = "windrow_tenant" + (", windrow_enqueuer" if name in ENQUEUING else "")
        await connection.execute(
            f"CREATE OR REPLACE FUNCTION {signature} "
            f"RETURNS {f'TABLE ({returned})' if returned else 'void'} "
            "LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp "
            f"AS $statement$ {statement.numbered} $statement$; "
            f"ALTER FUNCTION {signature} OWNER TO windrow_gate; "
            f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC; "
            f"GRANT EXECUTE ON FUNCTION {signature} TO {callers}"
        )
