"""Whether jobs can run: everything that tells it, in one look, for `health.py` to judge; a sentence
for those who only want to know that; figures for Prometheus. Nothing here reads more than a bounded
number of jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from windrow.errors import IndexElsewhere, IndexUnavailable, StoreError
from windrow.queue.job import Job, JobState
from windrow.queue.queue import Queue
from windrow.queue.records import Group, LimitInfo, QueueInfo, ReadyKind, Vitals, WorkerInfo

LOOK_AHEAD: Final = 100  # jobs at the front of each queue whose kinds are looked at
MOST_GROUPS: Final = 20
MOST_ACTIVE: Final = 1_000
MOST_HELD: Final = 50_000
MOST_FAILED: Final = 100  # the newest failed jobs are looked at up to so many
LATELY: Final = timedelta(hours=1)
PATIENCE_SECONDS: Final = 60.0
# Without the error, which may say more than everybody should read.
BROKEN: Final = "a part of a worker keeps failing: see `windrow doctor` and the worker's log"
READY_SECONDS: Final = 2.0
WAITING: Final = (JobState.READY, JobState.SCHEDULED, JobState.HELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What was seen. `patience`: for how many seconds a job may be ready, or a transaction open,
    before that is worth a word. `skew`: how far the database's clock is ahead of ours, beyond what
    the way there and back explains."""

    vitals: Vitals
    queues: Sequence[QueueInfo] = ()
    workers: Sequence[WorkerInfo] = ()
    ready_kinds: Sequence[ReadyKind] = ()
    limits: Sequence[LimitInfo] = ()
    paused_groups: Sequence[Group] = ()
    active: Sequence[Job] = ()
    failed: int = 0  # jobs, in the last hour
    has_counted_held: bool = True  # whether the limits say how many jobs are held
    polls_because: str | None = None
    index_elsewhere: IndexElsewhere | None = None
    index_unreachable: IndexUnavailable | None = None
    is_polling_wanted: bool = False
    skew: float = 0.0
    patience: float = PATIENCE_SECONDS

    def count(self, state: JobState) -> int:
        return sum(info.counts.get(state, 0) for info in self.queues)


async def examine(
    queue: Queue,
    *,
    is_polling_wanted: bool = False,
    patience: float = PATIENCE_SECONDS,
    failed: int | None = None,
    index_elsewhere: IndexElsewhere | None = None,
    most_held: int = MOST_HELD,
) -> Examination:
    """Look at the queue and at the database under it. `failed`: jobs of the last hour, if somebody
    counted them; else the newest failed ones are looked at. Held jobs are counted by key if there
    are no more than `most_held`."""
    store = queue.store
    began_at, began = datetime.now(UTC), time.monotonic()
    vitals = await store.check_health()
    took = time.monotonic() - began
    ahead = (vitals.now - began_at).total_seconds()
    queues = await queue.queues()
    counts_held = sum(info.counts.get(JobState.HELD, 0) for info in queues) <= most_held
    return Examination(
        vitals=vitals,
        queues=queues,
        workers=await queue.workers(),
        ready_kinds=await store.list_ready_kinds(LOOK_AHEAD),
        limits=await store.list_limits(counts_held=counts_held),
        has_counted_held=counts_held,
        paused_groups=await queue.groups(state="active", is_paused=True, limit=MOST_GROUPS),
        active=await queue.list(state=JobState.ACTIVE, limit=MOST_ACTIVE),
        failed=await _count_failed(queue, vitals.now) if failed is None else failed,
        polls_because=await store.check_wake_ups(),
        is_polling_wanted=is_polling_wanted,
        skew=min(ahead, 0.0) if ahead < 0 else max(0.0, ahead - took),
        patience=patience,
        index_elsewhere=index_elsewhere,
    )


async def _count_failed(queue: Queue, now: datetime) -> int:
    newest = await queue.list(state=JobState.FAILED, limit=MOST_FAILED)
    return sum(job.finished_at is not None and now - job.finished_at < LATELY for job in newest)


async def find_trouble(queue: Queue) -> str | None:
    """Why jobs do not run, in a sentence; None if they do, or if there are none."""
    try:
        if workers := await queue.workers():
            return BROKEN if any(one.trouble for one in workers) else None
        counts = await queue.counts()
    except StoreError:
        return "the database does not answer"
    if any(counts[state] for state in WAITING):
        return "jobs wait, and no worker is alive: start `windrow worker`"
    return None


async def find_obstacle(queue: Queue) -> str | None:
    """Why the database cannot be used just now; None if it can. One small read."""
    reading = asyncio.create_task(_reads(queue))
    # Not `asyncio.timeout`: a driver that is cancelled waits for the server, which may hang.
    done, _ = await asyncio.wait([reading], timeout=READY_SECONDS)
    if not done:
        reading.cancel()
    return None if done and reading.result() else "the database does not answer"


async def _reads(queue: Queue) -> bool:
    try:
        await queue.store.schema_version()
    except StoreError:
        return False
    return True


async def render_metrics() -> tuple[bytes, str]:
    """The metrics of this process and of the queues it watches, and their media type."""
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    # In a thread: what collects asks the queue, in this loop, and waits for it.
    return await asyncio.to_thread(generate_latest), CONTENT_TYPE_LATEST
