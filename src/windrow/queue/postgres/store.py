"""The Postgres store: every verb of the contract, each part in a module of its own.

- `inserting` · `claiming` · `finishing` · `leasing`: a job's way from insert to end
- `looking` · `changing` · `grouping` · `limiting`: jobs, queues, groups and limits from outside
- `scheduling` · `leading`: jobs that come again and again; who does what only one may do
- `registering`: which workers are alive; `examining`: whether the database is well
- `pruning`: what is past its time; `listening`: who sleeps until something happens
- `streaming`: what happened, in order, for those who follow it
- `copying`: jobs on their way to or from another database
- `importing`: jobs from tables that are not Windrow's
- `work`: what a transaction owes before it commits; `schema`: the tables themselves
- `dialects`: foreign schemas over them; `database`: the statements of other packages
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from windrow.clock import Clock
from windrow.db.postgres.connections import Connections
from windrow.db.postgres.failures import wrapped_errors
from windrow.db.statements import parse_statement
from windrow.db.transactions import Executor, executor_for
from windrow.errors import GroupEnded, GroupNotFound
from windrow.queue.job import Job, JobState
from windrow.queue.notifying import Notifier
from windrow.queue.postgres.bounding import find_bounds, keep_bounds
from windrow.queue.postgres.changing import Changing
from windrow.queue.postgres.copying import Copying
from windrow.queue.postgres.dialects import Dialects
from windrow.queue.postgres.examining import Examining
from windrow.queue.postgres.far_runs import FarRuns
from windrow.queue.postgres.finishing import Finishing
from windrow.queue.postgres.grouping import Grouping
from windrow.queue.postgres.importing import Importing
from windrow.queue.postgres.inserting import (
    Insertion,
    in_parts,
    insert_many,
    insert_row,
    insert_rows,
)
from windrow.queue.postgres.keying import (
    Overfull,
    Part,
    find_repeated,
    find_surplus,
    groups_of,
    insert_keyed,
    put_together,
    rooms_of,
    split,
)
from windrow.queue.postgres.leasing import Leasing
from windrow.queue.postgres.limiting import Limiting
from windrow.queue.postgres.listening import Listener, Listening, listening_address
from windrow.queue.postgres.looking import Looking
from windrow.queue.postgres.pruning import Pruning
from windrow.queue.postgres.registering import Registering
from windrow.queue.postgres.rows import Row, as_json, sql
from windrow.queue.postgres.scheduling import Scheduling
from windrow.queue.postgres.securing import find_access
from windrow.queue.postgres.streaming import Streaming
from windrow.queue.postgres.work import Delta, Work, settle_groups
from windrow.queue.records import Claim, GroupLook, Inserted, JobRow, are_plain
from windrow.queue.store import Capabilities

_SAVE: Final = parse_statement("save", "SAVEPOINT windrow_insert")
_UNDO: Final = parse_statement("undo", "ROLLBACK TO SAVEPOINT windrow_insert")
_FORGET: Final = parse_statement("forget", "RELEASE SAVEPOINT windrow_insert")


class PostgresStore(
    Finishing,
    Leasing,
    Changing,
    Looking,
    Grouping,
    Limiting,
    Scheduling,
    Pruning,
    FarRuns,
    Copying,
    Importing,
    Listening,
    Registering,
    Streaming,
    Examining,
    Dialects,
):
    capabilities = Capabilities(
        transactional_insert=True,
        reads_in_transaction=True,
        many_machines=True,
        tenancy=True,
        table_prefix="windrow.",
    )
    tenant: str | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        clock: Clock,
        direct_url: str | None = None,
        notifier: Notifier | None = None,
    ) -> PostgresStore:
        """Connect; the tables are made by `migrate`. `direct_url` leads past a pooler. For a role
        that row-level security holds for it is a tenant's store."""
        database = await Connections.open(url)
        try:
            access, tenant = await find_access(database)
        except BaseException:
            await database.close()
            raise
        if access in ("tenant", "enqueue"):
            return _as_tenant(
                database,
                clock,
                notifier,
                tenant=tenant,
                access=access,
                is_said=False,
                is_sole=True,
            )
        store = cls(database, clock, notifier)
        store._listener = Listener(store._database, listening_address(url, direct_url))
        return store

    def as_tenant(self, tenant: str, *, is_sole: bool = False) -> PostgresStore:
        return _as_tenant(
            self._database, self.clock, self._notifier, tenant=tenant, is_sole=is_sole
        )

    async def close(self) -> None:
        await self._listener.close()
        await self._database.close()
        if self._notifier is not None:
            await self._notifier.close()

    async def look_at_group(
        self, group_id: str, root_id: str, kind: str, *, skip: int = 0, limit: int = 100
    ) -> GroupLook:
        # In this order: of a root that is seen to have ended the group is seen as it ended, and of
        # a group that is seen to have ended all members.
        root = (await self.get_jobs([root_id])).get(root_id)
        group = await self.get_group(group_id)
        ids = await self.list_ended(group_id, kind, JobState.COMPLETED, skip=skip, limit=limit)
        jobs = await self.get_jobs(ids)
        return GroupLook(root, group, [jobs[job_id] for job_id in ids if job_id in jobs])

    async def insert_jobs(self, rows: Sequence[JobRow], *, tx: Any = None) -> list[Inserted]:
        """Insert rows, in one of three ways. The first two are one statement, which writes nothing
        if something is in its way: a unique key that is taken, or a bounded queue.

        | rows                                               | way           | statement   |
        |----------------------------------------------------|---------------|-------------|
        | one, outside groups                                | `insert_row`  | insert_job  |
        | many, without unique keys, groups and given ids    | `insert_many` | insert_many |
        | any others; those refused; all in the caller's tx  | `insert_rows` | insert_jobs |
        """
        if not rows:
            return []
        if tx is not None:
            return await self._insert_in(tx, rows)
        inserted = None
        if len(rows) == 1 and rows[0].group is None:
            only = await insert_row(self._database, rows[0], self.clock.now())
            inserted = None if only is None else [only]
        elif are_plain(rows):
            inserted = await self._insert_many(rows)
        if inserted is None:
            inserted = await self._insert_any(rows)
        if self._claimer.floors:
            for row, one in zip(rows, inserted, strict=True):
                self._claimer.floors.drop_behind(row.queue, row.priority, one.seq)
        if self._notifier is not None:
            self._notifier.tell(with_work(rows, inserted), ())
        return inserted

    async def claim_jobs(self, claim: Claim) -> list[Job]:
        return await self._claimer.claim(self._database, claim, self.clock.now())

    async def _insert_many(self, rows: Sequence[JobRow]) -> list[Inserted] | None:
        now = self.clock.now()
        parts = in_parts(rows)
        if len(parts) == 1:
            return await insert_many(self._database, rows, now)

        async def do(executor: Executor) -> list[Inserted]:
            inserted: list[Inserted] = []
            for part in parts:
                outcomes = await insert_many(executor, part, now)
                if outcomes is None:
                    raise _Bounded
                inserted += outcomes
            return inserted

        try:
            return await self._database.in_transaction(do)
        except _Bounded:
            return None

    async def _insert_any(self, rows: Sequence[JobRow]) -> list[Inserted]:
        async def do(work: Work) -> list[Inserted]:
            bounds = await find_bounds(work.executor, rows, is_locking=True)
            insertion = await self._insert_on(
                work.executor, rows, left_out, is_patient=work.is_patient
            )
            work.groups_locked(row.group for row in rows if row.group is not None)
            work.ready_queues |= insertion.ready_queues
            work.followed_keys |= insertion.followed_keys
            inserted = insertion.all_outcomes()
            await keep_bounds(work.executor, bounds, rows, inserted, work)
            return inserted

        left_out: frozenset[str] = frozenset()
        while True:
            try:
                return await self._transact(do)
            except Overfull as surplus:
                left_out |= surplus.ids

    async def _insert_in(self, tx: Any, rows: Sequence[JobRow]) -> list[Inserted]:
        """Insert in the caller's transaction. With a blocking connection this never waits."""
        left_out: frozenset[str] = frozenset()
        with wrapped_errors():
            async with self._executor_of(tx) as executor:
                while True:
                    try:
                        # Followers that miss the end of their holder are found by stage_jobs.
                        return await self._insert_at_once(executor, rows, left_out)
                    except Overfull as surplus:
                        left_out |= surplus.ids

    async def _insert_at_once(
        self, executor: Executor, rows: Sequence[JobRow], left_out: frozenset[str]
    ) -> list[Inserted]:
        """All or nothing, within a caller's transaction."""
        async with _savepoint(executor):
            bounds = await find_bounds(executor, rows, is_locking=False)
            insertion = await self._insert_on(executor, rows, left_out, is_callers=True)
            inserted = insertion.all_outcomes()
            await keep_bounds(executor, bounds, rows, inserted)
        return inserted

    @asynccontextmanager
    async def _executor_of(self, tx: Any) -> AsyncIterator[Executor]:
        yield executor_for(tx)

    async def _insert_on(
        self,
        executor: Executor,
        rows: Sequence[JobRow],
        left_out: frozenset[str],
        *,
        is_callers: bool = False,
        is_patient: bool = False,
    ) -> Insertion:
        """Insert all rows but those left out. Raises Overfull, with more of these. Those with a
        group key come last: see `keying`."""
        now = self.clock.now()
        plain, keyed = split(rows)
        kept = [row for row in plain if row.id not in left_out]
        insertion = await insert_rows(
            executor, kept, now, is_callers=is_callers, is_patient=is_patient
        )
        repeated, late = await find_repeated(executor, keyed)
        named = groups_named(kept, insertion.all_outcomes())
        named += groups_of(late) - set(named)
        rooms = rooms_of(await _require_open(executor, named), insertion.joined)
        if surplus := find_surplus(kept, insertion, rooms):
            raise Overfull(surplus)
        if len(kept) < len(rows):
            last = await insert_keyed(executor, late, rooms, now, is_callers=is_callers)
            insertion = put_together(rows, [Part(kept, insertion), repeated, Part(late, last)])
        if insertion.joined:
            deltas = [Delta(i, members=n, pending=n) for i, n in insertion.joined.items()]
            await settle_groups(executor, deltas, now)
        return insertion


class _Bounded(Exception):
    """A queue is bounded, whose depth takes more statements to keep: nothing is to be written."""


def _as_tenant(*args: Any, **options: Any) -> PostgresStore:
    from windrow.queue.postgres.tenancy import TenantStore  # which is a PostgresStore itself

    return TenantStore(*args, **options)


def groups_named(rows: Sequence[JobRow], inserted: Sequence[Inserted]) -> list[str]:
    """The groups that rows asked for, apart from rows that had been inserted before."""
    return list(
        dict.fromkeys(
            row.group
            for row, one in zip(rows, inserted, strict=True)
            if row.group is not None and not (one.outcome == "existing" and one.id == row.id)
        )
    )


def with_work(rows: Sequence[JobRow], inserted: Sequence[Inserted]) -> set[str]:
    """The queues that got jobs to claim, or to let go if there is room."""
    return {
        row.queue
        for row, one in zip(rows, inserted, strict=True)
        if one.outcome in ("inserted", "replaced") and one.state in (JobState.READY, JobState.HELD)
    }


async def _require_open(executor: Executor, groups: list[str]) -> Sequence[Row]:
    """Lock groups, which must take more members."""
    if not groups:
        return []
    locked = await executor.fetch(sql("lock_groups"), {"ids": as_json(sorted(groups))})
    found = {str(row["id"]): row for row in locked}
    for group_id in groups:
        if group_id not in found:
            raise GroupNotFound(group_id)
        if found[group_id]["state"] != "active" or found[group_id]["is_cancelled"]:
            raise GroupEnded(group_id)
    return locked


@asynccontextmanager
async def _savepoint(executor: Executor) -> AsyncIterator[None]:
    """All or nothing within a transaction that is not ours to roll back."""
    await executor.fetch(_SAVE, {})
    try:
        yield
    except Exception:
        await executor.fetch(_UNDO, {})
        raise
    await executor.fetch(_FORGET, {})
