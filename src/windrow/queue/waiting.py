"""Waiting for jobs to end, from any process: a bell says when to look. In case it does not, the
database is asked anyway, soon at first, then less often.

A job that was there and is not any more was removed while it was waited for: that is an error of
its own, not a time-out and not a missing job.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, TypeVar, overload

import msgspec

from windrow.errors import JobNotFound, JobRacedOut, StoreError, StoreUnavailable, WaitTimeout
from windrow.ids import plain_id
from windrow.logging import event
from windrow.queue.bells import jittered
from windrow.queue.job import FINAL, Job, JobState
from windrow.queue.records import Claim
from windrow.queue.store import Store

logger = logging.getLogger(__name__)

R = TypeVar("R")

FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 5.0
# For this long the first wait is kept: most jobs that are waited for end soon.
PATIENCE_SECONDS: Final = 5.0
BACKOFF: Final = 1.5
MAX_CHECKED: Final = 20  # jobs that are waited for in vain and looked at for a reason
# Who waits for work looks as often as this at least: jobs become due without any event.
CLAIM_SECONDS: Final = 1.0


class Waiting:
    """The part of a queue that waits: for jobs to end, for jobs to claim."""

    store: Store

    async def _wait_for_jobs(
        self, claim: Callable[[Claim], Awaitable[list[Job]]], wanted: Claim, seconds: float
    ) -> list[Job]:
        """Claim as soon as there is something, or give up after so many seconds."""
        deadline = time.monotonic() + seconds
        async with self.store.listen_for_work(wanted.queues) as bell:
            while not (jobs := await claim(wanted)):
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                await bell.wait(min(left, jittered(CLAIM_SECONDS)))
        return jobs

    @overload
    async def wait(self, job_id: str, *, timeout: float | None = None) -> Job: ...
    @overload
    async def wait(self, job: Job[R], /, *, timeout: float | None = None) -> Job[R]: ...
    async def wait(self, job_id: str | Job[Any], *, timeout: float | None = None) -> Job[Any]:
        """Wait until the job has ended and return it with its result. With a `Job` in place of
        the id, the result has the type of that job. Raises JobNotFound, JobRacedOut if it was
        removed meanwhile, and WaitTimeout after `timeout` seconds.

        An outage of the database, a restart for example, is waited out; StoreUnavailable is raised
        if it lasts when the time is up."""
        wanted = job_id.id if isinstance(job_id, Job) else job_id
        ended = (await self.wait_many([wanted], timeout=timeout))[plain_id(wanted)]
        return ended.decode_result_as(job_id.result_type) if isinstance(job_id, Job) else ended

    async def wait_many(
        self, job_ids: Sequence[str], *, timeout: float | None = None
    ) -> dict[str, Job]:
        """Wait until all these jobs have ended; one query for all of them each time."""
        awaited = Awaited(tuple(dict.fromkeys(map(plain_id, job_ids))))
        outage: StoreUnavailable | None = None
        has_checked = False
        async with self.store.listen_for_ends(awaited.job_ids) as bell:
            for pause in pauses(timeout):
                try:
                    await awaited.look(self.store)
                    outage = None
                except StoreUnavailable as error:
                    if outage is None:
                        logger.warning(
                            "waiting for the database to come back: %s",
                            error,
                            extra=event("database.unavailable", error=str(error)),
                        )
                    outage = error
                if not awaited.left:
                    return awaited.ended
                if pause > FIRST_WAIT and not has_checked:
                    has_checked = True
                    await self._warn_unserved(awaited.left)
                # The last, shorter pause is up to the deadline and is kept as it is.
                await bell.wait(jittered(pause) if pause >= FIRST_WAIT else pause)
        if outage is None and not has_checked:
            await self._warn_unserved(awaited.left)
        raise outage or WaitTimeout(*awaited.left)

    async def _warn_unserved(self, job_ids: Sequence[str]) -> None:
        """Log if one of these jobs waits for a worker that there is not. Tenants see no workers."""
        if self.store.tenant is not None:
            return
        try:
            jobs = await self.store.get_jobs(job_ids[:MAX_CHECKED])
            workers = await self.store.list_workers()
        except StoreError:
            return  # the wait goes on, or ends, as it would have
        for job in jobs.values():
            if job.state is JobState.READY and not any(
                worker.takes(job.queue, job.kind) for worker in workers
            ):
                logger.warning(
                    "job %s waits: no registered worker runs kind %r from queue %r",
                    job.id,
                    job.kind,
                    job.queue,
                    extra=event("job.unserved", job_id=job.id, kind=job.kind, queue=job.queue),
                )
                return


class Awaited(msgspec.Struct):
    """Jobs that are waited for, and what was seen of them so far."""

    job_ids: tuple[str, ...]
    ended: dict[str, Job] = msgspec.field(default_factory=dict)
    seen: set[str] = msgspec.field(default_factory=set)

    @property
    def left(self) -> list[str]:
        return [job_id for job_id in self.job_ids if job_id not in self.ended]

    async def look(self, store: Store) -> None:
        left = self.left
        states = await store.get_states(left)
        if missing := [job_id for job_id in left if job_id not in states]:
            raise _missing(missing, self.seen)
        self.seen.update(states)
        done = [job_id for job_id, state in states.items() if state in FINAL]
        found = await store.get_jobs(done) if done else {}
        if gone := [job_id for job_id in done if job_id not in found]:
            raise _missing(gone, self.seen)
        self.ended |= found


def pauses(timeout: float | None) -> Iterator[float]:
    """How long to sleep between looks; ends with the last look at the deadline."""
    began = time.monotonic()
    pause = FIRST_WAIT
    while True:
        passed = time.monotonic() - began
        if timeout is not None and passed >= timeout:
            yield 0.0
            return
        if passed > PATIENCE_SECONDS:
            pause = min(LONGEST_WAIT, pause * BACKOFF)
        yield pause if timeout is None else min(pause, timeout - passed)


def _missing(ids: Sequence[str], seen: set[str]) -> JobNotFound | JobRacedOut:
    raced = [job_id for job_id in ids if job_id in seen]
    return JobRacedOut(*raced) if raced else JobNotFound(*ids)
