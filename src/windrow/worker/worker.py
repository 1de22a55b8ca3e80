"""`Worker`: claims jobs, runs their handlers and writes the outcomes back, until it is stopped.

It is put together from small services that share one life-cycle; this module wires them and knows
the order in which they start and stop.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from types import ModuleType
from typing import Final

from windrow.errors import StoreError
from windrow.ids import new_id
from windrow.logging import event
from windrow.queue import checks
from windrow.queue.job import JobState
from windrow.queue.lease import safe_message
from windrow.queue.queue import Queue, default_worker
from windrow.queue.records import Claim, WorkerRow
from windrow.queue.rerunning import refuse_rerun
from windrow.worker.claimer import Claimer
from windrow.worker.completer import Completer
from windrow.worker.executor import Executor
from windrow.worker.heartbeat import Heartbeat, Presence
from windrow.worker.maintenance import Leader, Promoter, Pruner, Rescuer, Scheduler, Stager
from windrow.worker.observers import Observer, Observers
from windrow.worker.registry import Handler, by_kind, find_preset
from windrow.worker.run_log import log_stopping
from windrow.worker.runs import Runs, Stop
from windrow.worker.service import Service
from windrow.worker.startup import Startup, log_started
from windrow.worker.watchdog import MemoryGuard, Watchdog

logger = logging.getLogger(__name__)

DEFAULT_CONCURRENCY: Final = 10
DEFAULT_LEASE: Final = 30
DEFAULT_GRACE: Final = 30.0
DEFAULT_RESCUE: Final = 1.0
# How long a handler that was told to stop may take, and the last outcomes to be written.
STOP_SECONDS: Final = 5.0
# How long held jobs may not move before a worker that runs until it is idle leaves them.
HELD_SECONDS: Final = 2.0
HELD_PAUSE: Final = 0.1
# How long such a worker waits in sum for the retries and snoozed jobs that it caused.
RETRY_SECONDS: Final = 60.0
STAGE_SECONDS: Final = 0.1  # after its time a job may not be ready yet, by the database's clock


class Worker:
    """Runs jobs: `await Worker(queue, [thumbnail], concurrency=50).run()`.

    It takes the kinds its handlers know, from all queues or from those named; jobs of other kinds
    are left for others. `lease` is how many seconds a job is believed to be in work without a sign
    of life: a worker that dies is replaced after that. `grace` is how long running handlers may go
    on when the worker is told to stop. `preset` names the lease, and how often lost jobs are looked
    for, of the queue somebody comes from. Above `max_memory` bytes it stops by itself, and
    `was_recycled` says that this was why. With `announce` the log begins with its database, queues
    and handlers, and warns of queues that never had a job and of kinds that no worker runs; with
    `log_runs` it has the runs.
    """

    def __init__(
        self,
        queue: Queue,
        handlers: Iterable[Handler | ModuleType],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        queues: Sequence[str] | str | None = None,
        tenants: Sequence[str] | None = None,
        lease: float | None = None,
        grace: float = DEFAULT_GRACE,
        rescue_every: float | None = None,
        preset: str | None = None,
        max_memory: int | None = None,
        maintain: bool = True,
        announce: bool = True,
        log_runs: bool = True,
        name: str | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._queue = queue
        self._handlers = by_kind(handlers)
        self._concurrency = checks.check_integer(concurrency, "concurrency", 1)
        self._queues = checks.check_names(queues, "queue")
        self._tenants = checks.check_names(tenants, "tenant")
        timings = find_preset(preset)
        self._lease = checks.check_lease(lease) or timings.lease or DEFAULT_LEASE
        self._grace = checks.check_seconds(grace, "grace") or 0.0
        rescue = checks.check_seconds(rescue_every, "rescue_every")
        self._rescue_every = rescue or timings.rescue or DEFAULT_RESCUE
        self._max_memory = max_memory
        self._maintains = maintain
        self._announces = announce
        self._log_runs = log_runs
        self.was_recycled = False
        self.id = new_id()
        self.name = name or default_worker()
        self._observers = Observers(observers)
        self._stop_asked = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._claimer: Claimer | None = None
        self._runs = Runs()
        self._services: list[Service] = []
        self._failure: BaseException | None = None  # of one of the services
        self._retries: dict[str, float] = {}  # when they are due, by the loop's time

    def stop(self, *, now: bool = False) -> None:
        """Claim nothing more, let running handlers end within the grace period, then hand back the
        rest. With `now`, or told a second time, hand back at once."""
        if now or self._stop_asked.is_set():
            self._stop_now.set()
        self._stop_asked.set()
        if self._claimer is not None:
            self._claimer.stop()

    def stop_by_signal(self) -> None:
        """The same as `stop`, for a person: logs what still runs and how long it may."""
        if self._announces or self._runs:  # of several processes those that are idle say nothing
            log_stopping(self._runs, self._grace, at_once=self._stop_asked.is_set())
        self.stop()

    async def run(
        self,
        *,
        until_idle: bool = False,
        wait_for_retries: float = RETRY_SECONDS,
        handle_signals: bool = False,
    ) -> None:
        """Work until `stop` is called. With `handle_signals`, SIGTERM and SIGINT stop it. When this
        call is cancelled, what runs is handed back at once.

        With `until_idle`, until there is nothing to do: no job of its kinds and queues runs or is
        ready, and no retry or snoozed job that this run caused is due soon. For those it waits up
        to `wait_for_retries` seconds in sum; what is due later stays scheduled, as do jobs that
        were scheduled by others. Jobs held by limits are left when none moves for 2 seconds.

        Raises WorkerBroken if a part of the worker fails again and again.
        """
        refuse_rerun()
        checks.check_seconds(wait_for_retries, "wait_for_retries")
        claimer = self._wire()
        if self._stop_asked.is_set():
            claimer.stop()
        if self._announces:
            log_started(self._describe(), self._handlers, self._queue.location)
        watchdog = Watchdog()
        watchdog.start()
        with _signals(self, handle_signals):
            tasks = [asyncio.create_task(service.run()) for service in self._services]
            if until_idle:
                self._completer.put_back = self._note_retry
                idle = self._stop_when_idle(claimer, wait_for_retries)
                tasks.append(asyncio.create_task(idle))
            for task in tasks:
                task.add_done_callback(self._note_end)
            try:
                await self._until_stopped(claiming=tasks[0], writing=tasks[1])
            finally:
                watchdog.stop()
                await self._shut_down(tasks)
        if self._announces:
            logger.info(
                "worker %s stopped",
                self.name,
                extra=event("worker.stopped", worker=self.name, is_recycled=self.was_recycled),
            )
        if self._failure is not None:
            raise self._failure

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """A service that gave up: without it the others would only look as if they worked."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        logger.critical(
            "the worker stops: %s",
            safe_message(error),
            exc_info=error,
            extra=event("worker.broken", worker=self.name, error=safe_message(error)),
        )
        self._failure = self._failure or error
        self.stop()

    def _find_trouble(self) -> str | None:
        """What keeps failing in this worker, for those who look at it from outside."""
        return next((one.trouble.report for one in self._services if one.trouble.report), None)

    def _wire(self) -> Claimer:
        store, limits = self._queue.store, self._queue.size_limits
        self._completer = Completer(
            store, limits, self._runs, self._observers, log_runs=self._log_runs
        )
        self._executor = Executor(
            store,
            self._handlers,
            self._concurrency,
            self._runs,
            self._completer.add,
            self._observers,
        )
        claimer = Claimer(store, self._wanted(), limits, self._executor, self._observers)
        self._claimer = self._completer.claimer = claimer
        row = self._describe()
        self._presence = Presence(store, row, self._runs.running, self._find_trouble)
        heartbeat = Heartbeat(store, self._runs, self._lease, self._executor.stop)
        self._runs.noticed_by = heartbeat.notice
        self._leader = Leader(store, self.id)
        self._services = [
            claimer,
            self._completer,
            *self._completer.helpers,
            heartbeat,
            self._presence,
        ]
        if self._max_memory:
            self._services.append(MemoryGuard(self._max_memory, self._recycle))
        if self._announces:
            self._services.append(Startup(store, row, self._handlers))
        if self._maintains:
            rescuer = Rescuer(self._leader, store, self._observers, self._rescue_every)
            heartbeat.tell_of_expired = rescuer.notice
            self._services += [
                self._leader,
                Stager(self._leader, store),
                Promoter(self._leader, store),
                rescuer,
                Scheduler(self._leader, store),
                Pruner(self._leader, self._queue, self._observers),
            ]
        return claimer

    def _recycle(self) -> None:
        self.was_recycled = True
        self.stop()

    def _wanted(self) -> Claim:
        return Claim(
            queues=self._queues,
            limit=1,
            seconds=self._lease,
            worker=self.name,
            kinds=tuple(sorted(self._handlers)),
            tenants=self._tenants,
            kind_seconds={
                kind: one.lease for kind, one in self._handlers.items() if one.lease is not None
            },
        )

    def _describe(self) -> WorkerRow:
        return WorkerRow(
            id=self.id,
            name=self.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=self._queues,
            kinds=tuple(sorted(self._handlers)),
            concurrency=self._concurrency,
            version=version("windrow"),
        )

    async def _until_stopped(
        self, claiming: asyncio.Task[None], writing: asyncio.Task[None]
    ) -> None:
        """When asked to stop, let running handlers end, as long as the grace period lasts; stop the
        others. A claim that is on its way is waited for, or its jobs would be taken for crashed."""
        try:
            await self._stop_asked.wait()
            await asyncio.wait([claiming], timeout=STOP_SECONDS)
            await self._until_empty_or_now(self._grace)
        except asyncio.CancelledError:  # a Ctrl-C in `asyncio.run`, or a timeout around `run`
            self.stop(now=True)
            await asyncio.wait([claiming], timeout=STOP_SECONDS)
            raise
        finally:
            await self._hand_back(writing)

    async def _hand_back(self, writing: asyncio.Task[None]) -> None:
        """Stop what still runs, and wait until the ends are written."""
        for run in self._runs:
            self._executor.stop(run, Stop.SHUTDOWN)
        if writing.done():  # it gave up, or all tasks of the loop were cancelled
            return
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._runs.wait_for_at_most(0)
        except TimeoutError:
            logger.error(
                "%d jobs could not be handed back; they run again when their leases run out",
                len(self._runs),
                extra=event("jobs.not_released", count=len(self._runs)),
            )

    async def _until_empty_or_now(self, seconds: float) -> None:
        waits = [
            asyncio.create_task(self._runs.wait_for_at_most(0)),
            asyncio.create_task(self._stop_now.wait()),
        ]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    async def _shut_down(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for service in self._services:
            service.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._executor.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._leader.resign()
                await self._presence.leave()
        except (StoreError, TimeoutError) as error:
            # Both would only have been over a little sooner than by themselves.
            logger.warning(
                "the worker could not be deregistered: %s",
                error,
                extra=event("worker.not_deregistered", worker=self.name, error=str(error)),
            )

    async def _stop_when_idle(self, claimer: Claimer, wait_for_retries: float) -> None:
        """Idle: nothing runs, nothing can be claimed, nothing is about to become ready, and no
        claim whose answer was lost has left jobs behind."""
        standing: tuple[int, int] | None = None  # jobs that have begun, and that are held
        stands_since = 0.0
        loop = asyncio.get_running_loop()
        while True:
            await self._runs.wait_for_at_most(0)
            is_unsure = claimer.is_unsure  # before a look that would bring them back
            looked_at = loop.time()
            try:
                moved = await self._queue.tend()
                if len(self._runs):
                    continue  # what it leaves behind would come after our look
                is_idle = await claimer.look_again() and not moved
                counts = await self._queue.counts() if is_idle else {}
            except StoreError as error:
                logger.warning(
                    "cannot see whether there is more to do: %s",
                    error,
                    extra=event("service.failed", service="idle check", error=str(error)),
                )
                await asyncio.sleep(1.0)
                continue
            wait = self._next_retry(looked_at) - looked_at
            if not is_idle or len(self._runs):
                standing = None
            elif is_unsure and (counts[JobState.ACTIVE] or counts[JobState.READY]):
                # Their rescue may be under way: it is not seen before it is committed.
                await asyncio.sleep(HELD_PAUSE)
            elif wait <= wait_for_retries and (
                counts[JobState.SCHEDULED] or counts[JobState.READY]
            ):
                await asyncio.sleep(max(0.0, looked_at + wait - loop.time()))
                wait_for_retries -= loop.time() - looked_at
            elif not counts[JobState.HELD]:
                self.stop()
                return
            else:
                if standing != (seen := (self._runs.begun, counts[JobState.HELD])):
                    standing, stands_since = seen, loop.time()
                elif loop.time() - stands_since > HELD_SECONDS:
                    self.stop()
                    return
                await asyncio.sleep(HELD_PAUSE)

    def _note_retry(self, job_id: str, delay: float) -> None:
        self._retries[job_id] = asyncio.get_running_loop().time() + delay + STAGE_SECONDS

    def _next_retry(self, looked_at: float) -> float:
        """When the next job that this run put back is due, by the loop's time: it may have come
        due since the last look, which did not find it. Infinite if there is no such job."""
        self._retries = {job: due for job, due in self._retries.items() if due > looked_at}
        return min(self._retries.values(), default=math.inf)


@contextmanager
def _signals(worker: Worker, are_wanted: bool) -> Iterator[None]:
    """SIGTERM and SIGINT stop the worker, the second one at once."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT) if are_wanted else ()
    for one in signals:
        loop.add_signal_handler(one, worker.stop_by_signal)
    try:
        yield
    finally:
        for one in signals:
            loop.remove_signal_handler(one)
