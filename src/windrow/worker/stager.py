"""Scheduled jobs that are due become ready."""

from __future__ import annotations

from typing import Final

from windrow.queue.store import Store
from windrow.worker.leader import Leader, LedService

BATCH: Final = 1000


class Stager(LedService):
    seconds = 0.5

    def __init__(self, leader: Leader, store: Store) -> None:
        super().__init__(leader)
        self._store = store

    async def work(self) -> bool:
        return await self._store.stage_jobs(BATCH) == BATCH
