"""Writes outcomes back, many in one transaction, and claims the next jobs in the same one.

What has not been written is tried again until the database answers, so finished work is not lost
while the lease lives; after that the database refuses it, and says so.

An end that cannot be built or stored fails its own job and no other. If not even that failure can
be stored, the end is dropped and the lease of the job expires.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from windrow.errors import InvalidOutcome, WindrowError
from windrow.logging import event
from windrow.queue.checks import SizeLimits, to_rows
from windrow.queue.job import JobState
from windrow.queue.lease import describe, safe_message, safe_traceback, to_finish
from windrow.queue.limits import make_room
from windrow.queue.outcome import Fail, Outcome, Snooze, check_follow_ups
from windrow.queue.records import Finish, Finished
from windrow.queue.store import JobTransaction, Store
from windrow.queue.sync import unblock
from windrow.worker.claimer import Claimer
from windrow.worker.observers import Observers
from windrow.worker.registry import OnFailure
from windrow.worker.run_log import log_end, log_refused, log_transaction_failed, logs_completed
from windrow.worker.runs import Run, Runs
from windrow.worker.service import Service, is_cancellation, is_outage

logger = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 500
# Outcomes wait for each other at most this long, and only if so many come that it is worth it.
LINGER_SECONDS: Final = 0.005
WORTH_WAITING: Final = 300
NOTHING_SECONDS: Final = 60.0  # `add` wakes us
# Who writes batches beside the completer when many come: while the database is at work on two, this
# process takes apart what the third has brought.
HELPERS: Final = 2
TROUBLE_SECONDS: Final = 0.1  # before the end of a transaction that failed is tried in another way


class Completer(Service):
    def __init__(
        self,
        store: Store,
        limits: SizeLimits,
        runs: Runs,
        observers: Observers,
        *,
        log_runs: bool = True,
    ) -> None:
        super().__init__()
        self._store = store
        self._limits = limits
        self._runs = runs
        self._observers = observers
        self._log_runs = log_runs
        self._pending: deque[End] = deque()
        self._last_batch = 0
        self._leaving = 0  # runs whose ends are being written
        self._tasks: set[asyncio.Task[None]] = set()  # ends that are written by themselves
        self.claimer: Claimer | None = None  # who claims with us, once there is one
        # Called with the id of each job that goes back to wait, and for how many seconds.
        self.put_back: Callable[[str, float], None] | None = None
        self.helpers = [Helper(self) for _ in range(HELPERS)]

    def add(self, run: Run, outcome: Outcome | None) -> None:
        """An outcome to be written; None: the job is not ours any more."""
        end = None if outcome is None else self._end_of(run, outcome)
        if end is None:
            self._drop(run)
        elif end.is_by_itself:
            self._end_by_itself(end)
        else:
            self._pending.append(end)
            self.wake()
            if self.has_many:
                for helper in self.helpers:
                    helper.wake()

    @property
    def has_many(self) -> bool:
        return len(self._pending) >= WORTH_WAITING

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def run_once(self) -> float:
        self.has_worked = bool(self._pending)
        if not self._pending:
            return NOTHING_SECONDS
        await self._linger()
        await self.write_batch()
        await self.write_many()
        return 0.0 if self._pending else NOTHING_SECONDS

    async def write_many(self) -> None:
        """Write as long as many have come; each batch before the handlers of jobs that came with
        the last one have their turn, so that the database does not wait for them."""
        while self.has_many:
            await self.write_batch()

    async def write_batch(self) -> None:
        """Write what has come so far, or as much of it as one transaction should have."""
        batch = [self._pending.popleft() for _ in range(min(MOST_AT_ONCE, len(self._pending)))]
        self._last_batch = len(batch)
        batch = self._without_superseded(batch)
        try:
            await self._finish(batch)
        except BaseException:
            self._take_back(batch)
            raise

    def _without_superseded(self, batch: list[End]) -> list[End]:
        """What of a batch is worth writing: not the end of a run whose job was lost, and claimed by
        this worker again before that end could be written."""
        stale = [end for end in batch if self._runs.is_superseded(end.run)]
        for end in stale:
            logger.warning(
                "job %s: the end of a run came too late",
                end.run.id,
                extra=event("job.lease_lost", job_id=end.run.id),
            )
            self._drop(end.run)
        return [end for end in batch if end not in stale] if stale else batch

    def _take_back(self, batch: list[End]) -> None:
        """What is not written is tried again, in its order."""
        self._pending.extendleft(end for end in reversed(batch) if end.run in self._runs)

    def _end_by_itself(self, end: End) -> None:
        """Its transaction has a connection that others may be waiting for, so it waits for nobody:
        neither for ends that are written together nor for what somebody's `on_failure` does."""

        async def write() -> None:
            try:
                await self._finish_in_transaction(end)
            except BaseException as error:
                if is_cancellation(error):
                    raise
                logger.error(
                    "job %s: its end could not be written\n%s",
                    end.run.id,
                    safe_traceback(error),
                    extra=event("job.end_refused", job_id=end.run.id, error=safe_message(error)),
                )
                end.run.is_mute = True
                if end.run in self._runs:
                    self.add(end.run, Fail(error))

        self._begin(write())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _linger(self) -> None:
        """When many outcomes come, let more of them come before this batch is written."""
        if self._last_batch < WORTH_WAITING // 10 or len(self._pending) >= WORTH_WAITING:
            return
        give_up_at = time.monotonic() + LINGER_SECONDS
        while len(self._pending) < WORTH_WAITING and time.monotonic() < give_up_at:
            before = len(self._pending)
            await asyncio.sleep(LINGER_SECONDS / 5)
            if len(self._pending) == before:
                return

    async def _finish(self, ends: list[End]) -> None:
        if not ends:
            return
        try:
            finished = await self._write(ends)
        except Exception as error:
            if is_outage(error):
                raise
            if len(ends) == 1:
                await self._replace(ends[0], error)
                return
            for end in ends:  # one of them is refused: find it
                await self._finish([end])
            return
        await self._written(ends, finished)

    async def _write(self, ends: list[End]) -> Finished:
        self._leaving += len(ends)
        claim = self.claimer.reserve(leaving=self._leaving) if self.claimer else None
        try:
            finished = await self._store.finish_jobs([end.finish for end in ends], claim=claim)
        except BaseException:
            if claim and self.claimer:
                self.claimer.failed(claim)
            raise
        finally:
            self._leaving -= len(ends)
        for end in ends:
            self._runs.remove(end.run)
        if claim and self.claimer:
            self.claimer.took(claim, finished.claimed)
        elif self.claimer:
            self.claimer.wake()  # there was no room then; there may be now, and nobody else looks
        return finished

    async def _written(self, ends: list[End], finished: Finished) -> None:
        runs = [end.run for end in ends]
        if self.put_back:
            for end in ends:
                if end.finish.delay:
                    self.put_back(end.finish.id, end.finish.delay)
        log_refused(finished)
        unwritten = {*finished.lost, *finished.conflicting}
        with_completed = logs_completed()
        for end in ends:
            if end.run.id in unwritten:
                if end.run.id in finished.lost:
                    self._observers.lost(end.run.job)
            elif self._log_runs and (with_completed or end.finish.state is not JobState.COMPLETED):
                log_end(end.run, end.finish)
        if any(run.limits for run in runs):
            await make_room(self._store, [run.limits for run in runs])

    async def _replace(self, end: End, error: Exception) -> None:
        """The store refuses an end for good: fail its job instead, first with the error, then with
        a plain text. If that is refused too, the lease of the job is left to expire."""
        run = end.run
        why = f"the end of this run could not be stored: {safe_message(error)}"
        if not isinstance(end.outcome, Fail):
            other = self._end_of(run, Fail(error))
        elif not isinstance(end.outcome.error, str):
            other = self._end_of(run, Fail(why))
        else:
            other = None
        if other is None:
            logger.error(
                "job %s: %s", run.id, why, extra=event("job.end_refused", job_id=run.id, error=why)
            )
            self._drop(run)
            raise error
        await (self._finish_in_transaction(other) if other.is_by_itself else self._finish([other]))

    async def _finish_in_transaction(self, end: End) -> None:
        """End a job in whose transaction something was or is to be written; by itself."""
        run = end.run
        if end.has_last_words:
            end.finish = await self._with_last_words(end)
        begun: JobTransaction | None = run.job.tx.take()
        try:
            if begun is not None and not end.keeps_transaction:
                await begun.rollback()
                begun = None
            finished = await self._store.finish_jobs([end.finish], tx=begun)
        except Exception as error:
            log_transaction_failed(run, "ended", error)
            if begun is not None:
                await begun.rollback()  # whoever runs it next would wait for its locks
            await asyncio.sleep(TROUBLE_SECONDS)
            self.add(run, _after_trouble(end, error))
            return
        self._runs.remove(run)
        await self._written([end], finished)
        if self.claimer:
            self.claimer.wake()

    def _end_of(self, run: Run, outcome: Outcome) -> End:
        """The end of a run. An outcome that cannot be stored is a failure of that run."""
        try:
            if (run.job.id, run.job.lease_token or "") != (run.id, run.token):
                raise InvalidOutcome("the handler changed the id or the lease of its job")
            return End(run, outcome, to_finish(run.job, outcome, self._limits))
        except BaseException as error:  # a result's attributes may raise anything
            return _failed_end(run, error)

    async def _with_last_words(self, end: End) -> Finish:
        """A failure is written whatever becomes of what follows from it. What the run had written
        is gone before."""
        run, finish = end.run, end.finish
        try:
            unblock(run.job)
            await _rollback(run)
            said = end.tell(run.job, "" if finish.error is None else finish.error.message)
            jobs = await said if isinstance(said, Awaitable) else said
            then = check_follow_ups(jobs, f"on_failure of {run.job.kind!r}")
            return msgspec.structs.replace(finish, then=tuple(to_rows(then, self._limits)))
        except BaseException as error:
            if is_cancellation(error):
                raise
            logger.error(
                "job %s: on_failure of %s failed\n%s",
                run.id,
                run.handler.kind,
                safe_traceback(error),
                extra=event("job.on_failure_failed", job_id=run.id, kind=run.handler.kind),
            )
            run.is_mute = True
            await _rollback(run)
            return finish

    def _drop(self, run: Run) -> None:
        """Nothing is to be written. What the handler began is rolled back."""
        if _has_transaction(run):
            self._begin(self._drop_transaction(run))
        else:
            self._forget(run)

    async def _drop_transaction(self, run: Run) -> None:
        try:
            await _rollback(run)
        except Exception as error:
            log_transaction_failed(run, "rolled back", error)
        finally:
            self._forget(run)

    def _forget(self, run: Run) -> None:
        self._runs.remove(run)
        self._observers.lost(run.job)
        if self.claimer:
            self.claimer.wake()


class Helper(Service):
    """Writes batches while the completer waits for others. When little comes, it sleeps."""

    def __init__(self, completer: Completer) -> None:
        super().__init__()
        self._completer = completer

    async def run_once(self) -> float:
        await self._completer.write_many()
        return NOTHING_SECONDS


@dataclass(slots=True)
class End:
    """A run, what came of it, and what is to be written."""

    run: Run
    outcome: Outcome
    finish: Finish

    @property
    def tell(self) -> OnFailure:
        return self.run.handler.on_failure or (lambda job, why: ())

    @property
    def has_last_words(self) -> bool:
        is_failure = self.finish.state is JobState.FAILED
        return is_failure and self.run.handler.on_failure is not None and not self.run.is_mute

    @property
    def is_by_itself(self) -> bool:
        return self.has_last_words or _has_transaction(self.run)

    @property
    def keeps_transaction(self) -> bool:
        return self.has_last_words or self.finish.state is JobState.COMPLETED


def _failed_end(run: Run, error: BaseException) -> End:
    """Made of what was claimed, and not of the job, which the handler may have changed. The error
    may be a user's, whose `__class__` raises."""
    why = error
    if not issubclass(type(error), WindrowError):
        why = InvalidOutcome(f"the outcome cannot be stored: {safe_message(error)}")
    finish = Finish(run.id, run.token, JobState.FAILED, error=describe(why), uses_attempt=True)
    return End(run, Fail(why), finish)


def _after_trouble(end: End, error: Exception) -> Outcome:
    """How a run ends whose transaction was lost, or committed without a reply: then this next end
    is recognised as a repetition."""
    is_ours = is_outage(error)
    if end.finish.state is JobState.FAILED:
        end.run.is_mute = not is_ours
        return end.outcome if is_ours or isinstance(end.outcome, Fail) else Fail(error)
    return Snooze(0) if is_ours else Fail(error)


async def _rollback(run: Run) -> None:
    if run.job.tx is not None:
        await run.job.tx.rollback()


def _has_transaction(run: Run) -> bool:
    return run.job.has_begun_tx
