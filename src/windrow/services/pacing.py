"""How fast jobs ended in the last hour, by the minute, and how long the last ones took.

Counted from the stream of events, which is read on from where the last look ended: a look costs
what has happened since, and never more than a bound. What it did not reach it reads the next time.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from windrow.queue.events import EventType
from windrow.queue.job import FINAL, Job
from windrow.queue.queue import Queue
from windrow.queue.records import EventBatch, EventFilter, JobFilter
from windrow.services.tenant_queue import TenantQueue

MINUTES: Final = 60
MOST_PAGES: Final = 50  # of a look
PATIENCE_SECONDS: Final = 0.02  # for what happened since the last look, and how long it took
FEW: Final = 20  # of a minute that nobody looked at while it lasted
FARTHEST: Final = 5000  # jobs stepped over at once
SPAN: Final = 5000
PAGE: Final = 1000
SAMPLE: Final = 200
_ENDS: Final = EventFilter(types=(EventType.JOB_FINISHED,), names_jobs=False)
_ANY: Final = EventFilter(names_jobs=False)
_ENDED: Final = JobFilter(states=tuple(FINAL))


@dataclass(frozen=True, slots=True)
class Pace:
    """`ended` and `failed`: jobs by the minute, the newest last. Of the last jobs that finished
    how long half of them, and nearly all, waited and ran, in seconds. Of a minute in which many
    ended not all are seen."""

    is_counted: bool  # where there are events
    is_whole: bool  # whether all that happened is counted, or the rest at the next look
    ended: Sequence[int]
    failed: Sequence[int]
    waits: Sequence[float]  # half of those seen of a minute waited, or ran, no longer: seconds
    runs: Sequence[float]
    sampled: int = 0
    waited: float | None = None
    waited_most: float | None = None
    ran: float | None = None
    ran_most: float | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """How long a job waited and ran, and when it ended."""

    job: str
    tenant: str | None
    minute: int
    waited: float
    ran: float


class PaceKeeper:
    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._read_to: int | None = None
        # By minute: by tenant and whether it failed.
        self._counts: defaultdict[int, Counter[tuple[str | None, bool]]] = defaultdict(Counter)
        # By minute: jobs that ended then, as many as were looked at.
        self._seen: defaultdict[int, dict[str, Span]] = defaultdict(dict)
        # By minute: the job behind which those are that ended before.
        self._ends: dict[int, str] = {}
        # Of two who read on at once, both would count the same.
        self._reading = asyncio.Lock()

    async def look(self, tenant: str | None = None) -> Pace:
        """Of a tenant, or (None) of all."""
        now = self._queue.store.clock.now() or datetime.now(UTC)
        until = time.monotonic() + PATIENCE_SECONDS
        is_counted = self._queue.store.capabilities.events
        async with self._reading:
            is_whole = await self._read_on(now, until) if is_counted else True
        last = _minute(now)
        counts = [self._counts.get(last - n, Counter()) for n in reversed(range(MINUTES))]
        newest = await self._see(TenantQueue(self._queue, tenant), last, until)
        waited, ran = [one.waited for one in newest], [one.ran for one in newest]
        minutes = [self._spans(last - n, tenant) for n in reversed(range(MINUTES))]
        return Pace(
            is_counted,
            is_whole,
            ended=[_sum(one, tenant) for one in counts],
            failed=[_sum(one, tenant, failed_only=True) for one in counts],
            waits=[_share([one.waited for one in spans], 0.5) or 0.0 for spans in minutes],
            runs=[_share([one.ran for one in spans], 0.5) or 0.0 for spans in minutes],
            sampled=len(newest),
            waited=_share(waited, 0.5),
            waited_most=_share(waited, 0.95),
            ran=_share(ran, 0.5),
            ran_most=_share(ran, 0.95),
        )

    async def _see(self, jobs: TenantQueue, last: int, until: float) -> list[Span]:
        """Look at the newest that ended, and at a few of each minute that none was seen of: as many
        jobs farther back as ended in between, for a moment at most. Where a minute that is over
        ends does not change."""
        ended = list(FINAL)
        newest = self._note(await jobs.list(state=ended, limit=SAMPLE))
        after = None
        for minute in range(last, last - MINUTES, -1):
            count = self._counts[minute].total() if minute in self._counts else 0
            if not count:
                continue
            if minute in self._ends:
                after = self._ends[minute]
                continue
            if time.monotonic() > until:
                break
            if minute not in self._seen:
                self._note(await jobs.list(state=ended, after=after, limit=FEW))
            step = min(count, FARTHEST)
            after = await self._queue.store.find_earlier(_ENDED, step, after=after)
            if after is None:
                break
            if minute < last:
                self._ends[minute] = after
        _forget(self._seen, last - MINUTES)
        _forget(self._ends, last - MINUTES)
        return newest

    def _note(self, jobs: Sequence[Job]) -> list[Span]:
        spans = [span for job in jobs if (span := _span(job)) is not None]
        for one in spans:
            self._seen[one.minute][one.job] = one
        return spans

    def _spans(self, minute: int, tenant: str | None) -> list[Span]:
        seen = self._seen.get(minute, {}).values()
        return [one for one in seen if tenant in (None, one.tenant)]

    async def _read_on(self, now: datetime, until: float) -> bool:
        """Count what has happened since the last look; whether it was all of it."""
        if self._read_to is None:
            self._read_to = await self._find_place(now - timedelta(minutes=MINUTES))
        for _ in range(MOST_PAGES):
            page = await self._queue.store.read_events(self._read_to, _ENDS, span=SPAN, limit=PAGE)
            for batch in page.batches:
                self._count(batch)
            self._read_to = page.read_to
            if not page.has_more or time.monotonic() > until:
                break
        _forget(self._counts, _minute(now) - MINUTES - 1)
        return not page.has_more

    async def _find_place(self, since: datetime) -> int:
        """A number of the stream behind which all that happened since then is."""
        end = await self._queue.store.read_events(None, _ANY, span=1, limit=1)
        low, high = end.floor, end.last
        while high - low > SPAN:
            middle = (low + high) // 2
            page = await self._queue.store.read_events(middle, _ANY, span=SPAN, limit=1)
            if page.batches and page.batches[0].at < since:
                low = middle
            else:
                high = middle
        return low

    def _count(self, batch: EventBatch) -> None:
        key = (batch.tenant, batch.state == "failed")
        self._counts[_minute(batch.at)][key] += batch.jobs


def _sum(
    counts: Counter[tuple[str | None, bool]], tenant: str | None, *, failed_only: bool = False
) -> int:
    return sum(
        number
        for (owner, has_failed), number in counts.items()
        if tenant in (None, owner) and (has_failed or not failed_only)
    )


def _forget(minutes: dict[int, Any], last: int) -> None:
    for minute in [minute for minute in minutes if minute <= last]:
        del minutes[minute]


def _minute(moment: datetime) -> int:
    return int(moment.timestamp() // 60)


def _span(job: Job) -> Span | None:
    if job.started_at is None or job.finished_at is None:
        return None  # it never ran
    waited = max(0.0, (job.started_at - job.run_at).total_seconds())
    ran = max(0.0, (job.finished_at - job.started_at).total_seconds())
    return Span(job.id, job.tenant, _minute(job.finished_at), waited, ran)


def _share(seconds: Sequence[float], share: float) -> float | None:
    if len(seconds) < 2:
        return seconds[0] if seconds else None
    return statistics.quantiles(seconds, n=100)[round(share * 100) - 1]
