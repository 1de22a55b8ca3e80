"""Writes outcomes back, many in one transaction, and claims the next jobs in the same one.

What has not been written is tried again until the database answers, so finished work is not lost
while the lease lives; after that the database refuses it, and says so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import Final

import msgspec

from windrow.errors import StoreError, StoreReadOnly, WindrowError
from windrow.queue.checks import SizeLimits, to_rows
from windrow.queue.job import JobState
from windrow.queue.lease import to_finish
from windrow.queue.limits import make_room
from windrow.queue.outcome import Fail, Outcome, Snooze, commits
from windrow.queue.records import Finish, Finished
from windrow.queue.store import JobTransaction, Store
from windrow.worker.claimer import Claimer
from windrow.worker.observers import Observers
from windrow.worker.registry import OnFailure
from windrow.worker.runs import Run, Runs
from windrow.worker.service import Service

logger = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 500
# Outcomes wait for each other at most this long, and only if so many come that it is worth it.
LINGER_SECONDS: Final = 0.005
WORTH_WAITING: Final = 100
NOTHING_SECONDS: Final = 60.0  # `add` wakes us


class Completer(Service):
    def __init__(self, store: Store, limits: SizeLimits, runs: Runs, observers: Observers) -> None:
        super().__init__()
        self._store = store
        self._limits = limits
        self._runs = runs
        self._observers = observers
        self._pending: deque[tuple[Run, Outcome]] = deque()
        self._last_batch = 0
        self.claimer: Claimer | None = None  # who claims with us, once there is one
        self.helper = Helper(self)

    def add(self, run: Run, outcome: Outcome | None) -> None:
        """An outcome to be written; None: the job is not ours any more."""
        if outcome is None:
            self._drop(run)
        else:
            self._pending.append((run, outcome))
            self.wake()
            if self.has_many:
                self.helper.wake()

    @property
    def has_many(self) -> bool:
        return len(self._pending) >= WORTH_WAITING

    async def run_once(self) -> float:
        if not self._pending:
            return NOTHING_SECONDS
        await self._linger()
        await self.write_batch()
        return 0.0 if self._pending else NOTHING_SECONDS

    async def write_batch(self) -> None:
        """Write what has come so far, or as much of it as one transaction should have."""
        batch = [self._pending.popleft() for _ in range(min(MOST_AT_ONCE, len(self._pending)))]
        self._last_batch = len(batch)
        own = [one for one in batch if _has_transaction(one[0])]
        plain = [one for one in batch if one not in own] if own else batch
        try:
            await self._finish(plain)
        except BaseException:
            self._pending.extend(own)
            raise
        await asyncio.gather(*(self._finish_in_transaction(*one) for one in own))

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

    async def _finish(self, batch: list[tuple[Run, Outcome]]) -> None:
        if not batch:
            return
        finishes = [self._to_finish(run, outcome) for run, outcome in batch]
        try:
            finished = await self._write(finishes, [run for run, _ in batch])
        except StoreError as error:
            if error.transient or isinstance(error, StoreReadOnly):
                self._pending.extendleft(reversed(batch))
                raise
            await self._finish_one_by_one(batch, error)
            return
        except BaseException:
            self._pending.extendleft(reversed(batch))
            raise
        await self._written([run for run, _ in batch], finished)

    async def _write(self, finishes: list[Finish], runs: list[Run]) -> Finished:
        claim = self.claimer.reserve(leaving=len(runs)) if self.claimer else None
        try:
            finished = await self._store.finish_jobs(finishes, claim=claim)
        except BaseException:
            if claim and self.claimer:
                self.claimer.failed(claim)
            raise
        for run in runs:
            self._runs.remove(run)
        if claim and self.claimer:
            self.claimer.took(claim, finished.claimed)
        return finished

    async def _written(self, runs: list[Run], finished: Finished) -> None:
        for job_id in finished.lost:
            logger.warning("job %s: its end was refused, the lease was lost", job_id)
        lost = set(finished.lost)
        for run in runs:
            if run.job.id in lost:
                self._observers.lost(run.job)
        dropped = [one.id for one in finished.then if one.outcome == "dropped"]
        if dropped:
            logger.warning("%d follow-up jobs were dropped: their group has ended", len(dropped))
        if any(run.job.limits for run in runs):
            await make_room(self._store, [run.job.limits for run in runs])

    async def _finish_one_by_one(self, batch: list[tuple[Run, Outcome]], error: StoreError) -> None:
        """The database refuses a batch for good. Find the job it refuses, and fail that one."""
        if len(batch) > 1:
            for one in batch:
                await self._finish([one])
            return
        [(run, outcome)] = batch
        if isinstance(outcome, Fail):
            logger.error("job %s: its end cannot be written: %s", run.job.id, error)
            self._drop(run)
        else:
            await self._finish([(run, Fail(error))])

    async def _finish_in_transaction(self, run: Run, outcome: Outcome) -> None:
        """End a job whose handler wrote in its transaction; by itself."""
        begun: JobTransaction | None = run.job.tx.take()
        finish = self._to_finish(run, outcome)
        try:
            if begun is not None and not commits(outcome):
                await begun.rollback()
                begun = None
            finished = await self._store.finish_jobs([finish], tx=begun)
        except StoreError as error:
            # What the handler wrote is gone with the transaction, or has been committed and the
            # reply was lost: then this next end is recognised as a repetition.
            logger.warning("job %s: its transaction could not be ended: %s", run.job.id, error)
            is_ours = error.transient or isinstance(error, StoreReadOnly)
            self._pending.append((run, Snooze(0) if is_ours else Fail(error)))
            return
        self._runs.remove(run)
        await self._written([run], finished)
        if self.claimer:
            self.claimer.wake()

    def _to_finish(self, run: Run, outcome: Outcome) -> Finish:
        try:
            finish = to_finish(run.job, outcome, self._limits)
        except WindrowError as error:  # a result or a follow-up that cannot be stored
            finish = to_finish(run.job, Fail(error), self._limits)
        if finish.state is JobState.FAILED and run.handler.on_failure is not None:
            return self._with_last_words(run, finish, run.handler.on_failure)
        return finish

    def _with_last_words(self, run: Run, finish: Finish, on_failure: OnFailure) -> Finish:
        """A failure is written whatever becomes of what follows from it."""
        why = "" if finish.error is None else finish.error.message
        try:
            then = tuple(to_rows(on_failure(run.job, why), self._limits))
        except Exception:
            logger.exception("job %s: on_failure of %s failed", run.job.id, run.job.kind)
            return finish
        return msgspec.structs.replace(finish, then=then)

    def _drop(self, run: Run) -> None:
        """Nothing is to be written. What the handler began goes."""
        if _has_transaction(run):
            self._pending.append((run, Snooze(0)))
            self.wake()
            return
        self._runs.remove(run)
        self._observers.lost(run.job)
        if self.claimer:
            self.claimer.wake()


class Helper(Service):
    """Writes a batch while the completer waits for another: the database is at work on one while
    this process takes apart what the other has brought. When little comes, it sleeps."""

    def __init__(self, completer: Completer) -> None:
        super().__init__()
        self._completer = completer

    async def run_once(self) -> float:
        if not self._completer.has_many:
            return NOTHING_SECONDS
        await self._completer.write_batch()
        return 0.0


def _has_transaction(run: Run) -> bool:
    return run.job.tx is not None and run.job.tx.has_begun
