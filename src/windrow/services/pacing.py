"""How fast jobs ended in the last hour, by the minute, and how long the last ones took.

Counted from the stream of events, which is read on from where the last look ended: a look costs
what has happened since, and never more than a bound. What it did not reach it reads the next time.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from windrow.queue.events import EventType
from windrow.queue.job import FINAL
from windrow.queue.queue import Queue
from windrow.queue.records import EventBatch, EventFilter
from windrow.services.tenant_queue import TenantQueue

MINUTES: Final = 60
MOST_PAGES: Final = 50  # of a look
SPAN: Final = 5000
PAGE: Final = 1000
SAMPLE: Final = 200
_ENDS: Final = EventFilter(types=(EventType.JOB_FINISHED,))
_ANY: Final = EventFilter()


@dataclass(frozen=True, slots=True)
class Pace:
    """`ended` and `failed`: jobs by the minute, the newest last. Of the last jobs that finished
    how long half of them, and nearly all, waited and ran, in seconds."""

    ended: Sequence[int]
    failed: Sequence[int]
    sampled: int = 0
    waited: float | None = None
    waited_most: float | None = None
    ran: float | None = None
    ran_most: float | None = None


class PaceKeeper:
    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._read_to: int | None = None
        # By minute: by tenant and whether it failed.
        self._counts: defaultdict[int, Counter[tuple[str | None, bool]]] = defaultdict(Counter)

    async def look(self, tenant: str | None = None) -> Pace:
        """Of a tenant, or (None) of all."""
        now = self._queue.store.clock.now() or datetime.now(UTC)
        await self._read_on(now)
        last = _minute(now)
        counts = [self._counts.get(last - n, Counter()) for n in reversed(range(MINUTES))]
        jobs = TenantQueue(self._queue, tenant)
        finished = await jobs.list(state=list(FINAL), limit=SAMPLE)
        waited = _seconds([(job.run_at, job.started_at) for job in finished])
        ran = _seconds([(job.started_at, job.finished_at) for job in finished])
        return Pace(
            ended=[_sum(one, tenant) for one in counts],
            failed=[_sum(one, tenant, failed_only=True) for one in counts],
            sampled=len(finished),
            waited=_share(waited, 0.5),
            waited_most=_share(waited, 0.95),
            ran=_share(ran, 0.5),
            ran_most=_share(ran, 0.95),
        )

    async def _read_on(self, now: datetime) -> None:
        oldest = _minute(now) - MINUTES
        if self._read_to is None:
            self._read_to = await self._find_place(now - timedelta(minutes=MINUTES))
        for _ in range(MOST_PAGES):
            page = await self._queue.store.read_events(self._read_to, _ENDS, span=SPAN, limit=PAGE)
            for batch in page.batches:
                self._count(batch)
            self._read_to = page.read_to
            if not page.has_more:
                break
        for minute in [minute for minute in self._counts if minute < oldest]:
            del self._counts[minute]

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
        self._counts[_minute(batch.at)][key] += len(batch.job_ids or ())


def _sum(
    counts: Counter[tuple[str | None, bool]], tenant: str | None, *, failed_only: bool = False
) -> int:
    return sum(
        number
        for (owner, has_failed), number in counts.items()
        if tenant in (None, owner) and (has_failed or not failed_only)
    )


def _minute(moment: datetime) -> int:
    return int(moment.timestamp() // 60)


def _seconds(spans: Sequence[tuple[datetime | None, datetime | None]]) -> list[float]:
    return [
        max(0.0, (end - start).total_seconds())
        for start, end in spans
        if start is not None and end is not None
    ]


def _share(seconds: Sequence[float], share: float) -> float | None:
    if len(seconds) < 2:
        return seconds[0] if seconds else None
    return statistics.quantiles(seconds, n=100)[round(share * 100) - 1]
