"""Handlers that keep a processor busy, in processes of their own. To stop one its process is
killed, for good; the next call gets a new one.

A child imports the handler by its module and name, so it must be defined at the top of a module.
It sees the job and its payload, and answers with a value or an error.
"""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import pickle
import signal
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, Final

from windrow.errors import ProcessDied, QueueError
from windrow.queue.job import Job
from windrow.worker.registry import Handler

JOIN_SECONDS: Final = 5.0
_SPAWN: Final = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Request:
    module: str
    name: str
    jobs: tuple[Job, ...]
    is_batch: bool


class Processes:
    """A child for each call that is being made, and those that are idle."""

    def __init__(self, concurrency: int) -> None:
        self._size = min(concurrency, os.cpu_count() or 1)
        self._places = asyncio.Semaphore(self._size)
        self._idle: list[Child] = []
        self._waiters: ThreadPoolExecutor | None = None

    async def call(self, handler: Handler, args: Sequence[Any]) -> Any:
        jobs = tuple(args[0]) if handler.is_batch else (args[0],)
        request = Request(
            handler.function.__module__,
            handler.function.__qualname__,
            tuple(replace(job, tx=None, leased_run=None) for job in jobs),
            handler.is_batch,
        )
        async with self._places:
            return await self._ask(request)

    async def close(self) -> None:
        for child in self._idle:
            child.kill()
        self._idle.clear()
        if self._waiters is not None:
            self._waiters.shutdown(wait=False)

    async def _ask(self, request: Request) -> Any:
        if self._waiters is None:
            self._waiters = ThreadPoolExecutor(self._size, thread_name_prefix="windrow-child")
        loop = asyncio.get_running_loop()
        child = self._idle.pop() if self._idle else Child()
        try:
            is_value, answer = await loop.run_in_executor(self._waiters, child.ask, request)
        except BaseException:
            # Stopped, timed out or dead: in any case it is not to be used again.
            child.kill()
            raise
        self._idle.append(child)
        if is_value:
            return answer
        raise answer


class Child:
    """A process that answers requests, one at a time."""

    def __init__(self) -> None:
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, request: Request) -> tuple[bool, Any]:
        """Blocks until there is an answer. Raises ProcessDied."""
        try:
            self._connection.send(request)
            answer: tuple[bool, Any] = self._connection.recv()
        except (EOFError, OSError) as error:
            self._process.join(JOIN_SECONDS)
            raise ProcessDied(self._process.exitcode) from error
        return answer

    def kill(self) -> None:
        self._process.kill()
        self._process.join(JOIN_SECONDS)
        self._connection.close()


def serve(connection: Connection) -> None:
    """The child: answers until the parent hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's business
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(_answer(request))


def _answer(request: Request) -> tuple[bool, Any]:
    try:
        value = _call(request)
        pickle.dumps(value)
        return True, value
    except BaseException as error:
        return False, _portable(error)


def _call(request: Request) -> Any:
    handler = _find(request.module, request.name)
    args: list[Any] = [list(request.jobs) if request.is_batch else request.jobs[0]]
    if handler.takes_payload:
        payloads = [handler.payload_of(job) for job in request.jobs]
        args.append(payloads if request.is_batch else payloads[0])
    value = handler.function(*args)
    return asyncio.run(value) if asyncio.iscoroutine(value) else value


def _find(module: str, name: str) -> Handler:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, Handler):
        raise QueueError(f"{module}.{name} is not decorated with @handler")
    return found


def _portable(error: BaseException) -> BaseException:
    """The error in a form that survives the way to the parent, with its traceback as a note."""
    trace = "".join(traceback.format_exception(error))
    try:
        copy: BaseException = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = QueueError(f"{type(error).__qualname__}: {error}")
    copy.add_note(f"in the handler's process:\n{trace}")
    return copy
