"""Handlers that keep a processor busy, in processes of their own, and other functions that do. To
stop one its process is killed, for good; the next call gets a new one.

A child imports what it is to call by its module and name, so that must be defined at the top of a
module. It answers with a value or an error; until then a handler may ask the parent to keep steps
and progress.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

import msgspec

from windrow.db.transactions import run_sync
from windrow.errors import InvalidJob, ProcessDied, QueueError
from windrow.logging import LogConfiguration, configuration, configure_logging
from windrow.queue.job import Job
from windrow.queue.lease import describe, safe_message
from windrow.queue.steps import LeasedRun
from windrow.queue.sync import BlockingRun, LoopPortal
from windrow.worker.registry import Handler

T = TypeVar("T")

JOIN_SECONDS: Final = 5.0
_SPAWN: Final = multiprocessing.get_context("spawn")
# How a process ended is told once. To start one asks it of all that have ended: of two threads that
# ask at the same time, one would not be told.
_REAPING: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Request:
    module: str
    name: str
    jobs: tuple[Job, ...]
    is_batch: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A function that is no handler."""

    function: Callable[..., Any]
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a child asks of its parent: a call of a method of a job's `leased_run`."""

    job: int  # which of the request
    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


class Processes:
    """A child for each call that is being made, and those that are idle."""

    def __init__(self, concurrency: int) -> None:
        self._size = min(concurrency, os.cpu_count() or 1)
        self._places = asyncio.Semaphore(self._size)
        self._idle: list[Child] = []
        self._waiters = ThreadPoolExecutor(self._size, thread_name_prefix="windrow-child")

    @asynccontextmanager
    async def child(self) -> AsyncIterator[Child]:
        """A child that is ready to be asked. One that was not allowed to answer is killed."""
        async with self._places:
            child = self._idle.pop() if self._idle else await self._start()
            try:
                yield child
            except BaseException as error:
                if child.is_asked:
                    child.kill()
                else:
                    self._idle.append(child)
                raise error
            self._idle.append(child)

    async def close(self) -> None:
        for child in self._idle:
            child.kill()
        self._idle.clear()
        self._waiters.shutdown(wait=False)

    async def _start(self) -> Child:
        starting = self._waiters.submit(Child, self._waiters)
        try:
            return await asyncio.shield(asyncio.wrap_future(starting))
        except asyncio.CancelledError:  # nobody would have it, and it would stay
            starting.add_done_callback(_kill_when_there)
            raise


def _kill_when_there(starting: Future[Child]) -> None:
    if starting.exception() is None:
        starting.result().kill()


class Helper:
    """Does for a child what needs the database."""

    def __init__(self, loop: asyncio.AbstractEventLoop, jobs: Sequence[Job]) -> None:
        self._loop = loop
        self._jobs = jobs

    def help(self, wish: Wish) -> tuple[bool, Any]:
        method = getattr(self._jobs[wish.job].leased_run, wish.method)
        try:
            return True, LoopPortal(self._loop).run(method(*wish.args, **wish.kwargs))
        except Exception as error:
            return False, _portable(error)


class Child:
    """A process that answers requests, one at a time. Making one blocks until it is ready."""

    def __init__(self, waiters: ThreadPoolExecutor) -> None:
        self._waiters = waiters
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=serve, args=(theirs, configuration()), daemon=True)
        with _REAPING:
            self._process.start()
        theirs.close()
        self._receive()  # it says that it is there
        self.is_asked = False  # and has not answered yet

    async def call(self, handler: Handler, args: Sequence[Any]) -> Any:
        """Call a handler there. Raises what it raises, and ProcessDied."""
        jobs = tuple(args[0]) if handler.is_batch else (args[0],)
        request = Request(
            handler.function.__module__,
            handler.function.__qualname__,
            tuple(_unbound(job) for job in jobs),
            handler.is_batch,
        )
        return await self._answer_to(request, jobs)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function there. Raises what it raises, and ProcessDied."""
        value: T = await self._answer_to(Call(function, args))
        return value

    def kill(self) -> None:
        self._process.kill()
        self._reap()
        self._connection.close()

    async def _answer_to(self, request: Request | Call, jobs: Sequence[Job] = ()) -> Any:
        loop = asyncio.get_running_loop()
        self.is_asked = True
        is_value, answer = await loop.run_in_executor(
            self._waiters, self._ask, request, Helper(loop, jobs)
        )
        self.is_asked = False
        if is_value:
            return answer
        raise answer

    def _ask(self, request: Request | Call, helper: Helper) -> tuple[bool, Any]:
        self._send(request)
        while isinstance(answer := self._receive(), Wish):
            self._send(helper.help(answer))
        is_value, value = answer
        return is_value, value

    def _send(self, message: Any) -> None:
        try:
            self._connection.send(message)
        except OSError as error:
            raise self._died() from error

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        except Exception as error:  # of a user's class, which takes part in its own unpickling
            raise QueueError(
                f"the answer of the handler's process cannot be read: {safe_message(error)}"
            ) from error

    def _died(self) -> ProcessDied:
        self._reap()
        return ProcessDied(self._process.exitcode)

    def _reap(self) -> None:
        with _REAPING:
            self._process.join(JOIN_SECONDS)


def serve(connection: Connection, log: LogConfiguration | None) -> None:
    """The child: answers until the parent hangs up. It logs as the parent does."""
    if log is not None:
        configure_logging(*log)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's business
    connection.send("ready")
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(_answer(request, connection))


def _answer(request: Request | Call, connection: Connection) -> tuple[bool, Any]:
    try:
        if isinstance(request, Call):
            return True, request.function(*request.args)
        value = _call(request, connection)
        pickle.dumps(value)
        return True, value
    except BaseException as error:
        return False, _portable(error)


def _call(request: Request, connection: Connection) -> Any:
    handler = _find(request.module, request.name)
    is_async = inspect.iscoroutinefunction(handler.function)
    for place, job in enumerate(request.jobs):
        run = RemoteRun(connection, place)
        job.leased_run = run if is_async else BlockingRun(run, Inline())
        job.tx = NoTransaction()
    args: list[Any] = [list(request.jobs) if request.is_batch else request.jobs[0]]
    if handler.takes_payload:
        payloads = [handler.payload_of(job) for job in request.jobs]
        args.append(payloads if request.is_batch else payloads[0])
    value = handler.function(*args)
    return asyncio.run(value) if asyncio.iscoroutine(value) else value


class RemoteRun(LeasedRun):
    """Steps and progress of a job, kept by the parent."""

    __slots__ = ("_connection", "_place")

    def __init__(self, connection: Connection, place: int) -> None:
        self._connection = connection
        self._place = place
        self._locks = None

    async def find_step(self, name: str) -> str | None:
        found: str | None = self._ask("find_step", name)
        return found

    async def save_step(self, name: str, value: Any) -> str:
        kept: str = self._ask("save_step", name, value)
        return kept

    async def report_progress(
        self, percent: float | None = None, message: str | None = None, **counters: int
    ) -> None:
        self._ask("report_progress", percent, message, **counters)

    def _ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
        self._connection.send(Wish(self._place, method, args, kwargs))
        is_value, answer = self._connection.recv()
        if is_value:
            return answer
        raise answer


class Inline:
    """Runs coroutines that never wait, as those of RemoteRun."""

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return run_sync(coroutine)


class NoTransaction:
    """`job.tx` in a child."""

    def __getattr__(self, name: str) -> Any:
        raise InvalidJob("a handler in a process has no job.tx: return Done(…, then=[…]) instead")


def _unbound(job: Job) -> Job:
    return msgspec.structs.replace(job, _binding=None, _tx=None, _leased_run=None)


def _find(module: str, name: str) -> Handler:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, Handler):
        raise QueueError(f"{module}.{name} is not decorated with @handler")
    return found


def _portable(error: BaseException) -> BaseException:
    """The error in a form that survives the way to the parent, with its traceback as a note. Never
    raises: an exception is a user's object, and its methods may be broken."""
    described = describe(error)
    note = f"in the handler's process:\n{described.traceback}"
    try:
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
        copy.add_note(note)
        pickle.dumps(copy)
    except BaseException:
        copy = None
    if isinstance(copy, BaseException):
        return copy
    plain = QueueError(f"{described.type}: {described.message}")
    plain.add_note(note)
    return plain
