"""`Queue`: the small public face of the durable queue.

It checks and encodes what people hand in, calls one store verb, and turns refusals into errors.
Nothing here knows which database is underneath.
"""

from __future__ import annotations

import builtins
import logging
import os
import random
import socket
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack, overload

import msgspec

from windrow.clock import Clock
from windrow.db.database import Database
from windrow.errors import DuplicateJob, QueueFull, StoreUnavailable
from windrow.ids import new_id
from windrow.logging import event
from windrow.queue import checks
from windrow.queue.changing import Changing
from windrow.queue.checks import SizeLimits, check_name, to_rows, to_similar_row
from windrow.queue.crash_log import rescue_jobs
from windrow.queue.events import Following
from windrow.queue.grouping import Grouping
from windrow.queue.insisting import RETRY_WAITS
from windrow.queue.job import (
    DEFAULT_PRIORITY,
    EnqueueOptions,
    Job,
    JobState,
    NewJob,
    OnConflict,
)
from windrow.queue.jobqueue import LeasingJobQueue
from windrow.queue.kinds import HandlerLike, new_job
from windrow.queue.lease import Lease
from windrow.queue.limiting import Limiting
from windrow.queue.limits import make_room
from windrow.queue.opening import open_store
from windrow.queue.records import Claim, Inserted, JobRow
from windrow.queue.rerunning import refuse_rerun
from windrow.queue.retaining import (
    EVENT_SECONDS,
    PAGE_BYTES,
    Retaining,
    Upkeep,
    check_event_retention,
)
from windrow.queue.scheduling import Scheduling
from windrow.queue.store import Store
from windrow.queue.sync import pause
from windrow.queue.typed_kind import TypedKind
from windrow.queue.waiting import Waiting
from windrow.redaction import redact_url

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from windrow.queue.sync_queue import SyncQueue

logger = logging.getLogger(__name__)

P = TypeVar("P")
R = TypeVar("R")

# What is entered around an enqueue, with the jobs as they are to be enqueued.
Around = Callable[[Sequence[NewJob]], AbstractContextManager[Sequence[NewJob]]]

# How often a claim first looks for due and abandoned jobs, when no worker does it for us.
TEND_SECONDS: Final = 1.0
TEND_BATCH: Final = 1000
TEND_ROUNDS: Final = 10  # of promotions, where very many keys have held jobs
# How long a caller waits for room in a full queue that makes callers wait, and how often it looks.
FULL_SECONDS: Final = 30.0
FULL_WAIT: Final = 0.02
LONGEST_FULL_WAIT: Final = 1.0


class OpenOptions(TypedDict, total=False):
    """The options of `Queue.open`."""

    migrate: bool | None
    max_payload: int
    max_result: int
    archive_dir: str | os.PathLike[str] | None
    max_page_bytes: int
    event_retention: float | timedelta
    clock: Clock | None
    direct_url: str | None
    notifier: str | None
    tracing: bool | TracerProvider
    tenant: str | None


class Queue(Changing, Grouping, Limiting, Scheduling, Retaining, Waiting, Following):
    """A durable job queue. Open it with `Queue.open(url)`, or `Queue.sync(url)` to block."""

    def __init__(
        self,
        store: Store,
        *,
        limits: SizeLimits | None = None,
        upkeep: Upkeep | None = None,
        around: Around = nullcontext,
        location: str | None = None,
    ) -> None:
        self.store = store
        self.location = location  # the URL it was opened with, without a password
        self._around = around
        self._limits = limits or SizeLimits()
        self._upkeep = upkeep or Upkeep()
        self._holder = f"{default_worker()}:{new_id()}"
        self._tended_at = float("-inf")

    @classmethod
    def open(
        cls,
        url: str,
        *,
        migrate: bool | None = None,
        max_payload: int = checks.MAX_PAYLOAD,
        max_result: int = checks.MAX_RESULT,
        archive_dir: str | os.PathLike[str] | None = None,
        max_page_bytes: int = PAGE_BYTES,
        event_retention: float | timedelta = EVENT_SECONDS,
        clock: Clock | None = None,
        direct_url: str | None = None,
        notifier: str | None = None,
        tracing: bool | TracerProvider = False,
        tenant: str | None = None,
    ) -> Opening:
        """Open a queue: `async with Queue.open(url) as queue`, or `await` it and close it yourself.

        A SQLite database is made and upgraded by itself; on Postgres that is `windrow db migrate`,
        or `migrate=True`. `archive_dir` is that of `prune`. Events are kept
        for `event_retention`, a day, by this queue's upkeep; at most a week. Of earlier web pages
        the oldest go when all take more than `max_page_bytes`.
        `direct_url` is the same Postgres past a pooler, for LISTEN. `notifier` says who wakes those
        that sleep: the database (`postgres`, or None on either), an `amqp://` broker, or nobody
        (`polling`). With `tracing` each enqueue is an OpenTelemetry span that its runs link to.
        With `tenant` it is that tenant's queue, as `as_tenant` gives it.
        """
        around = _tracing(tracing) if tracing else nullcontext
        limits = SizeLimits(max_payload, max_result)
        upkeep = Upkeep(archive_dir, check_event_retention(event_retention), max_page_bytes)

        async def opened() -> Queue:
            store = await open_store(url, clock=clock, direct_url=direct_url, notifier=notifier)
            try:
                should_migrate = (
                    not store.capabilities.many_machines if migrate is None else migrate
                )
                if should_migrate:
                    _log_migrations(await store.migrate(), describe_url(url))
                await store.check_schema()
                if tenant is not None:
                    store = store.as_tenant(check_name(tenant, "tenant"), is_sole=True)
            except BaseException:
                await store.close()
                raise
            return cls(
                store, limits=limits, upkeep=upkeep, around=around, location=describe_url(url)
            )

        return Opening(opened)

    @classmethod
    def sync(cls, url: str, **options: Unpack[OpenOptions]) -> SyncQueue:
        """The same queue for code that blocks: `with Queue.sync(url) as queue`."""
        from windrow.queue.sync_queue import SyncQueue

        return SyncQueue.open(cls.open(url, **options).open)

    @property
    def database(self) -> Database:
        """The database beneath, for the catalog and the accounts. Raises Unsupported where jobs are
        in no database (BullMQ without `?rows=`)."""
        return self.store.database

    @property
    def size_limits(self) -> SizeLimits:
        """The largest payload and result it takes."""
        return self._limits

    def as_tenant(self, tenant: str) -> Queue:
        """The same queue for one tenant, on the same connections: it sees, enqueues and changes
        only the jobs of that tenant, and the database sees to it. Cheap: make one for each request,
        and do not close it. On Postgres, after `windrow db rls enable`; claims are for workers."""
        store = self.store.as_tenant(check_name(tenant, "tenant"))
        return Queue(
            store,
            limits=self._limits,
            upkeep=self._upkeep,
            around=self._around,
            location=self.location,
        )

    async def close(self) -> None:
        """Close the connections. What was enqueued stays."""
        await self._resign()
        await self.store.close()

    @overload
    async def enqueue(
        self, kind: str, payload: Any = None, **options: Unpack[EnqueueOptions]
    ) -> Job: ...
    @overload
    async def enqueue(
        self, kind: HandlerLike[None, R], payload: None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[R]: ...
    @overload
    async def enqueue(
        self, kind: HandlerLike[P, R], payload: P, **options: Unpack[EnqueueOptions]
    ) -> Job[R]: ...
    async def enqueue(
        self,
        kind: str | HandlerLike[Any, Any],
        payload: Any = None,
        *,
        queue: str | None = None,
        priority: int = DEFAULT_PRIORITY,
        delay: float | timedelta | None = None,
        run_at: datetime | None = None,
        unique: str | None = None,
        on_conflict: OnConflict = "return",
        tenant: str | None = None,
        group: str | None = None,
        group_key: str | None = None,
        headers: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        max_attempts: int | None = None,
        max_crashes: int | None = None,
        lease: float | timedelta | None = None,
        retention: float | timedelta | None = None,
        limits: Sequence[str] | None = None,
        max_hold: float | timedelta | None = None,
        id: str | None = None,
        timeout: float = FULL_SECONDS,
        tx: Any = None,
    ) -> Job[Any]:
        """Enqueue one job; on return it is stored. With `tx`, the caller's own connection, it is
        stored when the caller commits.

        `kind` is the name of a handler, or the handler itself: then the payload is checked against
        the type that it takes (PayloadMismatch names the field), and the result of the job has the
        type that it returns.

        When the unique key is taken, the job that holds it is returned (`on_conflict="return"`),
        DuplicateJob is raised (`"reject"`), what waits is overwritten (`"replace"`), or the new job
        waits for the running one, and at most one does (`"follow"`).

        With `limits` the job is held until all these keys have room, and fails if that takes longer
        than `max_hold`. A full queue that makes callers wait makes this one wait for `timeout`.

        With `group_key` the job is stored only if its group never had a job with that key: else the
        one that has it is returned. If that is gone, or the group has all the jobs it takes, the
        job returned was not stored: it is `cancelled`, and `is_left_out`.
        """
        new = new_job(
            kind,
            payload,
            queue=queue,
            priority=priority,
            delay=delay,
            run_at=run_at,
            unique=unique,
            on_conflict=on_conflict,
            tenant=tenant,
            group=group,
            group_key=group_key,
            headers=headers,
            tags=tags,
            max_attempts=max_attempts,
            max_crashes=max_crashes,
            lease=lease,
            retention=retention,
            limits=limits,
            max_hold=max_hold,
            id=id,
        )
        with self._around([new]) as [new]:
            row = self._owned(to_similar_row(new, self._limits))
            [inserted] = await self._insert_with_room([row], tx, timeout)
        if inserted.outcome == "rejected":
            raise DuplicateJob(row.unique or row.id, inserted.id)
        job = await self._stored(row, inserted, is_seen=tx is None)
        if isinstance(kind, TypedKind) and job.kind == kind.kind:
            return kind.typed(job)
        return job  # by its name, or the job of another kind that holds the unique key

    async def _stored(self, row: JobRow, inserted: Inserted, *, is_seen: bool) -> Job:
        """The job that an enqueue leads to: the one that was there before, or the new one."""
        if is_seen and self.store.capabilities.sees_jobs:
            if inserted.outcome == "existing":
                return await self.get(inserted.id)
            if inserted.outcome == "left_out":
                found = await self.store.get_jobs([inserted.id])
                if inserted.id in found:
                    return found[inserted.id]
        return _as_job(row, inserted)

    async def enqueue_many(
        self, jobs: Sequence[NewJob], *, timeout: float = FULL_SECONDS, tx: Any = None
    ) -> builtins.list[Inserted]:
        """Enqueue many in one transaction, with an outcome for each; an error is one of all. A
        taken unique key is an outcome here (`existing`, `rejected`, `replaced`), and so is
        `left_out`: the group has had the group_key (`id` is the job that has it), or is full."""
        with self._around(checks.check_new_jobs(jobs)) as jobs:
            rows = to_rows(jobs, self._limits)
            if self.store.tenant is not None:
                rows = [self._owned(row) for row in rows]
            return await self._insert_with_room(rows, tx, timeout)

    async def claim(
        self,
        queues: Sequence[str] | str | None = None,
        *,
        limit: int = 1,
        seconds: float = 30,
        worker: str | None = None,
        kinds: Sequence[str] | None = None,
        tenants: Sequence[str] | None = None,
        wait: float = 0.0,
    ) -> Lease:
        """Claim up to `limit` jobs of these queues (None: of all), best first, for `seconds`. If
        there are none, sleep until there are, for at most `wait` seconds."""
        wanted = Claim(
            queues=checks.check_names(queues, "queue"),
            limit=checks.check_integer(limit, "limit", 1),
            seconds=checks.check_lease(seconds) or 30,
            worker=check_name(worker or default_worker(), "worker"),
            kinds=checks.check_names(kinds, "kind"),
            tenants=checks.check_names(tenants, "tenant"),
        )
        jobs = await self._claim(wanted)
        if not jobs and wait > 0:
            jobs = await self._wait_for_jobs(self._claim, wanted, wait)
        return Lease(self.store, jobs, self._limits)

    def job_queue(
        self,
        queues: Sequence[str] | str | None = None,
        *,
        kinds: Sequence[str] | None = None,
        seconds: float = 30,
        wait: float = 0.0,
    ) -> LeasingJobQueue:
        """`claim`, `complete` and `fail` by job id, for one loop of your own: it remembers the
        leases of what it has claimed and renews them. The options are those of `claim`."""
        return LeasingJobQueue(self, queues, kinds=kinds, seconds=seconds, wait=wait)

    async def _claim(self, wanted: Claim) -> builtins.list[Job]:
        await self._tend_if_due()
        jobs = await self.store.claim_jobs(wanted)
        if len(jobs) < wanted.limit and await self.store.promote_jobs(claim=wanted):
            rest = msgspec.structs.replace(wanted, limit=wanted.limit - len(jobs))
            later = await self.store.claim_jobs(rest)
            # One whose lease has run out since the first claim may have come again.
            again = {job.id for job in later}
            jobs = [job for job in jobs if job.id not in again] + later
        return jobs

    async def tend(self) -> int:
        """Fire due schedules, bring back due and abandoned jobs, let held ones go that have room,
        fail those held too long, and about once a minute remove what is past its time. Workers do
        this all the time; `claim` does it about once a second, so that a loop of one's own needs no
        worker. Returns how many jobs moved."""
        fired = await self.store.fire_schedules(TEND_BATCH)
        moved = sum(1 for one in fired if one.outcome in ("inserted", "replaced"))
        while staged := await self.store.stage_jobs(TEND_BATCH):
            moved += staged
            if staged < TEND_BATCH:
                break
        while rescued := await rescue_jobs(self.store, TEND_BATCH):
            moved += len(rescued)
            if len(rescued) < TEND_BATCH:
                break
        while expired := await self.store.expire_jobs(TEND_BATCH):
            moved += len(expired)
            if len(expired) < TEND_BATCH:
                break
        moved += await self.store.promote_jobs(rounds=TEND_ROUNDS)
        await self._prune_if_due()
        return moved

    async def _insert_with_room(
        self, rows: Sequence[JobRow], tx: Any, timeout: float
    ) -> builtins.list[Inserted]:
        """Insert; into a full queue that lets callers wait, when there is room. In a caller's
        transaction nothing is waited for: what would make room may wait for that transaction."""
        refuse_rerun()
        give_up_at = time.monotonic() + timeout
        wait = FULL_WAIT
        while True:
            try:
                inserted = await self._insert(rows, tx)
            except QueueFull as full:
                left = give_up_at - time.monotonic()
                if not full.may_wait or tx is not None or left <= 0:
                    raise
                spread = random.uniform(0.5, 1)  # noqa: S311 - no secret
                await pause(min(left, wait * spread))
                wait = min(2 * wait, LONGEST_FULL_WAIT)
                continue
            if tx is None:
                await make_room(self.store, [row.limits[:1] for row in rows])
            return inserted

    def _owned(self, row: JobRow) -> JobRow:
        """A new job of a tenant's queue is the tenant's, unless it says otherwise, which the
        database will refuse."""
        if row.tenant is not None or self.store.tenant is None:
            return row
        return msgspec.structs.replace(row, tenant=self.store.tenant)

    async def _insert(self, rows: Sequence[JobRow], tx: Any) -> builtins.list[Inserted]:
        if not rows:
            return []
        if tx is not None:
            return await self.store.insert_jobs(rows, tx=tx)
        # An insert whose reply was lost is repeated with the same ids, so it cannot double.
        for wait in RETRY_WAITS:
            try:
                return await self.store.insert_jobs(rows)
            except StoreUnavailable:
                await pause(wait)
                rows = [msgspec.structs.replace(row, may_exist=True) for row in rows]
        return await self.store.insert_jobs(rows)

    async def _tend_if_due(self) -> None:
        now = self.store.clock.now()
        seconds = time.monotonic() if now is None else now.timestamp()
        if seconds - self._tended_at >= TEND_SECONDS:
            self._tended_at = seconds
            await self.tend()


class Opening:
    """A queue about to be opened: enter it (`async with`) or await it."""

    def __init__(self, open: Callable[[], Awaitable[Queue]]) -> None:
        self._open = open
        self._queue: Queue | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"the queue is not open yet, so it has no {name!r}: write "
                "`async with Queue.open(url) as queue:` or `queue = await Queue.open(url)`"
            )

    async def open(self) -> Queue:
        return await self._open()

    def __await__(self) -> Generator[Any, None, Queue]:
        return self._open().__await__()

    async def __aenter__(self) -> Queue:
        self._queue = await self._open()
        return self._queue

    async def __aexit__(self, *exc_info: object) -> None:
        if self._queue is not None:
            await self._queue.close()


def _tracing(asked: bool | TracerProvider) -> Around:
    from windrow.queue.tracing import EnqueueTracing

    return EnqueueTracing(None if isinstance(asked, bool) else asked)


def _log_migrations(names: Sequence[str], database: str) -> None:
    if not names:
        return
    if names[0].startswith("0001"):
        logger.info("made the database %s", database, extra=event("database.created", url=database))
    else:
        logger.info(
            "upgraded the database %s: %s",
            database,
            ", ".join(names),
            extra=event("database.upgraded", url=database, migrations=names),
        )


def describe_url(url: str) -> str:
    """A database for people: without a password, and a file with its absolute path."""
    prefix = "sqlite:///"
    if url.startswith(prefix):
        path, mark, options = url.removeprefix(prefix).partition("?")
        return f"{prefix}{Path(path).absolute()}{mark}{options}"
    return redact_url(url)


def default_worker() -> str:
    """A name that tells people which process holds a lease."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _as_job(row: JobRow, inserted: Inserted) -> Job:
    """The job just inserted, without asking the database again."""
    created_at = inserted.created_at or datetime.now().astimezone()
    is_left_out = inserted.outcome == "left_out"
    return Job(
        id=inserted.id,
        seq=inserted.seq,
        queue=row.queue,
        kind=row.kind,
        state=JobState.CANCELLED if is_left_out else inserted.state,
        priority=row.priority,
        attempts=0,
        crashes=0,
        runs=0,
        max_attempts=row.max_attempts,
        max_crashes=row.max_crashes,
        created_at=created_at,
        run_at=inserted.run_at or created_at,
        tenant=row.tenant,
        group=row.group,
        unique=row.unique,
        lease_seconds=row.lease_seconds,
        retention_seconds=row.retention_seconds,
        limits=row.limits,
        max_hold_seconds=row.max_hold_seconds,
        is_cleaned=row.is_cleaned,
        is_left_out=is_left_out,
        error=_why_left_out(row, inserted) if is_left_out else None,
        headers=msgspec.json.decode(row.headers) if row.headers else {},
        tags=row.tags,
        payload_json=bytes(row.payload),
    )


def _why_left_out(row: JobRow, inserted: Inserted) -> str:
    if inserted.id != row.id:
        return f"its group has had its key, with job {inserted.id}"
    return f"group {row.group} has all the jobs it takes"
