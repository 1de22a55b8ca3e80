"""Held jobs for which there is room become ready, and those held too long fail."""

from __future__ import annotations

from typing import Final

from windrow.queue.store import Store
from windrow.worker.leader import Leader, LedService

BATCH: Final = 1000


class Promoter(LedService):
    seconds = 1.0

    def __init__(self, leader: Leader, store: Store) -> None:
        super().__init__(leader)
        self._store = store

    async def work(self) -> bool:
        expired = await self._store.expire_jobs(BATCH)
        promoted = await self._store.promote_jobs(limit=BATCH)
        return len(expired) == BATCH or promoted >= BATCH
