"""What the leading worker does for all: stage, promote, rescue and prune jobs, fire schedules.

One worker of all is the leader. Its term is short, and renewed: when it dies another one takes over
within `TERM_SECONDS`.
"""

from __future__ import annotations

from typing import Final

from windrow.queue.crash_log import rescue_jobs
from windrow.queue.queue import Queue
from windrow.queue.retaining import MAINTENANCE
from windrow.queue.store import Store
from windrow.worker.observers import Observers
from windrow.worker.service import Service

TERM_SECONDS: Final = 3.0
# Each renewal is a write, which on SQLite everybody who sleeps looks at.
RENEW_SECONDS: Final = 1.5

# Who does not lead has nothing to do before it is elected, and is woken then.
NOT_LED_SECONDS: Final = 60.0

BATCH: Final = 1000  # jobs
SCHEDULES: Final = 100
# Some hundred keys are looked at at once: so often, so that thousands have their turn each second.
ROUNDS: Final = 10


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


class Stager(LedService):
    """Make scheduled jobs that are due ready."""

    seconds = 0.5

    def __init__(self, leader: Leader, store: Store) -> None:
        super().__init__(leader)
        self._store = store

    async def work(self) -> bool:
        return await self._store.stage_jobs(BATCH) == BATCH


class Promoter(LedService):
    """Make held jobs ready for which there is room, and fail those held too long."""

    seconds = 1.0

    def __init__(self, leader: Leader, store: Store) -> None:
        super().__init__(leader)
        self._store = store

    async def work(self) -> bool:
        expired = await self._store.expire_jobs(BATCH)
        promoted = await self._store.promote_jobs(limit=BATCH, rounds=ROUNDS)
        return len(expired) == BATCH or promoted >= BATCH


class Rescuer(LedService):
    """Run jobs again whose lease ran out, or fail them when they have crashed too often.

    The leader looks for them. But a leader is often what was killed, and its term ends no sooner
    than a short lease: so each worker that renews leases of its own is told when others have run
    out, and then it does not wait for a leader.
    """

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
        rescued = await rescue_jobs(self._store, BATCH)
        if rescued:
            self._observers.rescued(len(rescued))
        return len(rescued) == BATCH


class Scheduler(LedService):
    """Enqueue the jobs of schedules that are due."""

    seconds = 1.0

    def __init__(self, leader: Leader, store: Store) -> None:
        super().__init__(leader)
        self._store = store

    async def work(self) -> bool:
        return len(await self._store.fire_schedules(SCHEDULES)) >= SCHEDULES


class Pruner(LedService):
    """Remove finished jobs that are past their time."""

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
