"""A queue at a glance, again and again: counts, throughput, workers, what runs. It is read from
totals and short lists, so it may be looked at every second however many jobs there are."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from windrow.queue.job import FINAL, JobState
from windrow.queue.queue import Queue
from windrow.queue.records import LimitInfo, QueueInfo, WorkerInfo
from windrow.services.tenant_queue import TenantQueue

MOST_RUNNING: Final = 100


@dataclass(frozen=True, slots=True)
class Rate:
    """Jobs that ended per second: between the last two looks, and since the first."""

    now: float = 0.0
    mean: float = 0.0


@dataclass(frozen=True, slots=True)
class RunningJob:
    """What tells it from others."""

    id: str
    kind: str
    queue: str
    worker: str | None


@dataclass(frozen=True, slots=True)
class Glance:
    """One look. A tenant sees its own jobs and limit, and no workers: they run for all."""

    at: datetime
    queues: list[QueueInfo]
    workers: list[WorkerInfo]
    running: list[RunningJob]  # the newest of them
    limits: list[LimitInfo]  # those in use; what is held is not counted
    sees_all: bool = True


@dataclass(frozen=True, slots=True)
class Overview(Glance):
    rates: Mapping[str, Rate] = field(default_factory=dict)  # by queue

    def count(self, state: JobState) -> int:
        return sum(info.counts.get(state, 0) for info in self.queues)

    @property
    def rate(self) -> Rate:
        """Of all queues together."""
        rates = self.rates.values()
        return Rate(sum(rate.now for rate in rates), sum(rate.mean for rate in rates))


class Place(Protocol):
    """Where a queue can be looked at: here, or at a server."""

    async def glance(self) -> Glance: ...
    async def pause(self, name: str) -> None: ...
    async def resume(self, name: str) -> None: ...


class OwnPlace:
    """A queue of our own, as a tenant or (None) somebody who sees all may see it."""

    def __init__(self, queue: Queue, tenant: str | None = None) -> None:
        self._queue = TenantQueue(queue, tenant)
        self.pause = self._queue.pause
        self.resume = self._queue.resume

    async def glance(self) -> Glance:
        queue, tenant = self._queue.queue, self._queue.tenant
        running = await self._queue.list(state=JobState.ACTIVE, limit=MOST_RUNNING)
        return Glance(
            at=queue.store.clock.now() or datetime.now(UTC),
            queues=await self._queue.list_queues(),
            workers=await queue.workers() if tenant is None else [],
            running=[RunningJob(job.id, job.kind, job.queue, job.worker) for job in running],
            limits=await self._queue.list_limits(),
            sees_all=tenant is None,
        )


class Watch:
    """Looks at a queue and remembers what it saw, to tell how fast it goes."""

    def __init__(self, place: Queue | Place) -> None:
        self._place = OwnPlace(place) if isinstance(place, Queue) else place
        self._began: float | None = None
        self._looked = 0.0
        self._ended: dict[str, int] = {}  # by queue, at the last look
        self._since: dict[str, int] = {}  # by queue, ended since the first look

    async def look(self) -> Overview:
        seen = await self._place.glance()
        fields = {name: getattr(seen, name) for name in Glance.__slots__}
        return Overview(**fields, rates=self._measure(seen.queues, time.monotonic()))

    async def toggle(self, name: str) -> None:
        """Pause a queue, or resume it if it is paused."""
        queues = (await self._place.glance()).queues
        paused = {info.name for info in queues if info.is_paused}
        await (self._place.resume(name) if name in paused else self._place.pause(name))

    def _measure(self, queues: Sequence[QueueInfo], now: float) -> dict[str, Rate]:
        ended = {info.name: sum(info.counts.get(state, 0) for state in FINAL) for info in queues}
        if self._began is None:
            self._began, self._looked, self._ended = now, now, ended
            return dict.fromkeys(ended, Rate())
        rates = {}
        for name, total in ended.items():
            # Fewer than before: old ones were removed meanwhile, and hide what ended.
            more = max(0, total - self._ended.get(name, 0))
            self._since[name] = self._since.get(name, 0) + more
            rates[name] = Rate(
                more / max(now - self._looked, 0.001),
                self._since[name] / max(now - self._began, 0.001),
            )
        self._looked, self._ended = now, ended
        return rates
