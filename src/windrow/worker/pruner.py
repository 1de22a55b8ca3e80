"""Finished jobs that are past their time are removed."""

from __future__ import annotations

from windrow.queue.queue import Queue
from windrow.worker.leader import Leader, LedService
from windrow.worker.observers import Observers


class Pruner(LedService):
    seconds = 60.0

    def __init__(self, leader: Leader, queue: Queue, observers: Observers) -> None:
        super().__init__(leader)
        self._queue = queue
        self._observers = observers

    async def work(self) -> bool:
        pruned = await self._queue.prune()
        if pruned.jobs:
            self._observers.pruned(pruned.jobs)
        await self._queue.store.fold_counts()
        return False
