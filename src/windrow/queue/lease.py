"""A lease: jobs that were claimed together, and the right to say how they ended.

Every write names the lease's token. When another worker got the job meanwhile the write changes
nothing and raises `LeaseLost`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, assert_never

import msgspec

from windrow.db.codec import clean_text
from windrow.errors import (
    InvalidJob,
    InvalidOutcome,
    LeaseLost,
    RunEnded,
    StoreConflict,
    StoreError,
    WindrowError,
)
from windrow.queue.checks import SizeLimits, check_lease, check_seconds, encode_result, to_rows
from windrow.queue.job import Job, JobError, JobState, NewJob
from windrow.queue.limits import make_room
from windrow.queue.outcome import OUTCOMES, Cancel, Done, Fail, Outcome, Retry, Snooze, shown
from windrow.queue.policy import Backoff, backoff
from windrow.queue.records import Finish, Finished
from windrow.queue.steps import LeasedRun, report_progress, token_of
from windrow.queue.store import JobTransaction, Store
from windrow.redaction import redact_text

MAX_TRACEBACK = 20_000  # characters
MAX_MESSAGE = 20_000


class Lease:
    """What `Queue.claim` returns. `jobs` is empty when there was nothing to do."""

    def __init__(self, store: Store, jobs: Sequence[Job], limits: SizeLimits) -> None:
        self.jobs = list(jobs)
        self.stopping: Mapping[str, JobState] = {}
        self._store = store
        self._limits = limits
        self._open = {job.id: job for job in jobs}
        bind(jobs, store, limits)

    def __bool__(self) -> bool:
        return bool(self.jobs)

    async def complete(self, job: Job, result: Any = None, *, then: Sequence[NewJob] = ()) -> None:
        """The job is done; `then` are enqueued in the same transaction."""
        await self.finish(job, Done(result, then))

    async def fail(
        self,
        job: Job,
        error: BaseException | str,
        *,
        retry_in: float | str | Sequence[float] | Backoff | None = None,
        retry: bool = True,
    ) -> None:
        """The run failed. It is tried again while attempts are left, after `retry_in`: seconds, a
        back-off policy or the name of one. `retry=False`: it would not help, fail at once."""
        if not retry:
            await self.finish(job, Fail(error))
            return
        wait = backoff("default" if retry_in is None else retry_in)
        await self.finish(job, Retry(error, after=wait(job.attempts)))

    async def snooze(self, job: Job, seconds: float) -> None:
        """Run it again later; no attempt is used."""
        await self.finish(job, Snooze(seconds))

    async def release(self, job: Job) -> None:
        """Hand the job back unrun: it can be claimed again at once; no attempt is used."""
        await self.finish(job, Snooze(0))

    async def finish(self, job: Job, outcome: Outcome) -> None:
        """End the run with an outcome. Raises LeaseLost if the job is no longer ours, RunEnded if
        this run has ended already in another way. The same end may be repeated."""
        if not isinstance(outcome, OUTCOMES):
            raise InvalidOutcome(
                f"a run ends with Done, Retry, Snooze, Fail or Cancel, not with {shown(outcome)}"
            )
        finish = to_finish(job, outcome, self._limits)
        if isinstance(outcome, Done) and job.tx is not None and job.tx.is_lost:
            await self._hand_back_what_was_lost(job)
            return
        begun = None if job.tx is None else job.tx.take()
        if begun is not None and not isinstance(outcome, Done):
            await begun.rollback()
            begun = None
        try:
            finished = await self._store.finish_jobs([finish], tx=begun)
        except StoreError:
            if begun is not None:
                job.tx.lose()
                await begun.rollback()
            raise
        self._open.pop(job.id, None)
        await make_room(self._store, [job.limits])
        _check_written(finished)

    async def _hand_back_what_was_lost(self, job: Job) -> None:
        """Completing again a job whose transaction could not be committed would complete it
        without what was written there. So it is handed back; if the commit had arrived after all
        and only its reply was lost, the store recognises that the job has ended."""
        finished = await self._store.finish_jobs([to_finish(job, Snooze(0), self._limits)])
        self._open.pop(job.id, None)
        if finished.lost:
            raise LeaseLost(*finished.lost)
        # Handed back, another run may have completed it since: then it has had one run more.
        found = (await self._store.get_jobs([job.id])).get(job.id)
        is_done = found is not None and found.state in (JobState.COMPLETED, JobState.WAITING)
        if found is None or not is_done or found.runs != job.runs:
            raise StoreConflict(
                f"the transaction of job {job.id} was lost, so it was handed back and runs again"
            )

    async def finish_many(self, outcomes: Sequence[tuple[Job, Outcome]]) -> None:
        """End many runs in one transaction. Those whose lease was lost are left as they are and
        named by the LeaseLost raised at the end; those that had ended otherwise, by RunEnded."""
        finishes = [to_finish(job, outcome, self._limits) for job, outcome in outcomes]
        if any(job.tx is not None and job.tx.has_begun for job, _ in outcomes):
            raise InvalidJob("a job that used its transaction must be finished by itself")
        finished = await self._store.finish_jobs(finishes)
        for finish in finishes:
            self._open.pop(finish.id, None)
        await make_room(self._store, [job.limits for job, _ in outcomes])
        _check_written(finished)

    async def renew(self, seconds: float | timedelta | None = None) -> datetime | None:
        """Hold the lease longer: for its own length, or for `seconds` (1 at least, rounded up to
        whole ones), which are its length from then on. Raises LeaseLost naming the jobs that are no
        longer ours; the others are held on. `stopping` then says which ones somebody asked to
        stop."""
        tokens = sorted({job.lease_token for job in self._open.values() if job.lease_token})
        renewal = await self._store.extend_leases(tokens, check_lease(seconds))
        self.stopping = renewal.stopping
        lost = [job_id for job_id in self._open if job_id not in renewal.held]
        for job_id in lost:
            del self._open[job_id]
        if lost:
            raise LeaseLost(*lost)
        return renewal.expires_at

    async def progress(
        self,
        /,
        job: Job,
        percent: float | None = None,
        message: str | None = None,
        **counters: int,
    ) -> None:
        """Say how far the job is. The percentage never goes back."""
        await report_progress(self._store, job, percent, message, counters)


def _check_written(finished: Finished) -> None:
    if finished.lost:
        raise LeaseLost(*finished.lost)
    if finished.conflicting:
        raise RunEnded(*finished.conflicting)


class LeaseBinding(msgspec.Struct, frozen=True):
    """What the jobs of one claim have in common: where their transactions and steps are kept."""

    store: Store
    limits: SizeLimits

    def make_transaction(self, job: Job) -> LazyTransaction:
        return LazyTransaction(self.store, job)

    def make_run(self, job: Job) -> LeasedRun:
        return LeasedRun(self.store, job, self.limits)


def bind(jobs: Sequence[Job], store: Store, limits: SizeLimits) -> None:
    """Give claimed jobs their transactions and steps, which are made when they are first used."""
    binding = LeaseBinding(store, limits)
    for job in jobs:
        job.bind_to(binding)


class LazyTransaction:
    """`job.tx`: the transaction the job will be completed in, begun when first used. What is
    executed there takes effect if and only if the completion is accepted."""

    __slots__ = ("_begun", "_job", "_store", "is_lost")

    def __init__(self, store: Store, job: Job) -> None:
        self._store = store
        self._job = job
        self._begun: JobTransaction | None = None
        self.is_lost = False  # it was to be committed, and nobody knows whether it was

    @property
    def has_begun(self) -> bool:
        return self._begun is not None

    async def execute(self, sql: str, *args: Any) -> None:
        """Run a statement; on SQLite it is kept until the job is completed."""
        await (await self._begin()).execute(sql, *args)

    async def fetch(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        """Run a query inside the transaction, where the store can do that."""
        return await (await self._begin()).fetch(sql, *args)

    async def note(self, group_id: str, subject: str, texts: Sequence[str]) -> None:
        """Note texts for whoever looks at a group later, each once: `Queue.group_notes` has them.
        They go when the group does."""
        await (await self._begin()).note(
            group_id, clean_text(subject), [clean_text(text) for text in texts]
        )

    async def save(self) -> None:
        """Commit what was executed so far while the job goes on, if it is still ours: raises
        LeaseLost if not. A later run does not know of it, so it should be harmless to repeat."""
        if begun := self.take():
            try:
                await self._store.save_work(self._job.id, token_of(self._job), begun)
            except StoreError:
                await begun.rollback()  # a later run would wait for its locks
                raise

    async def rollback(self) -> None:
        """Drop what was executed so far."""
        if begun := self.take():
            await begun.rollback()

    def take(self) -> JobTransaction | None:
        """Hand the begun transaction over to the one who ends it."""
        begun, self._begun = self._begun, None
        return begun

    def lose(self) -> None:
        self.is_lost = True

    async def _begin(self) -> JobTransaction:
        if self._begun is None:
            self._begun = await self._store.begin()
        return self._begun


def to_finish(job: Job, outcome: Outcome, limits: SizeLimits) -> Finish:
    """What the store is to do for an outcome: the one place where outcomes become states.

    Raises a WindrowError, whatever is wrong with the outcome: its parts are a user's objects, whose
    methods may raise anything.
    """
    try:
        return _to_finish(job, outcome, limits)
    except WindrowError:
        raise
    except Exception as error:
        raise InvalidOutcome(
            f"the outcome {type(outcome).__name__} cannot be stored: {safe_message(error)}"
        ) from error


def _to_finish(job: Job, outcome: Outcome, limits: SizeLimits) -> Finish:
    token = token_of(job)
    match outcome:
        case Done():
            result = encode_result(outcome.result, limits)
            return Finish(
                job.id,
                token,
                JobState.COMPLETED,
                result=None if result is None else result.json,
                result_is_cleaned=result is not None and result.is_cleaned,
                then=tuple(to_rows(outcome.then, limits)) if outcome.then else (),
            )
        case Retry():
            if job.attempts + 1 >= job.max_attempts:
                return _to_finish(job, Fail(outcome.error), limits)
            wait = backoff("default")(job.attempts) if outcome.after is None else outcome.after
            return Finish(
                job.id,
                token,
                JobState.READY,
                delay=check_seconds(wait, "after") or 0.0,
                error=describe(outcome.error),
                uses_attempt=True,
            )
        case Snooze():
            # Made once more, as a subclass may have left out the check: None would spin.
            delay = check_seconds(Snooze(outcome.after).after, "after") or 0.0
            return Finish(job.id, token, JobState.READY, delay=delay)
        case Fail():
            error = describe(outcome.error)
            return Finish(job.id, token, JobState.FAILED, error=error, uses_attempt=True)
        case Cancel():
            error = JobError(None, "cancel", _stored(outcome.reason))
            return Finish(job.id, token, JobState.CANCELLED, error=error)
        case _:
            assert_never(outcome)


def describe(error: BaseException | str) -> JobError:
    """An error as it is kept in the job's history. Never raises: an exception is a user's object,
    and its `__str__`, its notes or its frames may be broken."""
    if isinstance(error, str):
        return JobError(None, "attempt", _stored(error) or "failed without a message")
    return JobError(
        at=None,
        reason="attempt",
        message=safe_message(error) or "no message",
        type=_guarded(lambda: clean_text(str(type(error).__qualname__)), "Exception"),
        traceback=safe_traceback(error),
    )


def safe_traceback(error: BaseException) -> str:
    """The traceback of an exception, even of one whose notes, frames or `__str__` are broken."""
    return _guarded(
        lambda: _shown("".join(traceback.format_exception(error))[-MAX_TRACEBACK:]),
        "the traceback cannot be shown",
    )


def safe_message(error: BaseException) -> str:
    """The text of an exception, or of which type it is if it has none that can be read."""
    name = _guarded(lambda: clean_text(type(error).__name__), "Exception")
    unreadable = f"{name} without a readable message: its __str__ failed"
    return _guarded(lambda: _stored(str(error)), unreadable)


def _guarded(make: Callable[[], str], otherwise: str) -> str:
    """What a user's method makes. It may raise anything, SystemExit too."""
    try:
        return make()
    except BaseException:
        return otherwise


def _stored(text: str) -> str:
    """A message as it is stored: of bounded length, and exactly a `str`."""
    return _shown(str.__str__(text)[:MAX_MESSAGE])


def _shown(text: str) -> str:
    """What is kept of an error is read by many: without passwords that came with an address."""
    return clean_text(redact_text(text))
