"""Handlers that block, in threads. A thread cannot be killed: to stop one, an exception is raised
in it, which takes effect as soon as it runs Python code again. A thread that does not react (it
waits in a C call) keeps its place until it comes back."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

NAME: Final = "windrow-handler"  # of the threads, with a number


class Interrupted(BaseException):
    """Raised inside a handler's thread to stop it; like KeyboardInterrupt it is no Exception."""


class Threads:
    def __init__(self, size: int) -> None:
        self._size = size
        self._pool: ThreadPoolExecutor | None = None
        self.stuck = 0  # threads that were told to stop and have not yet

    async def call(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._size, thread_name_prefix=NAME)
        call = Call(function, args)
        future = self._pool.submit(call.run)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            call.interrupt()
            if not future.done():
                self.stuck += 1
                loop = asyncio.get_running_loop()
                future.add_done_callback(lambda done: self._unstick(loop, done))
            raise

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _unstick(self, loop: asyncio.AbstractEventLoop, future: Future[Any]) -> None:
        def free() -> None:
            self.stuck -= 1

        with suppress(RuntimeError):  # the loop was closed: nobody counts any more
            loop.call_soon_threadsafe(free)


class Call:
    """One call of a function in a thread."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any]) -> None:
        self._function = function
        self._args = args
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._thread_id: int | None = None
        self._is_interrupted = False

    def run(self) -> Any:
        with self._lock:
            if self._is_interrupted:
                raise Interrupted
            self._thread_id = threading.get_ident()
        try:
            return self._context.run(self._function, *self._args)
        except (StopIteration, GeneratorExit) as error:
            # A future cannot hold the first, so the job would never end; the second would close
            # the coroutines that wait for this call.
            raise RuntimeError(f"the handler raised {type(error).__name__}") from error
        finally:
            self._leave()

    def interrupt(self) -> None:
        with self._lock:
            self._is_interrupted = True
            if self._thread_id is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread_id), ctypes.py_object(Interrupted)
                )

    def _leave(self) -> None:
        """From here on no exception may come any more: the thread goes on to another call. One
        that is on its way is let happen here."""
        with self._lock:
            self._thread_id = None
        if self._is_interrupted:
            with suppress(Interrupted):
                time.sleep(0)
