"""The jobs of a test: `drain` runs all there is to run, `assert_enqueued` looks for a job.

`drain` uses the real worker, until nothing is left. Where an assertion fails, the failure says what
was enqueued instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any, Final

from windrow.clock import FakeClock
from windrow.queue.job import Job, JobState
from windrow.queue.outcome import Fail, Outcome, Retry
from windrow.queue.queue import Queue
from windrow.worker.observers import Observer
from windrow.worker.registry import Handler, by_kind
from windrow.worker.worker import Worker

MOST_RUNS: Final = 1000

PAGE: Final = 1000
MOST_LISTED: Final = 20
LONGEST_PAYLOAD: Final = 300
FIELDS: Final = frozenset(name for name in Job.__struct_fields__ if not name.startswith("_"))
ANYTHING: Final[Any] = object()


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


async def assert_enqueued(
    queue: Queue,
    /,
    kind: str,
    payload: Any = ANYTHING,
    *,
    count: int | None = None,
    **expected: Any,
) -> list[Job]:
    """Assert that such a job was enqueued, in whatever state it is now; `count`: exactly so many.
    Returns those found, in the order in which they were enqueued.

    Of a payload that is an object only the members given are compared. Every other field of a job
    can be named too: `queue="mail"`, `priority=8`, `state="scheduled"`.
    """
    wanted = _wanted(kind, payload, expected)
    jobs = await all_jobs(queue)
    found = [job for job in jobs if _fits(job, wanted)]
    if len(found) == count or (found and count is None):
        return found
    how_many = "no job" if not found else "1 job" if len(found) == 1 else f"{len(found)} jobs"
    verb = "was" if len(found) < 2 else "were"
    asked = "" if count is None else f", not {count}"
    raise AssertionError(f"{how_many} with {_said(wanted)} {verb} enqueued{asked}.{_listed(jobs)}")


async def assert_not_enqueued(
    queue: Queue,
    /,
    kind: str | None = None,
    payload: Any = ANYTHING,
    **expected: Any,
) -> None:
    """Assert that no such job was enqueued; with nothing but the queue, none at all."""
    wanted = _wanted(kind, payload, expected)
    found = [job for job in await all_jobs(queue) if _fits(job, wanted)]
    if found:
        what = f"with {_said(wanted)}" if wanted else "at all"
        raise AssertionError(f"no job {what} should have been enqueued.{_listed(found)}")


async def all_jobs(queue: Queue, **filters: Any) -> list[Job]:
    """Every job there is, the one enqueued first in front."""
    found: list[Job] = []
    after: str | None = None
    while page := await queue.list(**filters, after=after, limit=PAGE):
        found += page
        after = page[-1].id
    return sorted(found, key=lambda job: job.seq)


def _wanted(kind: str | None, payload: Any, expected: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := sorted(set(expected) - FIELDS):
        raise TypeError(f"a job has no {', '.join(unknown)}; it has {', '.join(sorted(FIELDS))}")
    wanted = dict(expected)
    if payload is not ANYTHING:
        wanted = {"payload": payload, **wanted}
    return wanted if kind is None else {"kind": kind, **wanted}


def _fits(job: Job, wanted: Mapping[str, Any]) -> bool:
    return all(_matches(getattr(job, name), value) for name, value in wanted.items())


def _matches(actual: Any, wanted: Any) -> bool:
    """Whether a value is the one wanted, or an object with all that is wanted of it."""
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        return all(
            name in actual and _matches(actual[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, tuple | list) and isinstance(actual, tuple | list):
        return list(wanted) == list(actual)
    return bool(actual == wanted)


def _said(wanted: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in wanted.items())


def _listed(jobs: Sequence[Job]) -> str:
    if not jobs:
        return " Nothing was enqueued."
    lines = [
        f"  {job.kind}  {_shortened(repr(job.payload))}  (queue {job.queue}, {job.state})"
        for job in jobs[:MOST_LISTED]
    ]
    if len(jobs) > MOST_LISTED:
        lines.append(f"  and {len(jobs) - MOST_LISTED} more")
    return "\n".join([" These were:", *lines])


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_PAYLOAD else f"{text[:LONGEST_PAYLOAD]}…"
