"""`SyncQueue`, `SyncLease` and `SyncJobQueue`: the async classes for code that blocks.

A blocking method is declared from the async one, so names, types and defaults of its parameters are
the same for type checkers, editors and at run time. The coroutines run on one event loop in a
background thread.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, Unpack, overload

from windrow.db.transactions import is_blocking, run_sync
from windrow.queue.checks import SizeLimits
from windrow.queue.events import EventReader
from windrow.queue.job import EnqueueOptions, Job, JobState
from windrow.queue.jobqueue import LeasingJobQueue
from windrow.queue.kinds import HandlerLike
from windrow.queue.lease import Lease
from windrow.queue.queue import Queue
from windrow.queue.records import Schedule
from windrow.queue.scheduling import ScheduleOptions
from windrow.queue.store import Store
from windrow.queue.sync import BlockingReader, LoopPortal, Portal, block_on

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

_ENQUEUING: Final = frozenset({"enqueue", "enqueue_many"})


class Face:
    """An async object and the loop on which its coroutines run."""

    def __init__(self, target: Any, portal: LoopPortal) -> None:
        self._target = target
        self._portal = portal

    def _run(self, name: str, *args: Any, **kwargs: Any) -> Any:
        coroutine = getattr(self._target, name)(*args, **kwargs)
        # A caller's own blocking connection belongs to the caller's thread.
        if is_blocking(kwargs.get("tx")):
            return run_sync(coroutine)
        return self._portal.run(coroutine)


class Blocking(Generic[P, T]):
    """An async method as one that blocks."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self.__doc__ = method.__doc__
        self._name = method.__name__

    @overload
    def __get__(self, face: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, face: Face, owner: type[Any]) -> Callable[P, T]: ...
    def __get__(self, face: Face | None, owner: type[Any]) -> Self | Callable[P, T]:
        if face is None:
            return self
        call = functools.partial(face._run, self._name)
        # Found in the instance from now on; the signature is that of the bound method.
        face.__dict__[self._name] = functools.wraps(getattr(face._target, self._name))(call)
        return call


class Wrapping(Generic[P, R]):
    """A method whose result blocks too; the method itself is async or plain."""

    @overload
    def __init__(
        self,
        method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
        wrap: Callable[[T, LoopPortal], R],
    ) -> None: ...
    @overload
    def __init__(
        self, method: Callable[Concatenate[Any, P], T], wrap: Callable[[T, LoopPortal], R]
    ) -> None: ...
    def __init__(self, method: Callable[..., Any], wrap: Callable[[Any, LoopPortal], R]) -> None:
        self.__doc__ = method.__doc__
        self._name = method.__name__
        self._is_async = inspect.iscoroutinefunction(method)
        self._wrap = wrap

    @overload
    def __get__(self, face: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, face: Face, owner: type[Any]) -> Callable[P, R]: ...
    def __get__(self, face: Face | None, owner: type[Any]) -> Self | Callable[P, R]:
        if face is None:
            return self
        target = getattr(face._target, self._name)

        @functools.wraps(target)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if self._is_async:
                return self._wrap(face._run(self._name, *args, **kwargs), face._portal)
            return self._wrap(target(*args, **kwargs), face._portal)

        return call


class SyncLease(Face):
    """What `SyncQueue.claim` returns: a `Lease` whose methods block."""

    _target: Lease

    def __init__(self, lease: Lease, portal: LoopPortal) -> None:
        super().__init__(lease, portal)
        for job in lease.jobs:
            block_on(job, portal)

    def __bool__(self) -> bool:
        return bool(self._target)

    @property
    def jobs(self) -> list[Job]:
        return self._target.jobs

    @property
    def stopping(self) -> Mapping[str, JobState]:
        return self._target.stopping

    complete = Blocking(Lease.complete)
    fail = Blocking(Lease.fail)
    finish = Blocking(Lease.finish)
    finish_many = Blocking(Lease.finish_many)
    progress = Blocking(Lease.progress)
    release = Blocking(Lease.release)
    renew = Blocking(Lease.renew)
    snooze = Blocking(Lease.snooze)


def _claimed(job: Job | None, portal: LoopPortal) -> Job | None:
    if job is not None:
        block_on(job, portal)
    return job


class SyncJobQueue(Face):
    """A loop by job id, whose methods block. `with` hands back what is still held at the end."""

    _target: LeasingJobQueue

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def held(self) -> frozenset[str]:
        return self._target.held

    claim = Wrapping(LeasingJobQueue.claim, _claimed)
    close = Blocking(LeasingJobQueue.close)
    complete = Blocking(LeasingJobQueue.complete)
    enqueue = Blocking(LeasingJobQueue.enqueue)
    fail = Blocking(LeasingJobQueue.fail)
    renew = Blocking(LeasingJobQueue.renew)
    snooze = Blocking(LeasingJobQueue.snooze)


def _reader(reader: EventReader, portal: LoopPortal) -> BlockingReader:
    return BlockingReader(reader, portal)


def _tenant_queue(queue: Queue, portal: LoopPortal) -> SyncQueue:
    """On the connections and the loop of another queue, which closes them."""
    return SyncQueue(queue, LoopPortal(portal.loop))


class SyncQueue(Face):
    """A `Queue` for code that blocks: Django, Flask, scripts. Use it as a context manager."""

    _target: Queue

    @classmethod
    def open(cls, opening: Callable[[], Coroutine[Any, Any, Queue]]) -> SyncQueue:
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

    def _run(self, name: str, *args: Any, **kwargs: Any) -> Any:
        is_direct = name in _ENQUEUING and not self.store.capabilities.needs_loop
        if is_direct and asyncio._get_running_loop() is None:
            # Straight to the store's thread: the way by the portal's loop costs more than the job.
            return run_sync(getattr(self._target, name)(*args, **kwargs))
        return super()._run(name, *args, **kwargs)

    @property
    def store(self) -> Store:
        return self._target.store

    @property
    def size_limits(self) -> SizeLimits:
        """The largest payload and result it takes."""
        return self._target.size_limits

    def run(
        self,
        function: Callable[Concatenate[Queue, P], Coroutine[Any, Any, T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Run an async function that takes a queue, and wait for it: `queue.run(drain, [mail])`."""
        return self._portal.run(function(self._target, *args, **options))

    def close(self) -> None:
        """Close the connections. What was enqueued stays."""
        self._portal.run(self._target.close())
        if isinstance(self._portal, Portal):
            self._portal.close()

    # Overloads are declared once more: a ParamSpec keeps only one signature of a method. A test
    # compares them with those of `Queue`.
    @overload
    def enqueue(self, kind: str, payload: Any = None, **options: Unpack[EnqueueOptions]) -> Job: ...
    @overload
    def enqueue(
        self, kind: HandlerLike[None, T], payload: None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[T]: ...
    @overload
    def enqueue(
        self, kind: HandlerLike[R, T], payload: R, **options: Unpack[EnqueueOptions]
    ) -> Job[T]: ...
    @functools.wraps(Queue.enqueue)
    def enqueue(self, *args: Any, **options: Any) -> Any:
        return self._run("enqueue", *args, **options)

    @overload
    def schedule(
        self, name: str, kind: str, payload: Any = None, **options: Unpack[ScheduleOptions]
    ) -> Schedule: ...
    @overload
    def schedule(
        self,
        name: str,
        kind: HandlerLike[None, Any],
        payload: None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule: ...
    @overload
    def schedule(
        self, name: str, kind: HandlerLike[R, Any], payload: R, **options: Unpack[ScheduleOptions]
    ) -> Schedule: ...
    @overload
    def schedule(
        self, kind: HandlerLike[None, Any], /, **options: Unpack[ScheduleOptions]
    ) -> Schedule: ...
    @overload
    def schedule(
        self, kind: HandlerLike[R, Any], payload: R, /, **options: Unpack[ScheduleOptions]
    ) -> Schedule: ...
    @functools.wraps(Queue.schedule)
    def schedule(self, *args: Any, **options: Any) -> Any:
        return self._run("schedule", *args, **options)

    @overload
    def wait(self, job_id: str, *, timeout: float | None = None) -> Job: ...
    @overload
    def wait(self, job: Job[T], /, *, timeout: float | None = None) -> Job[T]: ...
    @functools.wraps(Queue.wait)
    def wait(self, *args: Any, **options: Any) -> Any:
        return self._run("wait", *args, **options)

    as_tenant = Wrapping(Queue.as_tenant, _tenant_queue)
    claim = Wrapping(Queue.claim, SyncLease)
    events = Wrapping(Queue.events, _reader)
    job_queue = Wrapping(Queue.job_queue, SyncJobQueue)

    add_group_notes = Blocking(Queue.add_group_notes)
    cancel = Blocking(Queue.cancel)
    cancel_all = Blocking(Queue.cancel_all)
    cancel_group = Blocking(Queue.cancel_group)
    clean = Blocking(Queue.clean)
    close_group = Blocking(Queue.close_group)
    counts = Blocking(Queue.counts)
    create_group = Blocking(Queue.create_group)
    delete = Blocking(Queue.delete)
    delete_all = Blocking(Queue.delete_all)
    disk_usage = Blocking(Queue.disk_usage)
    edit = Blocking(Queue.edit)
    enqueue_many = Blocking(Queue.enqueue_many)
    errors = Blocking(Queue.errors)
    get = Blocking(Queue.get)
    get_many = Blocking(Queue.get_many)
    group = Blocking(Queue.group)
    group_notes = Blocking(Queue.group_notes)
    groups = Blocking(Queue.groups)
    keep_group_keys = Blocking(Queue.keep_group_keys)
    limits = Blocking(Queue.limits)
    list = Blocking(Queue.list)
    park_key = Blocking(Queue.park_key)
    pause = Blocking(Queue.pause)
    pause_group = Blocking(Queue.pause_group)
    pause_job = Blocking(Queue.pause_job)
    pause_schedule = Blocking(Queue.pause_schedule)
    prune = Blocking(Queue.prune)
    queues = Blocking(Queue.queues)
    remove_limit = Blocking(Queue.remove_limit)
    resume = Blocking(Queue.resume)
    resume_group = Blocking(Queue.resume_group)
    resume_job = Blocking(Queue.resume_job)
    resume_schedule = Blocking(Queue.resume_schedule)
    retention = Blocking(Queue.retention)
    retry = Blocking(Queue.retry)
    retry_all = Blocking(Queue.retry_all)
    schedules = Blocking(Queue.schedules)
    set_limit = Blocking(Queue.set_limit)
    set_queue = Blocking(Queue.set_queue)
    set_retention = Blocking(Queue.set_retention)
    steps = Blocking(Queue.steps)
    tend = Blocking(Queue.tend)
    unschedule = Blocking(Queue.unschedule)
    wait_many = Blocking(Queue.wait_many)
    workers = Blocking(Queue.workers)
