"""A queue at a glance, again and again: counts, throughput, workers, what runs. It is read from
totals and short lists, so it may be looked at every second however many jobs there are."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from windrow.queue.job import FINAL, Job, JobState
from windrow.queue.queue import Queue
from windrow.queue.records import LimitInfo, QueueInfo, WorkerInfo

MOST_RUNNING: Final = 100


@dataclass(frozen=True, slots=True)
class Rate:
    """Jobs that ended per second: between the last two looks, and since the first."""

    now: float = 0.0
    mean: float = 0.0


@dataclass(frozen=True, slots=True)
class Overview:
    at: datetime
    queues: Sequence[QueueInfo]
    rates: Mapping[str, Rate]  # by queue
    workers: Sequence[WorkerInfo]
    running: Sequence[Job]  # the newest of them
    limits: Sequence[LimitInfo]  # those in use; what is held is not counted

    def count(self, state: JobState) -> int:
        return sum(info.counts.get(state, 0) for info in self.queues)

    @property
    def rate(self) -> Rate:
        """Of all queues together."""
        rates = self.rates.values()
        return Rate(sum(rate.now for rate in rates), sum(rate.mean for rate in rates))


class Watch:
    """Looks at a queue and remembers what it saw, to tell how fast it goes."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._began: float | None = None
        self._looked = 0.0
        self._ended: dict[str, int] = {}  # by queue, at the last look
        self._since: dict[str, int] = {}  # by queue, ended since the first look

    async def look(self) -> Overview:
        store = self._queue.store
        queues = await self._queue.queues()
        return Overview(
            at=store.clock.now() or datetime.now(UTC),
            queues=queues,
            rates=self._measure(queues, time.monotonic()),
            workers=await self._queue.workers(),
            running=await self._queue.list(state=JobState.ACTIVE, limit=MOST_RUNNING),
            limits=[one for one in await store.list_limits(counts_held=False) if one.in_use],
        )

    async def toggle(self, name: str) -> None:
        """Pause a queue, or resume it if it is paused."""
        paused = {info.name for info in await self._queue.queues() if info.is_paused}
        await (self._queue.resume(name) if name in paused else self._queue.pause(name))

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
