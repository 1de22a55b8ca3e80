"""Jobs whose lease ran out are run again, or fail when they have crashed too often.

Whoever leads looks for them. But a leader is often what was killed, and its term ends no sooner
than a short lease: so each worker that renews leases of its own is told when others have run out,
and then it does not wait for a leader.
"""

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
        self._is_due = False  # somebody has seen leases that ran out

    def notice(self) -> None:
        """Leases have run out: look now, whoever leads. Two may look at once."""
        self._is_due = True
        self.wake()

    async def run_once(self) -> float:
        if self._is_due:
            self._is_due = False
            await self.work()
        return await super().run_once()

    async def work(self) -> bool:
        rescued = await self._store.rescue_jobs(BATCH)
        if rescued:
            logger.warning("%d jobs whose worker is gone were taken back", len(rescued))
            self._observers.rescued(len(rescued))
        return len(rescued) == BATCH
