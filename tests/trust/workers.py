"""Those who run jobs in a simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tests.trust.stepping import stand
from tests.trust.world import BOUNDED, LEASE_SECONDS, LIMITS, LINE, QUEUES, ROWS, Part, World, tried
from windrow.errors import LeaseLost, RunEnded, StoreConflict, StoreUnavailable
from windrow.ids import new_id
from windrow.queue.job import LIVE, Job, JobState, NewJob
from windrow.queue.lease import Lease, to_finish
from windrow.queue.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze
from windrow.queue.records import Claim


class Worker(Part):
    def __init__(self, world: World, name: str, store: Any) -> None:
        super().__init__(world, name, store)
        if world.happens(0.8):
            self.queue._tended_at = math.inf  # the keeper does it

    async def run(self) -> None:
        while not self.world.is_closing:
            await tried(self.round)
            await stand(0.1)

    async def round(self) -> int:
        """Claim some jobs and run them; how many."""
        self.history.write("asked")
        lease: Lease | None = await self.queue.claim(
            limit=self.chance.choice((1, 1, 2, 3)), seconds=LEASE_SECONDS, worker=self.history.by
        )
        count = 0
        while lease:
            for job in lease.jobs if not count else ():
                self.history.of(job, "claimed")
            count += len(lease.jobs)
            if len(lease.jobs) > 1 and self.world.happens(0.3):
                await self._run_together(lease)
                break
            for job in lease.jobs[:-1]:
                await self._run(lease, job)
            lease = await self._run(lease, lease.jobs[-1], is_last=True)
        return count

    async def _run(self, lease: Lease, job: Job, *, is_last: bool = False) -> Lease | None:
        """Run a job; what was claimed with its end, if that was tried."""
        self.history.of(job, "started")
        try:
            await self._handle(lease, job)
        except LeaseLost:
            if self.world.happens(0.5):
                await job.tx.rollback()
                return None  # a good worker stops here, another tries what it can still do
        except StoreUnavailable:
            self.history.of(job, "effect", note="the store was away")
        outcome = self._outcome(job)
        self.history.of(job, "ended")
        if is_last and not job.has_begun_tx and self.world.happens(0.4):
            return await self._finish_and_claim(job, outcome)
        await self._finish(lease, job, outcome)
        if self.world.happens(0.1):
            await self._finish(lease, job, outcome)  # as if nobody had told it
        return None

    async def _run_together(self, lease: Lease) -> None:
        """Run all jobs of a lease, and end them in one transaction."""
        ends = [(job, self._outcome(job)) for job in lease.jobs]
        for job, _ in ends:
            self.history.of(job, "started")
            if job.kind == "finish":
                self.history.write("group_finished", job.id, group=job.payload["group"])
            await stand(0.1)
            self.history.of(job, "ended")
        lost: Sequence[str] = ()
        try:
            await lease.finish_many(ends)
        except (LeaseLost, RunEnded) as error:
            lost = error.job_ids
        for job, outcome in ends:
            self._noted(job, outcome, accepted=job.id not in lost)

    async def _finish_and_claim(self, job: Job, outcome: Outcome) -> Lease:
        """In one transaction, as workers do; on losing the reply it waits for its leases."""
        store, limits = self.queue.store, self.queue.size_limits
        claim = Claim(queues=None, limit=2, seconds=LEASE_SECONDS, worker=self.history.by)
        self.history.write("asked")
        finished = await store.finish_jobs([to_finish(job, outcome, limits)], claim=claim)
        for one in finished.claimed:
            self.history.of(one, "claimed")
        self._noted(job, outcome, accepted=not finished.lost)
        return Lease(store, finished.claimed, limits)

    async def _handle(self, lease: Lease, job: Job) -> None:
        if job.kind == "finish":
            self.history.write("group_finished", job.id, group=job.payload["group"])
        if job.kind == "root":
            await self._fan_out(job)
        if self.world.happens(0.35):
            await self._step(job)
        for _ in range(self.chance.choice((0, 1, 5))):
            await stand(1)
        if self.world.happens(0.3):
            self.history.of(job, "holds")
            await lease.renew()
            if job.id in lease._open:  # it may have been told before that this one is lost
                self.history.of(job, "renewed")
        if self.world.happens(0.5):
            await job.tx.execute(f"INSERT INTO {ROWS} (job) VALUES ($1)", job.id)
            self.history.of(job, "written")

    async def _step(self, job: Job) -> None:
        """What the first run to take it got is what every later one gets."""
        looked: list[int] = []

        def look() -> int:
            looked.append(job.runs)
            self.history.of(job, "holds")
            return job.runs

        value = await job.step("look", look)
        if looked:
            self.history.of(job, "kept")
        kept = self.world.steps.setdefault(job.id, value)
        if kept != value and job.unique is None:
            self.world.wrong.append(f"a step of job {job.id} was {kept}, and later {value}")

    async def _fan_out(self, job: Job) -> None:
        group = await self.queue.create_group(root=job)
        self.world.groups.setdefault(group.id, False)
        members = [NewJob("work", group=group.id, group_key=f"page-{n}") for n in range(2)]
        await tried(lambda: self.queue.enqueue_many(members))

    def _outcome(self, job: Job) -> Outcome:
        if job.kind == "finish" or self.world.is_closing:
            return Done({"run": job.runs})
        draw = self.chance.random()
        if draw < 0.6:
            follow_up = NewJob("work", id=new_id(), queue="default", max_crashes=9)
            return Done({"run": job.runs}, then=[follow_up] if draw < 0.06 else ())
        if draw < 0.75:
            return Retry("not yet", after=self.chance.choice((0, 5)))
        if draw < 0.9:
            return Snooze(self.chance.choice((0, 0, 3)))
        return Fail("never") if draw < 0.95 else Cancel("not wanted")

    async def _finish(self, lease: Lease, job: Job, outcome: Outcome) -> None:
        """Say how it ended; again if there is no reply, but not for ever."""
        for _ in range(self.chance.randint(1, 3)):
            try:
                await lease.finish(job, outcome)
            except (LeaseLost, RunEnded):
                self._noted(job, outcome, accepted=False)
                return
            except StoreConflict:
                # What was written in its transaction was lost, so it was handed back.
                self.history.of(job, "finished", outcome="snooze")
                return
            except StoreUnavailable:
                continue
            self._noted(job, outcome, accepted=True)
            return

    def _noted(self, job: Job, outcome: Outcome, *, accepted: bool) -> None:
        word = type(outcome).__name__.lower()
        self.history.of(job, "finished", outcome=word, accepted=accepted)
        if accepted and isinstance(outcome, Done):
            for one in outcome.then:
                self.history.write("enqueued", str(one.id))


async def settle(world: World, store: Any) -> None:
    """Nobody meddles any more: whatever waits for a person or for time gets it, until all is over.
    A bounded number of times, since what does not end then is to be found."""
    worker = Worker(world, "closer", store)
    queue = worker.queue
    for name in (*QUEUES, BOUNDED, LINE):
        await queue.resume(name)
    for key in LIMITS:
        await queue.park_key(key, None)
    for _ in range(50):
        for job in await queue.list(state=JobState.PAUSED, limit=1000):
            await queue.resume_job(job.id)
        for group in await queue.groups(is_paused=True, limit=1000):
            await queue.resume_group(group.id)
        for group in await queue.groups(state="active", limit=1000):
            await queue.close_group(group.id)
        world.clock.advance(60)
        await queue.tend()
        while await worker.round():
            pass
        counts = await queue.counts()
        if not any(counts[state] for state in LIVE):
            return
