"""A process in a simulation of workers: the store as it reaches it, over a network that is slow and
fails, until the process is killed."""

from __future__ import annotations

import asyncio
import inspect
import random
import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.faults import FaultyStore
from tests.trust.ledger import Host, Ledger
from tests.trust.simulated_loop import SimulatedLoop
from tests.trust.stage import FAULTY
from windrow.errors import StoreUnavailable
from windrow.queue.bells import Bell, Wish
from windrow.queue.job import Job
from windrow.queue.notifying import Notifier
from windrow.queue.records import Claim, Finish, Finished

# Every attribute of the wrapped store is there, which types cannot say of a proxy.
_AnyStore: Any = object
Say = Callable[[str, str, Any], None]
LATENCIES = (0.0, 0.0, 0.001, 0.01, 0.1)


class Counted(_AnyStore):  # type: ignore[misc]
    """A store that does one thing at a time, for which the loop waits."""

    def __init__(self, store: Any, loop: SimulatedLoop) -> None:
        self._store = store
        self._loop = loop
        self._turn = asyncio.Lock()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def counted(*args: Any, **kwargs: Any) -> Any:
            with self._loop.call():
                async with self._turn:
                    return await found(*args, **kwargs)

        self.__dict__[name] = counted
        return counted


class Watched(_AnyStore):  # type: ignore[misc]
    """The store itself, with a ledger of the runs it gives out and takes back."""

    def __init__(self, store: Any, host: Host, ledger: Ledger) -> None:
        self._store = store
        self._host = host
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim_jobs(self, claim: Claim) -> list[Job]:
        jobs: list[Job] = await self._store.claim_jobs(claim)
        self._ledger.claimed(self._host, jobs)
        return jobs

    async def finish_jobs(self, finishes: Sequence[Finish], **options: Any) -> Finished:
        finished: Finished = await self._store.finish_jobs(finishes, **options)
        self._ledger.finished(self._host, finishes, finished.lost)
        self._ledger.claimed(self._host, finished.claimed)
        return finished


class Link(_AnyStore):  # type: ignore[misc]
    """The store as the process sees it. Calls take a while; they fail while it is cut off; of a
    process that was killed none returns."""

    def __init__(
        self,
        store: Any,
        host: Host,
        ledger: Ledger,
        *,
        loop: SimulatedLoop,
        chance: random.Random,
        faults: float,
        say: Say,
    ) -> None:
        self.host = host
        self.faulty = FaultyStore(Watched(store, host, ledger))
        self.faulty.at_random(
            zlib.crc32(host.name.encode()) + chance.getrandbits(32), faults, verbs=FAULTY
        )
        self.cut_until = 0.0
        self.is_slow = False  # cut off it answers late; else it fails at once
        self.is_deaf = False  # no bell ever rings
        self.has_met = 0  # faults
        self._ledger = ledger
        self._loop = loop
        self._chance = chance
        self._say = say
        self._begun: list[Any] = []
        self._never = (
            asyncio.Event()
        )  # kept, and with it those that wait: they must not be collected

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.faulty, name)
        if not inspect.iscoroutinefunction(found):
            return found
        verb = self.__dict__[name] = self._linked(name)  # found at once the next time
        return verb

    def cut(self, seconds: float, *, is_slow: bool) -> None:
        self.cut_until, self.is_slow = self._loop.time() + seconds, is_slow
        self._ledger.trouble(self.host, seconds)

    def heal(self) -> None:
        self.faulty.heal()
        self.cut_until = 0.0

    async def kill(self) -> None:
        """What it began in the database is rolled back, as the database does."""
        self._ledger.trouble(self.host)
        self.host.is_dead = True
        for begun in self._begun:
            await begun.rollback()

    def listen_for_work(self, queues: Sequence[str] | None) -> AbstractAsyncContextManager[Bell]:
        if self.is_deaf:
            return Notifier().listen(Wish())
        listening: AbstractAsyncContextManager[Bell] = self.faulty.listen_for_work(queues)
        return listening

    def _linked(self, verb: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._travel(verb)
            try:
                answer = await getattr(self.faulty, verb)(*args, **kwargs)
            except StoreUnavailable as error:
                self._note_fault()
                self._say(self.host.name, verb, error)
                raise
            if verb == "begin":
                self._begun.append(answer)
            self._say(self.host.name, verb, answer)
            await self._travel(verb)
            return answer

        return call

    async def _travel(self, verb: str) -> None:
        if latency := self._chance.choice(LATENCIES):
            await asyncio.sleep(latency)
        if self._loop.time() < self.cut_until:
            self._note_fault()
            if not self.is_slow:
                raise StoreUnavailable(f"cut off at {verb}")
            await asyncio.sleep(self.cut_until - self._loop.time())
        if self.host.is_dead:
            await self._never.wait()

    def _note_fault(self) -> None:
        self.has_met += 1
        self._ledger.trouble(self.host)
