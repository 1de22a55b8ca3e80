"""`Queue.sync()`: the blocking face, made from the async one so that there is nothing to keep true.

One background thread runs an event loop; every coroutine method of the wrapped object becomes a
blocking method that runs there. Values that have coroutine methods of their own (a `Lease`) come
back wrapped in the same way.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, Self, TypeVar

from windrow.queue.events import Event, EventReader
from windrow.queue.job import Job
from windrow.queue.lease import Lease
from windrow.queue.steps import LeasedRun, read_step
from windrow.queue.transactions import is_blocking, run_sync

if TYPE_CHECKING:
    from windrow.queue.queue import Queue

_ENQUEUING: Final = frozenset({"enqueue", "enqueue_many"})

P = ParamSpec("P")
T = TypeVar("T")


class Runner(Protocol):
    """What runs a coroutine for code that blocks."""

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


class LoopPortal:
    """The way into an event loop from other threads than its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()  # nobody waits for it any more
            raise


class Portal(LoopPortal):
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        super().__init__(asyncio.new_event_loop())
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="windrow-sync", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """A face on an async object: its coroutine methods block, everything else is as it is."""

    def __init__(self, target: Any, portal: LoopPortal) -> None:
        self._target = target
        self._portal = portal

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if inspect.iscoroutinefunction(value):
            blocking = self.__dict__[name] = self._blocking(value)  # found at once the next time
            return blocking
        if name == "events":
            return self._reading(value)
        return value

    def __bool__(self) -> bool:
        return bool(self._target)

    def __dir__(self) -> list[str]:
        return dir(self._target)

    def _blocking(self, method: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            # A caller's own blocking connection belongs to the caller's thread.
            if is_blocking(kwargs.get("tx")):
                return run_sync(method(*args, **kwargs))
            return self._wrap(self._portal.run(method(*args, **kwargs)))

        return call

    def _reading(self, method: Callable[..., EventReader]) -> Callable[..., BlockingReader]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> BlockingReader:
            return BlockingReader(method(*args, **kwargs), self._portal)

        return call

    def _wrap(self, result: Any) -> Any:
        if isinstance(result, Job):
            block_on(result, self._portal)
        if not isinstance(result, Lease):
            return result
        for job in result.jobs:
            block_on(job, self._portal)
        return Blocking(result, self._portal)


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
        job.tx = Blocking(job.tx, portal)
        job.leased_run = BlockingRun(job.leased_run, portal)


def unblock(job: Job) -> None:
    """Let the methods of a job be awaited again: its thread has ended."""
    if isinstance(job.tx, Blocking) and isinstance(job.leased_run, BlockingRun):
        job.tx = job.tx._target
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


class SyncQueue(Blocking):
    """A `Queue` for code that blocks: Django, Flask, scripts. Use it as a context manager."""

    _portal: Portal

    def _blocking(self, method: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
        through_loop = super()._blocking(method)
        if method.__name__ not in _ENQUEUING or self._target.store.capabilities.needs_loop:
            return through_loop

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            # Straight to the store's thread: the way by the portal's loop costs more than the job.
            if asyncio._get_running_loop() is None:
                return run_sync(method(*args, **kwargs))
            return through_loop(*args, **kwargs)

        return call

    @classmethod
    def open(cls, opening: Callable[[], Coroutine[Any, Any, Any]]) -> SyncQueue:
        portal = Portal()
        try:
            return cls(portal.run(opening()), portal)
        except BaseException:
            portal.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def run(
        self,
        function: Callable[Concatenate[Queue, P], Coroutine[Any, Any, T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Run an async function that takes a queue, and wait for it: `queue.run(drain, [mail])`."""
        return self._portal.run(function(self._target, *args, **options))

    def job_queue(self, *args: Any, **options: Any) -> Any:
        return Blocking(self._target.job_queue(*args, **options), self._portal)

    def as_tenant(self, tenant: str) -> Any:
        """The queue of one tenant, on the connections of this one, which closes them."""
        return Blocking(self._target.as_tenant(tenant), self._portal)

    def close(self) -> None:
        self._portal.run(self._target.close())
        self._portal.close()
