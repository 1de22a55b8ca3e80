"""Schedules that are due enqueue their jobs."""

from __future__ import annotations

from typing import Final

from windrow.queue.store import Store
from windrow.worker.leader import Leader, LedService

BATCH: Final = 100


class Scheduler(LedService):
    seconds = 1.0

    def __init__(self, leader: Leader, store: Store) -> None:
        super().__init__(leader)
        self._store = store

    async def work(self) -> bool:
        return len(await self._store.fire_schedules(BATCH)) >= BATCH
