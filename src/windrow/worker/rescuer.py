"""Jobs whose lease ran out are run again, or fail when they have crashed too often."""

from __future__ import annotations

import logging
from typing import Final

from windrow.queue.store import Store
from windrow.worker.leader import Leader, LedService
from windrow.worker.observers import Observers

logger = logging.getLogger(__name__)

BATCH: Final = 1000


class Rescuer(LedService):
    def __init__(self, leader: Leader, store: Store, observers: Observers, seconds: float) -> None:
        super().__init__(leader)
        self._store = store
        self._observers = observers
        self.seconds = seconds

    async def work(self) -> bool:
        rescued = await self._store.rescue_jobs(BATCH)
        if rescued:
            logger.warning("%d jobs whose worker is gone were taken back", len(rescued))
            self._observers.rescued(len(rescued))
        return len(rescued) == BATCH
