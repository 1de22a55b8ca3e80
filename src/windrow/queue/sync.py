"""Async code called from code that blocks: an event loop in a thread, and what a claimed job
offers (`job.tx`, `job.step`) as methods that block."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, Self, TypeVar

from windrow.queue.events import Event, EventReader
from windrow.queue.job import Job
from windrow.queue.steps import LeasedRun, read_step

T = TypeVar("T")


class Runner(Protocol):
    """What runs a coroutine for code that blocks."""

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


class _Exit(Exception):
    """Carries an exit out of a task: as such it would end the event loop, with all that runs."""

    def __init__(self, exit: BaseException) -> None:
        self.exit = exit


async def _without_exit(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        return await coroutine
    except (SystemExit, KeyboardInterrupt) as error:
        raise _Exit(error) from None


class LoopPortal:
    """The way into an event loop from other threads than its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(_without_exit(coroutine), self.loop)
        try:
            return future.result()
        except _Exit as carrier:
            raise carrier.exit from None
        except KeyboardInterrupt:
            future.cancel()  # nobody waits for it any more
            raise


class Portal(LoopPortal):
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        super().__init__(asyncio.new_event_loop())
        self._thread = threading.Thread(
            target=self.loop.run_forever, name="windrow-sync", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class BlockingTransaction:
    """The transaction of a job, `job.tx`, for code that blocks."""

    def __init__(self, target: Any, portal: LoopPortal) -> None:
        self.target = target
        self._portal = portal

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.target, name)
        if not inspect.iscoroutinefunction(value):
            return value

        @functools.wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._portal.run(value(*args, **kwargs))

        return call


class BlockingRun:
    """`job.step` and `job.report_progress` for code that blocks: a function that does is called in
    the caller's thread, so that it keeps nobody else waiting; a coroutine runs on the loop."""

    def __init__(self, run: LeasedRun, portal: Runner) -> None:
        self._run = run
        self._portal = portal

    def step(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        kept = self._portal.run(self._run.find_step(name))
        if kept is None:
            value = fn(*args, **kwargs)
            if inspect.isawaitable(value):
                value = self._portal.run(_awaited(value))
            kept = self._portal.run(self._run.save_step(name, value))
        return read_step(kept)

    def report_progress(
        self, percent: float | None = None, message: str | None = None, **counters: int
    ) -> None:
        self._portal.run(self._run.report_progress(percent, message, **counters))


def block_on(job: Job, portal: LoopPortal) -> None:
    """Let the methods of a claimed job block, for code in another thread than the loop's."""
    if isinstance(job.leased_run, LeasedRun):
        job.tx = BlockingTransaction(job.tx, portal)
        job.leased_run = BlockingRun(job.leased_run, portal)


def unblock(job: Job) -> None:
    """Let the methods of a job be awaited again: its thread has ended."""
    if isinstance(job.tx, BlockingTransaction) and isinstance(job.leased_run, BlockingRun):
        job.tx = job.tx.target
        job.leased_run = job.leased_run._run


async def _awaited(value: Awaitable[T]) -> T:
    return await value


class BlockingReader:
    """An `EventReader` for a plain `for` loop."""

    def __init__(self, reader: EventReader, portal: LoopPortal) -> None:
        self._reader = reader
        self._portal = portal

    @property
    def cursor(self) -> str | None:
        return self._reader.cursor

    def __enter__(self) -> Self:
        self._portal.run(self._reader.begin())
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self._portal.run(self._reader.aclose())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        try:
            return self._portal.run(self._reader.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None


async def pause(seconds: float) -> None:
    """Sleep: in the event loop, or where a coroutine runs without one, in its thread."""
    if asyncio._get_running_loop() is None:
        time.sleep(seconds)  # noqa: ASYNC251 — there is no loop to keep waiting
    else:
        await asyncio.sleep(seconds)
