"""Those who use the queue in a simulation: they do what applications do, and write down what they
see. What each does next is drawn from the world's one source of chance."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any, Final

from tests.trust.history import Entry, History
from tests.trust.stepping import stand
from windrow.clock import FakeClock
from windrow.errors import (
    LeaseLost,
    QueueError,
    StoreConflict,
    StoreUnavailable,
)
from windrow.queue.ids import new_id
from windrow.queue.job import FINAL, LIVE, Job, JobState, NewJob
from windrow.queue.lease import Lease, to_finish
from windrow.queue.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze
from windrow.queue.queue import Queue
from windrow.queue.records import Claim
from windrow.queue.retaining import Upkeep

LIMITS: Final = {"host:a": 1, "host:b": 2}
KEYS: Final = ("customer-1", "customer-2")
QUEUES: Final = ("default", "other")
LINE: Final = "line"  # the queue in which the order is promised, so nobody meddles with it
BOUNDED: Final = "bounded"
ROWS: Final = "simulated_rows"
LEASE_SECONDS: Final = 10


@dataclass(slots=True)
class World:
    """What all actors share."""

    chance: Random
    clock: FakeClock
    entries: list[Entry]
    jobs: list[str] = field(default_factory=list)  # that somebody may meddle with
    groups: dict[str, bool] = field(default_factory=dict)  # whether they have a finish job
    steps: dict[str, int] = field(default_factory=dict)  # what jobs got of theirs
    wrong: list[str] = field(default_factory=list)  # what somebody saw that cannot be
    is_closing: bool = False

    def history(self, by: str) -> History:
        return History(self.entries, by, lambda: self.clock.now().timestamp())

    def happens(self, share: float) -> bool:
        return self.chance.random() < share


class Part:
    """An actor's view: its queue and its history."""

    def __init__(self, world: World, name: str, store: Any) -> None:
        self.world = world
        self.chance = world.chance
        self.history = world.history(name)
        self.queue = Queue(store, upkeep=Upkeep(archive_dir=self._archive))  # type: ignore[arg-type]

    def _archive(self, jobs: Sequence[Job]) -> None:
        """What is about to be pruned. A live job has no business here, and will be missed."""
        for job in jobs:
            if job.state in FINAL:
                self.history.write("removed", job.id)


class Producer(Part):
    async def run(self) -> None:
        acts = (
            *(self._one,) * 4,
            *(self._in_line,) * 3,
            *(self._unique,) * 4,
            *(self._limited,) * 3,
            self._batch,
            self._group,
            self._bounded,
            self._root,
        )
        for _ in range(self.chance.randint(3, 7)):
            if self.world.is_closing:
                return
            await _tried(self.chance.choice(acts))

    async def _one(self) -> None:
        await self._enqueue(self._job())

    async def _in_line(self) -> None:
        job = NewJob(
            "work", queue=LINE, priority=self.chance.choice((1, 5, 9)), id=new_id(), max_crashes=9
        )
        await self._enqueue(job, is_open_to_meddling=False)

    async def _unique(self) -> None:
        conflict = self.chance.choice(("return", "reject", "replace", "follow"))
        await self._enqueue(self._job(unique=self.chance.choice(KEYS), on_conflict=conflict))

    async def _limited(self) -> None:
        keys = self.chance.choice((("host:a",), ("host:b",), ("host:b", "host:a")))
        hold = self.chance.choice((None, None, 30))
        await self._enqueue(self._job(limits=keys, max_hold=hold))

    async def _batch(self) -> None:
        await self._enqueue(*(self._job() for _ in range(self.chance.randint(2, 4))))

    async def _bounded(self) -> None:
        await self._enqueue(self._job(queue=BOUNDED))

    async def _root(self) -> None:
        await self._enqueue(self._job(kind="root"), is_open_to_meddling=self.world.happens(0.3))

    async def _group(self) -> None:
        group, hold = new_id(), self.world.happens(0.5)
        then = NewJob("finish", {"group": group}, max_crashes=9, max_attempts=9)
        with_finish = self.world.happens(0.8)
        self.world.groups[group] = with_finish
        await self.queue.create_group(id=group, then=then if with_finish else None, hold=hold)
        for number in range(self.chance.randint(1, 3)):
            key = None if self.world.happens(0.5) else f"page-{number}"
            await self._enqueue(self._job(group=group, group_key=key))
        if hold:
            await self.queue.close_group(group)

    def _job(self, kind: str = "work", **fields: Any) -> NewJob:
        defaults: dict[str, Any] = {
            "queue": self.chance.choice(QUEUES),
            "delay": self.chance.choice((None, None, None, 5)),
            "priority": self.chance.choice((1, 5)),
            "max_attempts": self.chance.randint(1, 3),
            "max_crashes": self.chance.randint(1, 3),
            "retention": self.chance.choice((None, None, 60)),
            "id": new_id() if self.world.happens(0.5) else None,
        }
        return NewJob(kind, **(defaults | fields))

    async def _enqueue(self, *jobs: NewJob, is_open_to_meddling: bool = True) -> None:
        for job in jobs:
            note = job.on_conflict if job.unique else None
            self.history.write("offered", job.id or "", key=job.unique, note=note)
        try:
            outcomes = await self.queue.enqueue_many(jobs)
        except StoreUnavailable:
            if any(job.id is None for job in jobs) or self.world.happens(0.3):
                raise
            outcomes = await self.queue.enqueue_many(jobs)  # the same ids: it cannot double
        for job, stored in zip(jobs, outcomes, strict=True):
            self.history.write(
                "enqueued",
                stored.id,
                outcome=_stored_as(job, stored.outcome, stored.id),
                key=job.unique,
                group=job.group,
                queue=job.queue,
                priority=job.priority if job.queue == LINE else None,
                note="follow" if job.on_conflict == "follow" else None,
            )
            if is_open_to_meddling:
                self.world.jobs.append(stored.id)


def _stored_as(job: NewJob, outcome: str, stored_id: str) -> str:
    """A repeated insert finds its own first try, which was stored, then."""
    return "inserted" if outcome == "existing" and stored_id == job.id else outcome


class Worker(Part):
    def __init__(self, world: World, name: str, store: Any) -> None:
        super().__init__(world, name, store)
        if world.happens(0.8):
            self.queue._tended_at = math.inf  # the keeper does it

    async def run(self) -> None:
        while not self.world.is_closing:
            await _tried(self.round)
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
        if self.world.happens(0.2):
            await self._step(job)
        if self.world.happens(0.4):
            await stand(1)
        if self.world.happens(0.3):
            await lease.renew()
            self.history.of(job, "renewed")
        if self.world.happens(0.5):
            await job.tx.execute(f"INSERT INTO {ROWS} (job) VALUES ($1)", job.id)
            self.history.of(job, "written")

    async def _step(self, job: Job) -> None:
        """What the first run to take it got is what every later one gets."""
        value = await job.step("look", lambda: job.runs)
        kept = self.world.steps.setdefault(job.id, value)
        if kept != value and job.unique is None:
            self.world.wrong.append(f"a step of job {job.id} was {kept}, and later {value}")

    async def _fan_out(self, job: Job) -> None:
        group = await self.queue.create_group(root=job)
        self.world.groups.setdefault(group.id, False)
        members = [NewJob("work", group=group.id, group_key=f"page-{n}") for n in range(2)]
        await _tried(lambda: self.queue.enqueue_many(members))

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
            except LeaseLost:
                self._noted(job, outcome, accepted=False)
                return
            except StoreConflict:
                return  # what was written in its transaction was lost: it was handed back
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


class Keeper(Part):
    """Does what the leader of the workers does, in no order."""

    async def run(self) -> None:
        store = self.queue.store
        duties: tuple[Callable[[], Awaitable[Any]], ...] = (
            store.rescue_jobs,
            store.stage_jobs,
            store.promote_jobs,
            store.expire_jobs,
            store.fire_schedules,
            self.queue.tend,
            self.queue.prune,
        )
        while not self.world.is_closing:
            await _tried(self.chance.choice(duties))
            await stand(1)


class Meddler(Part):
    """A person with a console."""

    async def run(self) -> None:
        while not self.world.is_closing:
            acts = (self._job, self._job, self._edit, self._queue, self._group)
            await _tried(self.chance.choice(acts))
            await stand(1)

    async def _job(self) -> None:
        if not self.world.jobs:
            return
        job = self.chance.choice(self.world.jobs)
        match self.chance.choice(
            ("cancel", "pause", "resume", "resume", "retry", "retry", "delete")
        ):
            case "cancel":
                await self.queue.cancel(job)
            case "pause":
                await self.queue.pause_job(job)
            case "resume":
                await self.queue.resume_job(job)
            case "retry":
                states = await self.queue.store.get_states([job])
                if states.get(job) in (JobState.FAILED, JobState.CANCELLED, JobState.SCHEDULED):
                    self.history.write("retried", job)
                    await self.queue.retry(job)
            case "delete" if self.world.happens(0.3):
                self.history.write("removed", job)
                await self.queue.delete(job)

    async def _edit(self) -> None:
        if not self.world.jobs:
            return
        changes: dict[str, Any] = self.chance.choice(
            (
                {"priority": 9},
                {"queue": self.chance.choice(QUEUES)},
                {"limits": self.chance.choice(([], ["host:a"], ["host:b", "host:a"]))},
                {"run_at": self.world.clock.now() + timedelta(seconds=self.chance.choice((0, 9)))},
            )
        )
        await self.queue.edit(self.chance.choice(self.world.jobs), **changes)

    async def _queue(self) -> None:
        queue = self.chance.choice(QUEUES)
        key, most = self.chance.choice(list(LIMITS.items()))
        match self.chance.choice(("pause", "resume", "resume", "limit", "park")):
            case "pause":
                await self.queue.pause(queue)
            case "resume":
                await self.queue.resume(queue)
            case "limit":
                await self.queue.set_limit(key, active=self.chance.randint(1, most))
            case "park":
                await self.queue.park_key(key, self.chance.choice((5, None)))

    async def _group(self) -> None:
        if not self.world.groups:
            return
        group = self.chance.choice(list(self.world.groups))
        match self.chance.choice(("pause", "resume", "resume", "cancel")):
            case "pause":
                await self.queue.pause_group(group)
            case "resume":
                await self.queue.resume_group(group)
            case "cancel" if self.world.happens(0.3):
                await self.queue.cancel_group(group)


async def _tried(act: Callable[[], Awaitable[Any]]) -> Any:
    """What the queue refuses, or cannot do now, is no reason to stop."""
    try:
        return await act()
    except QueueError:
        return None


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
