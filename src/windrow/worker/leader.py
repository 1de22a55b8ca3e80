"""One worker of all looks after what is not about its own jobs. Its term is short, and renewed:
when it dies another one takes over within `TERM_SECONDS`."""

from __future__ import annotations

from typing import Final

from windrow.queue.retaining import MAINTENANCE
from windrow.queue.store import Store
from windrow.worker.service import Service

TERM_SECONDS: Final = 3.0
# Each renewal is a write, which on SQLite everybody who sleeps looks at.
RENEW_SECONDS: Final = 1.5


# Who does not lead has nothing to do before it is elected, and is woken then.
NOT_LED_SECONDS: Final = 60.0


class Leader(Service):
    def __init__(self, store: Store, holder: str) -> None:
        super().__init__()
        self._store = store
        self._holder = holder
        self.is_leader = False
        self.led: list[Service] = []  # who has work as soon as we are elected

    async def run_once(self) -> float:
        was_leader = self.is_leader
        try:
            self.is_leader = await self._store.elect_leader(MAINTENANCE, self._holder, TERM_SECONDS)
        except BaseException:
            self.is_leader = False
            raise
        if self.is_leader and not was_leader:
            for service in self.led:
                service.wake()
        return RENEW_SECONDS

    async def resign(self) -> None:
        if self.is_leader:
            self.is_leader = False
            await self._store.resign_leader(MAINTENANCE, self._holder)


class LedService(Service):
    """Something only the leader does. Jobs still run while it fails, so it is given more time."""

    seconds: float  # between two times
    give_up_seconds = 600.0

    def __init__(self, leader: Leader) -> None:
        super().__init__()
        self._leader = leader
        leader.led.append(self)

    async def run_once(self) -> float:
        if not self._leader.is_leader:
            return NOT_LED_SECONDS
        is_more = await self.work()
        return 0.0 if is_more else self.seconds

    async def work(self) -> bool:
        """Do a batch; whether there is more."""
        raise NotImplementedError
