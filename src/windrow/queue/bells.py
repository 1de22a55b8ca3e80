"""Sleeping until something happened: a bell for each who sleeps, and who is rung for what.

Whoever waits does it in this order: hang up a bell, look, sleep, look again. What happened before
the bell was there is seen by the first look, and what happens after it rings. A bell is a hint and
never a promise, so nobody sleeps for ever: the time-out is the poll that would have been.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

JITTER: Final = 0.1


def jittered(seconds: float) -> float:
    """A little less, by chance: those who began to sleep together do not all look together."""
    return seconds * random.uniform(1 - JITTER, 1)  # noqa: S311 - spreads waits


class Bell:
    """Wakes one sleeper. Rung from any thread; waited for in the event loop it was made in."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self._queues: frozenset[str] | None = frozenset()  # it has rung for; None: for whatever

    def ring(self, queues: frozenset[str] | None = None) -> None:
        """Wake the sleeper: for work in these queues, or for whatever there may be."""
        if self._is_in_loop():
            self._hear(queues)
            return
        try:
            self._loop.call_soon_threadsafe(self._hear, queues)
        except RuntimeError:  # the loop was closed, so nobody sleeps
            return

    async def wait(self, timeout: float) -> bool:
        """Sleep until the bell rings, or has rung since it was last waited for; whether it did."""
        try:
            async with asyncio.timeout(timeout):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    def take_queues(self) -> tuple[str, ...] | None:
        """The queues it has rung for since this was last asked; None: there may be work in any."""
        queues, self._queues = self._queues, frozenset()
        return tuple(queues) if queues else None

    def _is_in_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _hear(self, queues: frozenset[str] | None) -> None:
        if queues is None or self._queues is None:
            self._queues = None
        else:
            self._queues |= queues
        self._rung.set()


class Wish(msgspec.Struct, frozen=True):
    """What a bell is rung for: work in these queues (None: in any), the ends of these jobs, or
    whatever happens."""

    queues: frozenset[str] | None = frozenset()
    job_ids: frozenset[str] = frozenset()
    events: bool = False


def work_in(queues: Sequence[str] | None) -> Wish:
    return Wish(None if queues is None else frozenset(queues))


def end_of(job_ids: Sequence[str]) -> Wish:
    return Wish(job_ids=frozenset(job_ids))


def any_event() -> Wish:
    return Wish(events=True)


class Belfry:
    """All the bells of one place. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wishes: dict[Bell, Wish] = {}

    def __len__(self) -> int:
        return len(self._wishes)

    def hang(self, bell: Bell, wish: Wish) -> None:
        with self._lock:
            self._wishes[bell] = wish

    def take_down(self, bell: Bell) -> None:
        with self._lock:
            self._wishes.pop(bell, None)

    def wished_ids(self) -> frozenset[str]:
        with self._lock:
            return frozenset().union(*(wish.job_ids for wish in self._wishes.values()))

    def ring(self, queues: Iterable[str] = (), job_ids: Iterable[str] = ()) -> None:
        """There may be work in these queues; these jobs have ended."""
        with_work, ended = frozenset(queues), frozenset(job_ids)
        if not self._wishes or not (with_work or ended):
            return
        with self._lock:
            wishes = list(self._wishes.items())
        for bell, wish in wishes:
            wanted = with_work if wish.queues is None else with_work & wish.queues
            if wanted or ended & wish.job_ids or wish.events:
                bell.ring(wanted or None)

    def ring_workers(self) -> None:
        """There may be work in any queue."""
        self._ring_those(lambda wish: wish.queues is None or bool(wish.queues))

    def ring_readers(self) -> None:
        """Something has happened."""
        self._ring_those(lambda wish: wish.events)

    def ring_all(self) -> None:
        self._ring_those(lambda wish: True)

    def _ring_those(self, is_meant: Callable[[Wish], bool]) -> None:
        if not self._wishes:
            return
        with self._lock:
            bells = [bell for bell, wish in self._wishes.items() if is_meant(wish)]
        for bell in bells:
            bell.ring()
