"""What a store keeps beside its jobs agrees with them: counts, limits in use, groups, and events.

No promise of its own, but what people look at: a count that is off is a fault in the transaction
that moved a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence

from tests.builders import counted, tallied
from tests.trust.checker import Violation
from windrow.queue.events import OLDEST, Event, EventType
from windrow.queue.job import LIVE, Job, JobState
from windrow.queue.queue import Queue


async def audit(queue: Queue) -> list[Violation]:
    """What does not fit together now, at any moment of a run."""
    jobs = await queue.list(limit=10_000)
    tally, count = await tallied(queue.store), await counted(queue.store)
    found = [] if tally == count else [f"the store counts {tally}, and has {count}"]
    found += [words async for words in _over_limits(queue, jobs)]
    found += [words async for words in _miscounted_groups(queue, jobs)]
    found += _shared_keys(jobs)
    return [Violation("bookkeeping", "", words) for words in found]


async def audit_events(queue: Queue, jobs: Sequence[Job]) -> list[Violation]:
    """What events tell that is not so, when all of these jobs, which are all there are, ended."""
    events = [event async for event in queue.events(after=OLDEST, follow=False)]
    return [Violation("bookkeeping", "", words) for words in _told_wrong(jobs, events)]


async def _over_limits(queue: Queue, jobs: Sequence[Job]) -> AsyncIterator[str]:
    for limit in await queue.limits():
        of_key = [job for job in jobs if limit.key in job.limits]
        active = sum(job.state == JobState.ACTIVE for job in of_key)
        in_use = active + sum(job.state == JobState.READY for job in of_key)
        if limit.taken != in_use:
            yield f"{limit.key} has {in_use} jobs in use, and the store says {limit.taken}"
        # Those that ran when it was lowered run on.
        if limit.active is not None and in_use > max(limit.active, active):
            yield f"{limit.key} has {in_use} jobs in use, where {limit.active} may be"


async def _miscounted_groups(queue: Queue, jobs: Sequence[Job]) -> AsyncIterator[str]:
    live = Counter(job.group for job in jobs if job.group and job.state in LIVE)
    for group in await queue.groups(limit=1000):
        if group.pending != live[group.id]:
            yield f"group {group.id} waits for {group.pending} jobs, and has {live[group.id]}"
        if group.state == "active" and group.members and not group.is_open and not group.pending:
            yield f"group {group.id} has nothing to wait for, and has not ended"


def _shared_keys(jobs: Sequence[Job]) -> Iterator[str]:
    of_key: dict[str, list[Job]] = {}
    for job in jobs:
        if job.unique is not None and job.state in LIVE:
            of_key.setdefault(job.unique, []).append(job)
    for key, live in of_key.items():
        # One that follows is held, or paused, until the first has ended.
        first = [job for job in live if job.state not in (JobState.HELD, JobState.PAUSED)]
        if len(live) > 2 or len(first) > 1:
            yield f"key {key!r} has {', '.join(f'{job.id} {job.state}' for job in live)}"


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
