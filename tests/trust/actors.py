"""Those who use the queue in a simulation beside its workers: they do what applications and people
do, and write down what they see. What each does next is drawn from the world's source of chance."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from tests.trust.stepping import stand
from tests.trust.world import BOUNDED, KEYS, LIMITS, LINE, QUEUES, Part, tried
from windrow.errors import StoreUnavailable
from windrow.ids import new_id
from windrow.queue.job import JobState, NewJob


class Producer(Part):
    async def run(self) -> None:
        acts = (
            *(self._one,) * 4,
            *(self._in_line,) * 3,
            *(self._unique,) * 4,
            *(self._limited,) * 3,
            self._batch,
            *(self._group,) * 2,
            *(self._root,) * 2,
            self._bounded,
        )
        for _ in range(self.chance.randint(3, 7)):
            if self.world.is_closing:
                return
            await tried(self.chance.choice(acts))

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


class Keeper(Part):
    """Does what the leader of the workers does, in no order."""

    async def run(self) -> None:
        store = self.queue.store
        duties: tuple[Callable[[], Awaitable[Any]], ...] = (
            *(store.rescue_jobs,) * 6,
            store.stage_jobs,
            store.promote_jobs,
            store.expire_jobs,
            store.fire_schedules,
            self.queue.tend,
            self.queue.prune,
        )
        while not self.world.is_closing:
            await tried(self.chance.choice(duties))
            await stand(1)


class Meddler(Part):
    """A person with a console."""

    async def run(self) -> None:
        while not self.world.is_closing:
            acts = (self._job, self._job, self._edit, self._queue, self._group)
            await tried(self.chance.choice(acts))
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
