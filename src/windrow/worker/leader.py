"""One worker of all looks after what is not about its own jobs. Its term is short, and renewed:
when it dies another one takes over within `TERM_SECONDS`."""

from __future__ import annotations

from typing import Final

from windrow.queue.retaining import MAINTENANCE
from windrow.queue.store import Store
from windrow.worker.service import Service

TERM_SECONDS: Final = 3.0
RENEW_SECONDS: Final = 1.0


class Leader(Service):
    def __init__(self, store: Store, holder: str) -> None:
        super().__init__()
        self._store = store
        self._holder = holder
        self.is_leader = False

    async def run_once(self) -> float:
        try:
            self.is_leader = await self._store.elect_leader(MAINTENANCE, self._holder, TERM_SECONDS)
        except BaseException:
            self.is_leader = False
            raise
        return RENEW_SECONDS

    async def resign(self) -> None:
        if self.is_leader:
            self.is_leader = False
            await self._store.resign_leader(MAINTENANCE, self._holder)


class LedService(Service):
    """Something only the leader does."""

    seconds: float  # between two times

    def __init__(self, leader: Leader) -> None:
        super().__init__()
        self._leader = leader

    async def run_once(self) -> float:
        if not self._leader.is_leader:
            return min(self.seconds, RENEW_SECONDS)
        is_more = await self.work()
        return 0.0 if is_more else self.seconds

    async def work(self) -> bool:
        """Do a batch; whether there is more."""
        raise NotImplementedError
