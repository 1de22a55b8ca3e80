"""The Postgres store for one tenant: what it reads is what row-level security shows, what it writes
goes through the gate (`gating`).

Who the tenant is is said in each transaction, so it works behind a pooler in transaction mode: as
`windrow_api`, whose word about the tenant counts. A role that belongs to a tenant says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NoReturn, TypeVar

from windrow.clock import Clock
from windrow.db.postgres.connections import PLANNED_ANEW, Connections, Row, retried
from windrow.db.postgres.failures import sqlstate
from windrow.db.statements import Statement, parse_statement
from windrow.db.transactions import AsyncpgExecutor, Executor, executor_for
from windrow.errors import ConfigError, NotAllowed
from windrow.queue.job import Job, JobState
from windrow.queue.notifying import Notifier
from windrow.queue.postgres.gating import GatedExecutor, gated
from windrow.queue.postgres.listening import Listener
from windrow.queue.postgres.securing import Access
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.records import Claim, Inserted, LimitInfo, QueueInfo

T = TypeVar("T")

_ACT_FOR: Final = parse_statement(
    "act_for",
    "SELECT set_config('role', 'windrow_api', true), set_config('windrow.tenant', :tenant, true)",
)
_ACTED: Final = parse_statement(
    "acted",
    "SELECT current_setting('role') AS role, current_setting('windrow.tenant', true) AS tenant",
)
_ACT_AGAIN: Final = parse_statement(
    "act_again",
    "SELECT set_config('role', :role, true), set_config('windrow.tenant', :tenant, true)",
)
TENANTS_POLL: Final = "tenants are not told what others do: they look"
# No such role, no such function, no such schema.
_NOT_ENABLED: Final = {"22023", "42883", "3F000"}


class TenantConnections(Connections):
    """The pool of another one, for transactions of one tenant. With `speaks_for` it is said in each
    who that is; without, the role tells."""

    def __init__(self, database: Connections, speaks_for: str | None = None) -> None:
        super().__init__(
            database._pool, loans=database._loans, is_behind_pooler=database._is_behind_pooler
        )
        self._speaks_for = speaks_for

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> list[Row]:
        async def work(executor: Executor) -> list[Row]:
            return list(await executor.fetch(statement, values))

        return await self.in_transaction(work)

    async def fetch_planned(self, statement: Statement, values: Mapping[str, Any]) -> list[Row]:
        async with self._transaction() as connection:
            await connection.execute(PLANNED_ANEW)
            found: list[Row] = await connection.fetch(
                gated(statement).numbered, *statement.bind(values)
            )
            return found

    async def in_transaction(self, work: Callable[[Executor], Awaitable[T]]) -> T:
        async def once() -> T:
            async with self._transaction() as connection:
                return await work(GatedExecutor(AsyncpgExecutor(connection)))

        return await retried(once)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        with enabling_told():
            async with self.connection() as connection, connection.transaction():
                if self._speaks_for is not None:
                    await connection.fetch(_ACT_FOR.numbered, self._speaks_for)
                yield connection


class TenantStore(PostgresStore):
    def __init__(
        self,
        database: Connections,
        clock: Clock,
        notifier: Notifier | None,
        *,
        tenant: str | None,
        access: Access = "tenant",
        is_said: bool = True,
        is_sole: bool = False,
    ) -> None:
        gated_database = TenantConnections(database, tenant if is_said else None)
        super().__init__(gated_database, clock, notifier)
        self.tenant = tenant
        self.capabilities = replace(
            PostgresStore.capabilities,
            tenancy=access == "tenant" and tenant is None,
            sees_jobs=access == "tenant",
        )
        self._is_said = is_said
        self._shared = database
        self._is_sole = is_sole
        self._listener = Listener(gated_database, None)
        self._listener.problem = TENANTS_POLL

    async def close(self) -> None:
        if self._is_sole:
            await self._shared.close()
            if self._notifier is not None:
                await self._notifier.close()

    def as_tenant(self, tenant: str, *, is_sole: bool = False) -> PostgresStore:
        if not self.capabilities.tenancy:
            raise ConfigError("the role of this queue speaks for no other tenant")
        return TenantStore(self._shared, self.clock, self._notifier, tenant=tenant, is_sole=is_sole)

    async def claim_jobs(self, claim: Claim) -> list[Job]:
        self._refuse("claims jobs")

    async def fire_schedules(self, limit: int = 1000) -> list[Inserted]:
        self._refuse("looks after the queue")

    async def promote_jobs(
        self,
        keys: Sequence[str] | None = None,
        limit: int = 1000,
        *,
        claim: Claim | None = None,
        rounds: int = 1,
    ) -> int:
        return 0  # workers do, who see the jobs of all that share a limit

    async def list_limits(self, *, counts_held: bool = True) -> list[LimitInfo]:
        self._refuse("sees limits, which many share")

    async def list_queues(self) -> list[QueueInfo]:
        counts: defaultdict[str, dict[JobState, int]] = defaultdict(dict)
        oldest: dict[str, datetime | None] = {}
        are_paused: dict[str, bool] = {}
        for row in await self._run("count_own_jobs"):
            counts[row["queue"]][JobState(row["state"])] = row["n"]
            oldest[row["queue"]] = row["oldest_at"] or oldest.get(row["queue"])
            are_paused[row["queue"]] = row["is_paused"]
        return [
            QueueInfo(name, are_paused[name], dict(counts[name]), oldest[name])
            for name in sorted(counts)
        ]

    @asynccontextmanager
    async def _executor_of(self, tx: Any) -> AsyncIterator[Executor]:
        """The caller's transaction acts for the tenant while we are in it."""
        executor = executor_for(tx)
        with enabling_told():
            if self.tenant is None or not self._is_said:
                yield GatedExecutor(executor)
                return
            [former] = await executor.fetch(_ACTED, {})
            await executor.fetch(_ACT_FOR, {"tenant": self.tenant})
            try:
                yield GatedExecutor(executor)
            finally:
                values = {"role": former["role"], "tenant": former["tenant"] or ""}
                await executor.fetch(_ACT_AGAIN, values)

    def _refuse(self, what: str) -> NoReturn:
        raise NotAllowed(f"no tenant {what}: a tenant's queue enqueues, looks and cancels")


@contextmanager
def enabling_told() -> Iterator[None]:
    """Say what to do where row-level security is not there, or is of another version."""
    try:
        yield
    except Exception as error:
        for one in (error, error.__cause__):
            if one is not None and sqlstate(one) in _NOT_ENABLED:
                raise ConfigError(
                    "row-level security is not on, or for another version of Windrow: run "
                    f"`windrow db rls enable` ({one})"
                ) from error
        raise
