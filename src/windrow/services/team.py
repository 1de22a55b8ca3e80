"""How much somebody has in the queue of the web, and how much may run at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from windrow.pipelines.web.payloads import QUEUE, SCRAPE
from windrow.queue.job import JobState
from windrow.queue.queue import Queue

MOST_COUNTED: Final = 10_000
WAITING: Final = (JobState.READY, JobState.SCHEDULED, JobState.HELD)


@dataclass(frozen=True, slots=True)
class QueueUse:
    active: int
    waiting: int
    max_concurrency: int
    last_success_at: datetime | None


async def get_queue_use(queue: Queue, tenant: str | None = None) -> QueueUse:
    """Of a tenant, or of all. A tenant's jobs are counted up to 10,000."""
    if tenant is None:
        counts = await queue.counts(QUEUE)
        active, waiting = counts[JobState.ACTIVE], sum(counts[state] for state in WAITING)
    else:
        active = await _count(queue, tenant, (JobState.ACTIVE,))
        waiting = await _count(queue, tenant, WAITING)
    last = await queue.list(
        queue=QUEUE, kind=SCRAPE, state=JobState.COMPLETED, tenant=tenant, limit=1
    )
    return QueueUse(
        active=active,
        waiting=waiting,
        max_concurrency=await get_max_concurrency(queue, tenant),
        last_success_at=last[0].finished_at if last else None,
    )


async def get_max_concurrency(queue: Queue, tenant: str | None = None) -> int:
    """What the workers that are alive can run at once, or the limit of the tenant if that is
    less."""
    room = sum(one.concurrency for one in await queue.workers() if one.takes(QUEUE, SCRAPE))
    if tenant is None:
        return room
    key = f"tenant:{tenant}"
    limits = [one.active for one in await queue.limits() if one.key == key]
    return min([room, *(limit for limit in limits if limit is not None)])


async def _count(queue: Queue, tenant: str, states: tuple[JobState, ...]) -> int:
    found = await queue.list(queue=QUEUE, tenant=tenant, state=states, limit=MOST_COUNTED)
    return len(found)
