"""An event loop with a simulated clock: when nothing can run, the clock jumps to the next timer.

Real services, with their pauses and time-outs, run in it as fast as the processor allows, and the
same way each time. Calls of a store on sockets are counted in `loop.calls`: while one is under way
the loop waits for the server before it moves the clock.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from unittest.mock import patch

from windrow.clock import FakeClock

T = TypeVar("T")

START: Final = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
ANSWER_SECONDS: Final = 3.0  # real ones, for a server to answer before time goes on
MOST_TURNS: Final = 20_000  # of the loop in which no time passes


class Standstill(AssertionError):
    """The simulated program can never go on, or goes round without an end."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0  # of a store that wait for an answer
        super().__init__(_Selector(self))
        self.clock = LoopClock(self)

    def time(self) -> float:
        return self.seconds

    @contextmanager
    def call(self) -> Iterator[None]:
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1


class LoopClock(FakeClock):
    """The time of a loop, for a store."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__(START)
        self._loop = loop

    def now(self) -> datetime:
        return START + timedelta(seconds=self._loop.seconds)


class _Selector(selectors.DefaultSelector):
    """Waits for sockets in real time, and for timers in none."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None = None) -> Any:
        if timeout == 0:
            self._turns += 1
            if self._turns > MOST_TURNS:
                raise Standstill(f"{MOST_TURNS} turns of the event loop in which no time passed")
            return super().select(0) if self._loop.calls else []
        self._turns = 0
        events = super().select(ANSWER_SECONDS if self._loop.calls else 0)
        if not events:
            if timeout is not None:
                self._loop.seconds += timeout
            elif not self._loop.calls:
                raise Standstill("everybody waits, and nothing can ever happen")
        return events


def run_simulated(
    loop: SimulatedLoop,
    main: Coroutine[Any, Any, T],
    close: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> T:
    """Run a coroutine to its end, cancel what it leaves behind, and close what both have used.
    `time.monotonic` is the time of the loop meanwhile."""
    with patch("time.monotonic", loop.time):
        try:
            return loop.run_until_complete(main)
        finally:
            loop.run_until_complete(_cancel_all())
            if close is not None:
                with loop.call():
                    loop.run_until_complete(close())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


async def _cancel_all() -> None:
    """Cancel what is left, and again what has caught it and goes on."""
    me = asyncio.current_task()
    while left := asyncio.all_tasks() - {me}:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=1.0)
