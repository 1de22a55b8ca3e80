"""Runs the handlers of claimed jobs, at most so many at once, and hands on their outcomes.

Jobs wait here for a free place in the order they were claimed. A job that has crashed almost as
often as it may is run alone, with nothing else claimed: if it takes the process down once more,
nobody else's crash is counted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import copy_context
from typing import Any, Final

from windrow.errors import HandlerTimeout, RateLimited
from windrow.logging import event
from windrow.queue.checks import check_name
from windrow.queue.job import DEFAULT_MAX_ATTEMPTS, Job
from windrow.queue.lease import safe_message
from windrow.queue.outcome import Fail, Outcome, Snooze
from windrow.queue.store import Store
from windrow.queue.sync import LoopPortal, block_on
from windrow.worker.batches import Batches, run_batch
from windrow.worker.classify import classify, to_outcome, wait_for, with_backoff
from windrow.worker.lines import Lines
from windrow.worker.observers import Observers
from windrow.worker.processes import Processes
from windrow.worker.registry import Handler
from windrow.worker.run_log import duration
from windrow.worker.runs import Run, Runs, Stage, Stop
from windrow.worker.threads import Threads

logger = logging.getLogger(__name__)

# Runs before a job's last crash that are made alone.
LAST_CRASHES: Final = 2
# How long others may take to end before a job that is to run alone is handed back for a while.
QUIET_SECONDS: Final = 5.0
SELF_CANCELLED: Final = "the handler cancelled its own task"

Ended = Callable[[Run, Outcome | None], None]

# Jobs that will be started within so many seconds, going by those of late, may be claimed ahead.
AHEAD_SECONDS: Final = 0.1
MOST_AHEAD: Final = 2000
# A worker that has just begun goes by less than that, but not by a few jobs in no time.
FIRST_SECONDS: Final = 0.02


class Executor:
    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
        concurrency: int,
        runs: Runs,
        ended: Ended,
        observers: Observers,
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._concurrency = concurrency
        self._runs = runs
        self._ended = ended
        self._observers = observers
        self._context = copy_context()  # what is here now is all that handlers find there
        self._calls = 0  # handlers being called
        self._waiting: deque[Run] = deque()
        self._suspects: deque[Run] = deque()
        self._alone: Run | None = None
        self._lines = Lines(self._next_in_line, self._run_here, self._start_next, self._called)
        self._batches = Batches(handlers.values(), self._start_batch)
        self._threads = Threads(concurrency)
        self._processes = Processes(concurrency)
        self._pace = Pace()
        self._is_closing = False

    @property
    def takes_more(self) -> bool:
        return self._alone is None and not self._suspects

    @property
    def room(self) -> int:
        """How many more jobs could be started soon; negative if there are too many already."""
        capacity = self._concurrency + self._batches.capacity + self._pace.ahead()
        return capacity - len(self._runs) - self._threads.stuck

    def take(self, jobs: Sequence[Job]) -> None:
        """Run these jobs, now or as soon as there is a place."""
        for job in jobs:
            handler = self._handlers[job.kind]
            if handler.max_attempts and job.max_attempts == DEFAULT_MAX_ATTEMPTS:
                job.max_attempts = handler.max_attempts
            run = Run(job, handler)
            if former := self._runs.add(run):
                self.stop(former, Stop.LOST)
            self._place(run)
        if self._is_closing:
            self.give_back_waiting()
            return
        self._batches.flush_due()
        self._start_next()

    def stop_taking(self) -> None:
        """Hand back what has not begun, now and from now on."""
        self._is_closing = True
        self.give_back_waiting()

    def give_back_waiting(self) -> None:
        """Hand back what has not begun."""
        for run in [*self._waiting, *self._suspects, *self._batches.take_all()]:
            self._end(run, Snooze(0))
        self._waiting.clear()
        self._suspects.clear()

    def stop(self, run: Run, why: Stop) -> None:
        """End a run before its time: do not begin it, or cancel its handler. Of a batch, the others
        have to go on: it is cancelled only when the worker stops."""
        if run.stage is Stage.ENDED or run.stop is not None:
            return
        run.stop = why
        if run.stage is Stage.CLAIMED:
            self._leave_line(run)
            self._end(run, _stopped(run))
        elif run.task is not None and (why is Stop.SHUTDOWN or not run.handler.is_batch):
            run.task.cancel()  # without a task it has not begun: it will see `run.stop` then

    async def close(self) -> None:
        await self._processes.close()
        self._threads.close()

    def _place(self, run: Run) -> None:
        crashes = run.job.crashes
        if crashes and crashes >= run.job.max_crashes - LAST_CRASHES:
            self._suspects.append(run)
        elif run.handler.is_batch:
            self._batches.add(run)
        else:
            self._waiting.append(run)

    def _leave_line(self, run: Run) -> None:
        self._batches.discard(run)
        for line in (self._waiting, self._suspects):
            if run in line:
                line.remove(run)

    def _start_next(self) -> None:
        if self._alone is not None:
            return
        if self._suspects:
            self._start_alone()
            return
        while self._waiting and self._calls < self._concurrency:
            if self._lines.takes(self._waiting[0]):
                if self._lines.has_open:
                    return  # which takes it when its turn comes
                self._calls += 1
                self._lines.open()
            else:
                run = self._waiting.popleft()
                self._begin([run], self._run_one(run))

    def _start_alone(self) -> None:
        """Nothing else may be claimed or running when a suspect runs."""
        run = self._suspects.popleft()
        self._alone = run
        self.give_back_waiting()
        self._begin([run], self._run_when_quiet(run))

    def _start_batch(self, runs: Sequence[Run]) -> None:
        self._begin(runs, self._run_batch(runs))

    def _begin(self, runs: Sequence[Run], call: Coroutine[Any, Any, None]) -> None:
        """A task for each call: what a handler sets in its context is not seen by the next one.
        Those that never wait share one: see `lines`."""
        self._calls += 1
        now = time.monotonic()
        for run in runs:
            self._mark_begun(run, now)
        # The loop holds the task until it begins, then the run does.
        asyncio.create_task(call, context=self._context.copy())  # noqa: RUF006

    def _mark_begun(self, run: Run, now: float) -> None:
        run.stage = Stage.RUNNING
        run.began_at = now
        if self._observers.are_any:
            self._observers.started(run.job)

    def _next_in_line(self) -> Run | None:
        """The next job for a line, which has begun then; None: what is next is not for a line."""
        if self._alone is not None or self._suspects or not self._waiting:
            return None
        if not self._lines.takes(self._waiting[0]):
            return None
        run = self._waiting.popleft()
        self._mark_begun(run, time.monotonic())
        return run

    def _called(self) -> None:
        self._calls -= 1
        self._start_next()

    async def _run_when_quiet(self, run: Run) -> None:
        run.task = asyncio.current_task()
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                await self._runs.wait_for_at_most(1)
        except TimeoutError:
            self._end(run, Snooze(QUIET_SECONDS))
            self._called()
        except asyncio.CancelledError:
            self._end(run, _stopped(run))
            self._called()
        else:
            await (self._run_batch([run]) if run.handler.is_batch else self._run_one(run))

    async def _run_one(self, run: Run) -> None:
        try:
            await self._run_here(run, asyncio.current_task())
        finally:
            self._called()

    async def _run_here(self, run: Run, task: asyncio.Task[Any] | None) -> None:
        """Run one job in the task that we are in."""
        run.task = task
        outcome: Outcome | None
        try:
            if run.stop:
                outcome = _stopped(run)
            else:
                value = await self._call_one(run.job, run.handler)
                outcome = with_backoff(to_outcome(value), run.job, run.handler)
        except asyncio.CancelledError:
            outcome = _stopped(run)
        except BaseException as error:
            outcome = await self._outcome_of_run(error, run)
        self._end(run, outcome)

    def _call_one(self, job: Job, handler: Handler) -> Awaitable[Any]:
        args = (job, handler.payload_of(job)) if handler.takes_payload else (job,)
        if self._observers.are_around:
            return self._observers.around(job, lambda: self._call(handler, args))
        return self._call(handler, args)

    async def _outcome_of_run(self, error: BaseException, run: Run) -> Outcome | None:
        try:
            return await self._outcome_of_error(error, run.job, run.handler)
        except asyncio.CancelledError:
            return _stopped(run)

    async def _run_batch(self, runs: Sequence[Run]) -> None:
        handler = runs[0].handler

        async def call(some: Sequence[Run]) -> Any:
            jobs = [run.job for run in some]
            args: list[Any] = [jobs]
            if handler.takes_payload:
                args.append([handler.payload_of(job) for job in jobs])
            return await self._call(handler, args)

        async def fail(error: BaseException, run: Run) -> Outcome:
            return await self._outcome_of_error(error, run.job, handler)

        for run in runs:
            run.task = asyncio.current_task()
        outcomes: Sequence[Outcome | None]
        try:
            outcomes = await run_batch(runs, call, fail)
        except asyncio.CancelledError:
            outcomes = [_stopped(run) for run in runs]
        except BaseException as error:  # each run has to end, whatever it was
            outcomes = [Fail(error) for _ in runs]
        try:
            for run, outcome in zip(runs, outcomes, strict=True):
                self._end(run, None if run.stop is Stop.LOST else outcome)
        finally:
            self._called()

    def _call(self, handler: Handler, args: Sequence[Any]) -> Awaitable[Any]:
        if handler.run == "process":
            return self._call_process(handler, args)
        is_async = handler.run == "async"
        call = handler.function(*args) if is_async else self._call_thread(handler, args)
        return _timed(handler, call) if handler.timeout else call

    async def _call_thread(self, handler: Handler, args: Sequence[Any]) -> Any:
        portal = LoopPortal(asyncio.get_running_loop())
        for job in args[0] if handler.is_batch else args[:1]:
            block_on(job, portal)
        return await self._threads.call(handler.function, args)

    async def _call_process(self, handler: Handler, args: Sequence[Any]) -> Any:
        async with self._processes.child() as child:  # which takes a while, if it is a new one
            return await _timed(handler, child.call(handler, args))

    async def _outcome_of_error(self, error: BaseException, job: Job, handler: Handler) -> Outcome:
        """Raises nothing but the cancellation of this task: the error is a user's object, and even
        its `__class__` may raise. A run without an outcome would never end."""
        try:
            if isinstance(error, asyncio.CancelledError):
                return Fail(SELF_CANCELLED)
            if isinstance(error, RateLimited):
                await self._park(error, job, handler)
        except asyncio.CancelledError:
            raise
        except BaseException as trouble:
            return Fail(trouble)
        return classify(error, job, handler)

    async def _park(self, error: RateLimited, job: Job, handler: Handler) -> None:
        """Stop the whole key, so that its other jobs do not find out one by one. Where there are no
        limits each does."""
        if not self._store.capabilities.limits:
            return
        try:
            key = check_name(error.key, "limit key")
            seconds = wait_for(error, job, handler)
            await self._store.park_key(key, seconds=seconds)
        except Exception as trouble:  # a user's subclass may lack its key, or have a wrong one
            logger.warning(
                "a rate limit could not be parked: %s",
                safe_message(trouble),
                extra=event("limit.not_parked", job_id=job.id, error=safe_message(trouble)),
            )
        else:
            logger.info(
                "limit key %s is parked for %s: %s",
                key,
                duration(seconds),
                safe_message(error),
                extra=event("limit.parked", key=key, seconds=seconds),
            )

    def _end(self, run: Run, outcome: Outcome | None) -> None:
        """Hand on an outcome; None: there is nothing to say, the job is no longer ours."""
        if run.stage is Stage.RUNNING:
            self._pace.count()
            if self._observers.are_any:
                self._observers.ended(run.job, outcome, time.monotonic() - run.began_at)
        if run is self._alone:
            self._alone = None
        run.stage = Stage.ENDED
        run.ended_at = time.monotonic()
        self._ended(run, outcome)


async def _timed(handler: Handler, call: Awaitable[Any]) -> Any:
    timeout = asyncio.timeout(handler.timeout)
    try:
        async with timeout:
            return await call
    except TimeoutError as error:
        if timeout.expired():
            raise HandlerTimeout(handler.timeout or 0.0) from error
        raise


def _stopped(run: Run) -> Outcome | None:
    """The outcome of a run that was cancelled: by us, or by something inside the handler."""
    match run.stop:
        case Stop.LOST:
            return None
        case Stop.ASKED | Stop.SHUTDOWN:
            return Snooze(0)
        case None:
            return Fail(SELF_CANCELLED)


class Pace:
    """How many runs ended in the last moments."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._count = 0
        self._rate = 0.0

    def count(self) -> None:
        self._count += 1

    def ahead(self) -> int:
        """The jobs that would be started in the next moment if it goes on like this."""
        now = time.monotonic()
        passed = now - self._since
        if passed >= AHEAD_SECONDS:
            self._rate = self._count / passed
            self._since, self._count = now, 0
            rate = self._rate
        else:
            rate = max(self._rate, self._count / max(passed, FIRST_SECONDS))
        return min(MOST_AHEAD, int(rate * AHEAD_SECONDS))
