"""`JobQueue`: four verbs by job id, for a worker loop that knows nothing of leases (J2).

A loop written against the protocol runs on whatever implements it. `LeasingJobQueue` does, on a
`Queue`: it remembers the lease of each job it has claimed and renews it until the job is completed
or failed. What it no longer holds raises `LeaseLost` and changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import msgspec

from windrow.errors import DuplicateJob, LeaseLost, StoreError
from windrow.queue import policy
from windrow.queue.insisting import insist
from windrow.queue.job import Job, NewJob
from windrow.queue.lease import Lease
from windrow.queue.outcome import Done, Outcome, Retry, Snooze

if TYPE_CHECKING:
    from windrow.queue.queue import Queue

logger = logging.getLogger(__name__)

# Shares of a lease's length: when it is renewed, and when again if the database was away.
RENEW_AFTER: Final = 1 / 3
RENEW_AGAIN_AFTER: Final = 1 / 10
# min(600, 30 · 2^attempts) seconds (J3).
BACKOFF: Final = "processing"


class JobQueue(Protocol):
    """What a worker loop needs. Ids are those of the jobs that `claim` returned."""

    async def enqueue(self, job: NewJob) -> str:
        """Its id."""
        ...

    async def claim(self, worker: str) -> Job | None:
        """The next job, or None if there is none now."""
        ...

    async def complete(self, job_id: str) -> None: ...

    async def fail(self, job_id: str, error: str, backoff: float) -> None:
        """It runs again after `backoff` seconds, or is failed if this was its last attempt."""
        ...


class Held(msgspec.Struct):
    lease: Lease
    job: Job
    seconds: float  # how long the lease lasts
    renew_at: float  # monotonic


class LeasingJobQueue:
    """A `JobQueue` on a `Queue`; `async with` hands back what is still held at the end. Use one for
    each loop: two runs of one job under the same one could not be told apart by the job's id."""

    def __init__(
        self,
        queue: Queue,
        queues: Sequence[str] | str | None = None,
        *,
        kinds: Sequence[str] | None = None,
        seconds: float = 30,
        wait: float = 0.0,
    ) -> None:
        self._queue = queue
        self._queues = queues
        self._kinds = kinds
        self._seconds = seconds
        self._wait = wait
        self._held: dict[str, Held] = {}
        self._renewing: asyncio.Task[None] | None = None
        self._has_more = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    @property
    def held(self) -> frozenset[str]:
        """Ids of the jobs that were claimed and are neither completed, failed nor lost."""
        return frozenset(self._held)

    async def enqueue(self, job: NewJob, *, tx: Any = None) -> str:
        """Enqueue a job, in the transaction of `tx` if that is given; its id, or that of the job
        which has its unique key already."""
        [inserted] = await self._queue.enqueue_many([job], tx=tx)
        if inserted.outcome == "rejected":
            raise DuplicateJob(job.unique or inserted.id, inserted.id)
        return inserted.id

    async def claim(self, worker: str | None = None) -> Job | None:
        """The next job, held until it is completed, failed or snoozed."""
        lease = await self._queue.claim(
            self._queues, kinds=self._kinds, seconds=self._seconds, worker=worker, wait=self._wait
        )
        for job in lease.jobs:
            length = job.lease_seconds or self._seconds
            self._held[job.id] = Held(lease, job, length, time.monotonic() + length * RENEW_AFTER)
            self._keep_renewing()
            return job
        return None

    async def complete(
        self, job_id: str, result: Any = None, *, then: Sequence[NewJob] = ()
    ) -> None:
        await self._finish(job_id, lambda job: Done(result, then))

    async def fail(
        self,
        job_id: str,
        error: BaseException | str,
        backoff: float | str | Sequence[float] | policy.Backoff = BACKOFF,
    ) -> None:
        """The run failed; the job runs again after a while, or is failed at `max_attempts`."""
        wait = policy.backoff(backoff)
        await self._finish(job_id, lambda job: Retry(error, after=wait(job.attempts)))

    async def snooze(self, job_id: str, seconds: float) -> None:
        """Not yet: run it again after so many seconds, without using an attempt."""
        await self._finish(job_id, lambda job: Snooze(seconds))

    async def renew(self) -> datetime | None:
        """Hold all of them on; done by itself about three times per lease. `stop_as` of a job that
        somebody asked to stop is set, and one that was lost is held no more."""
        believed = list(self._held.values())
        tokens = sorted({held.job.lease_token for held in believed if held.job.lease_token})
        if not tokens:
            return None
        _put_off(believed, RENEW_AGAIN_AFTER)
        renewal = await self._queue.store.extend_leases(tokens)
        _put_off(believed, RENEW_AFTER)
        for held in believed:
            held.job.stop_as = renewal.stopping.get(held.job.id)
            if held.job.id not in renewal.held and self._drop(held):
                logger.warning("job %s: the lease was lost", held.job.id)
        return renewal.expires_at

    async def close(self) -> None:
        """Stop renewing, and hand back what is still held; no attempt is used."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        for job_id in list(self._held):
            try:
                await self.snooze(job_id, 0)
            except LeaseLost:
                logger.warning("job %s: the lease was lost", job_id)

    async def _finish(self, job_id: str, outcome_of: Callable[[Job], Outcome]) -> None:
        if job_id not in self._held:
            raise LeaseLost(job_id)
        held = self._held[job_id]
        lease, job = held.lease, held.job
        outcome = outcome_of(job)
        try:
            if job.tx.has_begun:
                await lease.finish(job, outcome)  # once: what was written there goes with it
            else:
                await insist(lambda: lease.finish(job, outcome))
        except LeaseLost:
            self._drop(held)
            raise
        self._drop(held)

    def _drop(self, held: Held) -> bool:
        """Whether it was held until now: it may have been finished, or claimed anew, meanwhile."""
        if self._held.get(held.job.id) is not held:
            return False
        del self._held[held.job.id]
        return True

    def _keep_renewing(self) -> None:
        self._has_more.set()
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew_in_time(), name="windrow renewals")

    async def _renew_in_time(self) -> None:
        while True:
            self._has_more.clear()
            due = min((held.renew_at for held in self._held.values()), default=None)
            if due is None:
                await self._has_more.wait()
            elif (pause := due - time.monotonic()) > 0:
                # Not wait_for: on Python 3.11 it swallows a cancellation that comes with the event.
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._has_more.wait()
            else:
                try:
                    await self.renew()
                except StoreError as error:
                    logger.warning("leases could not be renewed, trying again: %s", error)


def _put_off(renewed: Sequence[Held], share: float) -> None:
    now = time.monotonic()
    for held in renewed:
        held.renew_at = now + held.seconds * share
