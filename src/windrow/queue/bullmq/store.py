"""The queue on BullMQ: the verbs of a store on the official package's scripts.

A queue of ours is a queue of BullMQ's. Whatever is decided about a job is decided by BullMQ's own
scripts, so workers and producers in Node may share the queues. What it cannot do is refused:
`refusing.py` has the list. With a database beside it (`rows=` in the URL) jobs write rows there,
and what ingestion keeps is there: see `beside.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Final, NoReturn, cast

from windrow.clock import Clock
from windrow.db.database import Database
from windrow.errors import ConfigError, Unsupported
from windrow.queue.bells import Bell, end_of, work_in
from windrow.queue.bullmq import (
    changing,
    claiming,
    finishing,
    inserting,
    leasing,
    looking,
    upkeep,
)
from windrow.queue.bullmq.beside import Beside
from windrow.queue.bullmq.claiming import Leases
from windrow.queue.bullmq.connection import Links
from windrow.queue.bullmq.finishing import FindEnd
from windrow.queue.bullmq.location import parse_url
from windrow.queue.bullmq.refusing import Refusing, refuse
from windrow.queue.bullmq.waking import Ears
from windrow.queue.dialects.loading import DialectInfo
from windrow.queue.job import Job, JobState, Step
from windrow.queue.records import (
    Archive,
    Change,
    Claim,
    DiskUsage,
    ErrorCount,
    Finish,
    Finished,
    Group,
    GroupFilter,
    Inserted,
    JobFilter,
    JobRow,
    LimitInfo,
    ProgressReport,
    Pruned,
    QueueInfo,
    ReadyKind,
    Renewal,
    Retention,
    Schedule,
    Vitals,
    WorkerInfo,
    WorkerRow,
)
from windrow.queue.store import Capabilities, JobTransaction, Store

VERSION: Final = 1  # of the keys and fields that are ours


def capabilities_with(beside: Capabilities) -> Capabilities:
    """What the queue can do with a database beside it that can do this."""
    return replace(
        BullmqStore.capabilities,
        reads_in_transaction=beside.reads_in_transaction,
        many_machines=beside.many_machines,
        table_prefix=beside.table_prefix,
        job_transactions=True,
        documents=True,
    )


class BullmqStore(Refusing):
    """A queue in Redis, shared with BullMQ's own workers."""

    capabilities = Capabilities(
        transactional_insert=False,
        reads_in_transaction=False,
        many_machines=True,
        tenancy=False,
        table_prefix="",  # it has none
        job_transactions=False,
        atomic_ends=False,
        groups=False,
        limits=False,
        schedules=False,
        bounds=False,
        replaces=False,
        edits=False,
        exact_claims=False,
        events=False,
        documents=False,
        dialects=False,
        transfers=False,
        settable_clock=False,
        foreign_ids=True,
    )
    tenant: str | None = None

    def __init__(self, links: Links, beside: Store | None = None) -> None:
        self.clock = Clock()
        self._links = links
        self._leases = Leases()
        self._ears = Ears(links)
        if beside is not None:
            self.capabilities = capabilities_with(beside.capabilities)
            self._beside = Beside(links, beside)

    @classmethod
    async def open(cls, url: str, *, open_rows: Callable[[str], Awaitable[Store]]) -> Store:
        """`open_rows` opens the SQL database of `?rows=`, if the URL names one."""
        location = parse_url(url)
        links = Links(location)
        try:
            await links.check()
            beside = None if location.rows_url is None else await open_rows(location.rows_url)
        except BaseException:
            await links.close()
            raise
        return cast(Store, cls(links, beside))

    def as_tenant(self, tenant: str, *, is_sole: bool = False) -> NoReturn:
        raise ConfigError(
            "tenants are kept apart by Postgres: whoever can reach this Redis reads all of it"
        )

    @property
    def database(self) -> Database:
        """The database beside the queue."""
        if self._beside is None:
            refuse("documents")
        return self._beside.store.database

    async def close(self) -> None:
        await self._ears.close()
        await self._links.close()
        if self._beside is not None:
            await self._beside.close()

    # Jobs from insert to end

    async def insert_jobs(self, rows: Sequence[JobRow], *, tx: Any = None) -> list[Inserted]:
        if tx is not None:
            raise Unsupported(
                "transactional_insert",
                "BullMQ is not in the database of your transaction: commit it, then enqueue with "
                "an id of your own, which may be repeated; or use sqlite:///… or postgresql://…",
            )
        if not rows:
            return []
        inserted = await inserting.insert_jobs(self._links, rows)
        self._ears.belfry.ring({row.queue for row in rows})
        return inserted

    async def claim_jobs(self, claim: Claim) -> list[Job]:
        find_ends = None if self._beside is None else self._beside.find_ends
        jobs = await claiming.claim_jobs(self._links, self._leases, claim, find_ends)
        if len(jobs) < claim.limit and len(self._ears.belfry):
            self._ears.ring_at(self._leases.next_due)
        return jobs

    async def finish_jobs(
        self,
        finishes: Sequence[Finish],
        *,
        claim: Claim | None = None,
        tx: JobTransaction | None = None,
    ) -> Finished:
        finishing.check_ends(finishes)
        ends = await self._ends_of(finishes, tx)
        done = await finishing.finish_jobs(self._links, ends)
        for finish in finishes:
            self._leases.let_go(finish.token)
        self._ears.belfry.ring(done.ready_queues, done.ended)
        claimed = await self.claim_jobs(claim) if claim is not None else []
        return Finished(done.lost, tuple(claimed), done.then, done.conflicting)

    async def _ends_of(
        self, finishes: Sequence[Finish], tx: JobTransaction | None
    ) -> Sequence[Finish]:
        """What BullMQ is told. With a transaction, when its rows are committed."""
        if self._beside is None:
            return finishes
        if tx is None:
            return await self._beside.settle(finishes, self._leases)
        [finish] = finishes
        return [await self._beside.end(finish, tx)]

    @property
    def _find_end(self) -> FindEnd | None:
        return None if self._beside is None else self._beside.find_end

    async def save_work(self, job_id: str, token: str, tx: JobTransaction) -> None:
        if self._beside is None:
            refuse("job_transactions")
        await self._beside.save(job_id, token, tx)

    async def extend_leases(self, tokens: Sequence[str], seconds: int | None = None) -> Renewal:
        return await leasing.extend_leases(self._links, self._leases, tokens, seconds)

    async def report_progress(self, reports: Sequence[ProgressReport]) -> tuple[str, ...]:
        return await leasing.report_progress(self._links, reports)

    async def save_step(self, job_id: str, token: str, name: str, result: str) -> str:
        return await leasing.save_step(self._links, job_id, token, name, result)

    async def stage_jobs(self, limit: int = 1000) -> int:
        return 0  # BullMQ does it in every claim

    async def rescue_jobs(self, limit: int = 1000) -> list[Change]:
        changes = await upkeep.rescue_jobs(self._links)
        if changes:
            self._ears.belfry.ring_workers()
        return changes

    # Looking

    async def get_jobs(self, ids: Sequence[str]) -> dict[str, Job]:
        found = await looking.find_jobs(self._links, ids)
        return {job_id: one.job for job_id, one in found.items()}

    async def get_states(self, ids: Sequence[str]) -> dict[str, JobState]:
        return {job_id: job.state for job_id, job in (await self.get_jobs(ids)).items()}

    async def get_steps(self, job_id: str) -> list[Step]:
        found = await looking.find_jobs(self._links, [job_id])
        return [step for one in found.values() for step in one.steps]

    async def list_jobs(
        self, wanted: JobFilter, *, after: str | None = None, limit: int = 100
    ) -> list[Job]:
        return await looking.list_jobs(self._links, wanted, after, limit)

    async def find_earlier(
        self, wanted: JobFilter, count: int, *, after: str | None = None
    ) -> str | None:
        return None  # ids are not in an order there: a listing reads all of them anyway

    async def list_queues(self) -> list[QueueInfo]:
        return await looking.list_queues(self._links)

    async def count_tenant(self, tenant: str, most: int) -> dict[tuple[str, JobState], int]:
        newest = await self.list_jobs(JobFilter(tenant=tenant), limit=most)
        return Counter((job.queue, job.state) for job in newest)

    async def list_ready_kinds(self, limit: int = 100) -> list[ReadyKind]:
        return await looking.list_ready_kinds(self._links, limit)

    async def list_errors(
        self, queue: str | None = None, limit: int = 50, *, newest: int | None = None
    ) -> list[ErrorCount]:
        return await looking.list_errors(self._links, queue, limit, newest)

    # Changing

    async def cancel_jobs(self, ids: Sequence[str], reason: str) -> dict[str, Change]:
        changes = await changing.cancel_jobs(self._links, ids, reason, self._find_end)
        self._ears.belfry.ring((), ids)
        return changes

    async def retry_jobs(
        self, ids: Sequence[str], *, from_start: bool = False
    ) -> dict[str, Change]:
        changes = await changing.retry_jobs(self._links, ids, from_start=from_start)
        self._ears.belfry.ring_workers()
        return changes

    async def delete_jobs(self, ids: Sequence[str]) -> dict[str, Change]:
        return await changing.delete_jobs(self._links, ids, self._find_end)

    async def pause_queue(self, name: str) -> None:
        await self._pause(name, True)

    async def resume_queue(self, name: str) -> None:
        await self._pause(name, False)
        self._ears.belfry.ring_workers()

    async def _pause(self, name: str, is_paused: bool) -> None:
        await self._links.know([name])
        await changing.pause_queue(self._links, name, is_paused)

    # Time and retention

    async def set_retention(self, queue: str, seconds: Mapping[str, int | None]) -> None:
        await upkeep.set_retention(self._links, queue, seconds)

    async def list_retention(self) -> dict[str, Retention]:
        return await upkeep.list_retention(self._links)

    async def prune_jobs(self, limit: int = 500, *, archive: Archive | None = None) -> Pruned:
        if self._beside is not None:
            await self._beside.prune()
        return await upkeep.prune_jobs(self._links, limit, archive)

    async def measure_disk(self) -> DiskUsage:
        return await upkeep.measure_disk(self._links)

    # Sleeping

    def listen_for_work(self, queues: Sequence[str] | None) -> AbstractAsyncContextManager[Bell]:
        return self._ears.listen(work_in(queues))

    def listen_for_ends(self, job_ids: Sequence[str]) -> AbstractAsyncContextManager[Bell]:
        return self._ears.listen(end_of(job_ids))

    async def check_wake_ups(self) -> str | None:
        return None

    # Workers and leaders

    async def register_worker(self, row: WorkerRow, seconds: float) -> None:
        await upkeep.register_worker(self._links, row, seconds)

    async def drop_worker(self, worker_id: str) -> bool:
        return await upkeep.drop_worker(self._links, worker_id)

    async def list_workers(self) -> list[WorkerInfo]:
        return await upkeep.list_workers(self._links)

    async def elect_leader(self, role: str, holder: str, seconds: float) -> bool:
        return await upkeep.elect_leader(self._links, role, holder, seconds)

    async def resign_leader(self, role: str, holder: str) -> bool:
        return await upkeep.resign_leader(self._links, role, holder)

    async def check_health(self) -> Vitals:
        return await upkeep.check_health(self._links)

    # BullMQ makes its keys as it goes: only the database beside it has a schema.

    async def schema_version(self) -> int:
        return VERSION if self._beside is None else await self._beside.store.schema_version()

    async def check_schema(self) -> None:
        if self._beside is not None:
            await self._beside.store.check_schema()

    async def migrate(self) -> list[str]:
        return [] if self._beside is None else await self._beside.store.migrate()

    # There is nothing of these here, so there is nothing to list, or to look after

    async def promote_jobs(
        self,
        keys: Sequence[str] | None = None,
        limit: int = 1000,
        *,
        claim: Claim | None = None,
        rounds: int = 1,
    ) -> int:
        return 0

    async def expire_jobs(self, limit: int = 1000) -> list[Change]:
        return []

    async def list_limits(self, *, counts_held: bool = True) -> list[LimitInfo]:
        return []

    async def prune_limits(self, after: str = "", limit: int = 1000) -> tuple[int, str]:
        return 0, ""

    async def list_schedules(self) -> list[Schedule]:
        return []

    async def fire_schedules(self, limit: int = 100) -> list[Inserted]:
        return []

    async def list_groups(
        self, wanted: GroupFilter, *, after: str | None = None, limit: int = 100
    ) -> list[Group]:
        return []

    async def end_empty_groups(self, seconds: float, held_seconds: float, limit: int = 1000) -> int:
        return 0

    async def prune_events(self, seconds: float, limit: int = 1000) -> bool:
        return True

    async def fold_counts(self) -> None:
        """BullMQ's lists and sets know how long they are."""

    async def list_dialects(self) -> list[DialectInfo]:
        return []
