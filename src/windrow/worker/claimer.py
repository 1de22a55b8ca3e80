"""Claims jobs when there is room for them.

While there is work the completer claims too, in the transaction that writes the last outcomes; the
claimer then only sleeps. When a claim brings fewer jobs than there is room for, it listens for
work: only a worker that listens costs those who enqueue a notification.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from windrow.queue.bells import Bell, jittered
from windrow.queue.checks import SizeLimits
from windrow.queue.job import Job
from windrow.queue.lease import bind
from windrow.queue.records import Claim
from windrow.queue.store import Store
from windrow.worker.executor import Executor
from windrow.worker.observers import Observers
from windrow.worker.service import Service

# Jobs become due without any notification, and one may be lost: look at least so often.
POLL_SECONDS: Final = 1.0
# With no room there is nothing to do before somebody wakes us.
NO_ROOM_SECONDS: Final = 60.0
# Jobs whose lease ran out are brought back within so long.
RESCUE_SECONDS: Final = 5.0


class Claimer(Service):
    def __init__(
        self,
        store: Store,
        wanted: Claim,
        limits: SizeLimits,
        executor: Executor,
        observers: Observers,
    ) -> None:
        super().__init__()
        self._store = store
        self._wanted = wanted
        self._limits = limits
        self._executor = executor
        self._observers = observers
        self._reserved = 0
        self._bell: Bell | None = None
        self._looked = asyncio.Event()
        self._asked = 0  # how often somebody wanted to know whether there is more
        self._asked_before: dict[int, int] = {}  # each claim that is on its way
        self.found_nothing = False  # the last claim
        self._unsure_until = 0.0

    def reserve(
        self, leaving: int = 0, most: int | None = None, queues: tuple[str, ...] | None = None
    ) -> Claim | None:
        """A claim for the room there is, and will be when `leaving` more runs are over, of all
        queues or only these; it must be given to `took`. None if there is no room."""
        room = self._executor.room + leaving - self._reserved
        if self.is_stopping or not self._executor.takes_more or room <= 0:
            return None
        claim = replace(
            self._wanted,
            limit=room if most is None else min(room, most),
            queues=self._wanted.queues if queues is None else queues,
        )
        self._reserved += claim.limit
        self._asked_before[id(claim)] = self._asked
        return claim

    def took(self, claim: Claim, jobs: Sequence[Job]) -> None:
        """A claim was made: run what it brought. With less than was asked for, listen."""
        self._reserved -= claim.limit
        is_answer = self._asked_before.pop(id(claim), None) == self._asked
        if jobs or (is_answer and claim.queues == self._wanted.queues):
            self.found_nothing = not jobs
            self._looked.set()
        if jobs:
            bind(jobs, self._store, self._limits)
            self._observers.claimed(jobs)
            self._executor.take(jobs)
        if self._bell is None:
            if len(jobs) < claim.limit:
                self.wake()
        elif len(jobs) == claim.limit:
            self._bell.ring()

    def failed(self, claim: Claim) -> None:
        """A claim could not be made, or its answer was lost."""
        self._reserved -= claim.limit
        self._asked_before.pop(id(claim), None)
        longest = max([claim.seconds, *claim.kind_seconds.values()])
        lost_until = time.monotonic() + longest + RESCUE_SECONDS
        self._unsure_until = max(self._unsure_until, lost_until)

    @property
    def is_unsure(self) -> bool:
        """Whether a claim that failed may have taken jobs that nobody runs: they can be claimed
        when their lease has run out and they are rescued (of jobs with a longer lease of their own
        nothing is known)."""
        return time.monotonic() < self._unsure_until

    async def look_again(self) -> bool:
        """Claim once more; whether there was nothing. For who wants to know if all is done: a claim
        that was on its way before says nothing of what has come since."""
        self._asked += 1
        self._looked.clear()
        self.wake()
        await self._looked.wait()
        return self.found_nothing

    async def run_once(self) -> float:
        if await self._claim() is not False:
            return NO_ROOM_SECONDS
        async with self._store.listen_for_work(self._wanted.queues) as self._bell:
            queues: tuple[str, ...] | None = None
            try:
                while not self.is_stopping and await self._claim(queues) is False:
                    # A bell that names its queues saves the question which of them have work.
                    has_rung = await self._bell.wait(jittered(POLL_SECONDS))
                    queues = self._bell.take_queues() if has_rung else None
            finally:
                self._bell = None
        return 0.0

    def stop(self) -> None:
        """No more claims; what a claim that is on its way brings is handed back."""
        super().stop()
        self._executor.stop_taking()
        self._looked.set()

    def wake(self) -> None:
        super().wake()
        if self._bell is not None:
            self._bell.ring()

    async def _claim(self, queues: tuple[str, ...] | None = None) -> bool | None:
        """Whether a claim brought all that was asked for; None: there was no room."""
        claim = self.reserve(queues=queues)
        if claim is None:
            return None
        try:
            jobs = await self._store.claim_jobs(claim)
        except BaseException:
            self.failed(claim)
            raise
        self.took(claim, jobs)
        return len(jobs) == claim.limit
