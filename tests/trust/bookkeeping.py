"""What a store keeps beside its jobs agrees with them at the end: counts, and events.

No promise of its own, but what people look at: a count that is off is a fault in the transaction
that moved a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.builders import counted, tallied
from tests.trust.checker import Violation
from windrow.queue.events import OLDEST, Event, EventType
from windrow.queue.job import Job
from windrow.queue.queue import Queue


async def audit(queue: Queue, jobs: Sequence[Job]) -> list[Violation]:
    """What is off, of these jobs, which are all there are."""
    tally, count = await tallied(queue.store), await counted(queue.store)
    found = [] if tally == count else [f"the store counts {tally}, and has {count}"]
    events = [event async for event in queue.events(after=OLDEST, follow=False)]
    found += _told_wrong(jobs, events)
    return [Violation("bookkeeping", "", words) for words in found]


def _told_wrong(jobs: Sequence[Job], events: Sequence[Event]) -> Iterator[str]:
    of_job: dict[str, list[Event]] = {job.id: [] for job in jobs}
    for event in events:
        if event.job_id in of_job:
            of_job[event.job_id].append(event)
    for job in jobs:
        told = of_job[job.id]
        times = Counter(event.type for event in told)
        if times[EventType.JOB_CREATED] != 1:
            yield f"job {job.id} was created {times[EventType.JOB_CREATED]} times, by its events"
        if times[EventType.JOB_STARTED] != job.runs:
            yield (
                f"job {job.id} was claimed {job.runs} times, and by its events "
                f"{times[EventType.JOB_STARTED]} times"
            )
        ends = [event.state for event in told if event.type == EventType.JOB_FINISHED]
        if not ends or ends[-1] != job.state:
            yield f"job {job.id} is {job.state}, and by its events it ended as {ends}"
