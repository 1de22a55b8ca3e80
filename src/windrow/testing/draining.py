"""Running all there is to run, with the real worker, until nothing is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Final

from windrow.clock import FakeClock
from windrow.queue.job import Job, JobState
from windrow.queue.outcome import Fail, Outcome, Retry
from windrow.queue.queue import Queue
from windrow.testing.asserting import all_jobs
from windrow.worker.observers import Observer
from windrow.worker.registry import Handler, by_kind
from windrow.worker.worker import Worker

MOST_RUNS: Final = 1000


async def drain(
    queue: Queue,
    handlers: Iterable[Handler | ModuleType],
    *,
    queues: Sequence[str] | str | None = None,
    scheduled: bool = False,
    concurrency: int = 1,
    raise_errors: bool = False,
    most: int = MOST_RUNS,
) -> list[Job]:
    """Run the jobs of these handlers until none is ready, those they enqueue too; every job that
    ran, as it is then, in the order in which they first ran.

    With `scheduled`, jobs that wait for their time are run as well, the earliest first: delays,
    snoozes and the retries of what failed. A fake clock is moved on to their time; without one
    they are brought forward. With `raise_errors` the first error of a handler is raised at the end.
    More than `most` runs are an AssertionError: some job never comes to an end.
    """
    known = by_kind(handlers)
    record = Record(most)
    while True:
        worker = Worker(
            queue,
            known.values(),
            concurrency=concurrency,
            queues=queues,
            announce=False,
            maintain=False,  # a worker that runs until it is idle tends the queue by itself
            observers=[record],
        )
        record.worker = worker
        await worker.run(until_idle=True, wait_for_retries=0)
        record.check()
        if not scheduled or not await _move_to_next(queue, frozenset(known), queues):
            break
    if raise_errors and record.errors:
        raise record.errors[0]
    found = await queue.get_many(list(record.runs))
    return [found[job_id] for job_id in record.runs if job_id in found]


class Record(Observer):
    """What ran, and which errors there were."""

    def __init__(self, most: int) -> None:
        self.worker: Worker | None = None
        self.runs: dict[str, str] = {}  # the kind by the job's id, in the order of the first runs
        self.errors: list[BaseException] = []
        self._most = most
        self._count = 0

    def started(self, job: Job) -> None:
        self.runs.setdefault(job.id, job.kind)
        self._count += 1
        if self._count > self._most and self.worker is not None:
            self.worker.stop()

    def ended(self, job: Job, outcome: Outcome | None, seconds: float) -> None:
        if isinstance(outcome, Retry | Fail) and isinstance(outcome.error, BaseException):
            self.errors.append(outcome.error)

    def check(self) -> None:
        if self._count > self._most:
            kinds = ", ".join(sorted(set(self.runs.values())))
            raise AssertionError(
                f"drain() stopped after {self._most} runs of {len(self.runs)} jobs ({kinds}): does "
                "one snooze or enqueue itself for ever? drain(most=…) allows more"
            )


async def _move_to_next(
    queue: Queue, kinds: frozenset[str], queues: Sequence[str] | str | None
) -> bool:
    """Let the next scheduled jobs become due; False if there are none."""
    named = {queues} if isinstance(queues, str) else None if queues is None else set(queues)
    waiting = [
        job
        for job in await all_jobs(queue, state=JobState.SCHEDULED)
        if job.kind in kinds and (named is None or job.queue in named)
    ]
    if not waiting:
        return False
    first = min(job.run_at for job in waiting)
    clock = queue.store.clock
    if isinstance(clock, FakeClock):
        clock.advance(max(0.0, (first - clock.now()).total_seconds()))
        return True
    # The database's clock may be a little behind this one.
    past = datetime.now(UTC) - timedelta(minutes=1)
    for job in waiting:
        if job.run_at != first:
            continue
        if queue.store.capabilities.edits:
            await queue.edit(job.id, run_at=min(past, first))
        else:
            await queue.retry(job.id)
    return True
