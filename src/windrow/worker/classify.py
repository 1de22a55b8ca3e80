"""Errors become outcomes here, and nowhere else.

- An outcome is taken as it is; any other value is the result of a job that is done.
- A transient error (`transient = True`, a time-out, a lost connection) and one nobody knows: retry,
  after `retry_after` seconds if the error has them, else as the handler's back-off says.
- A permanent error of Windrow (`transient = False`), a payload that does not fit: fail at once.
- `RateLimited`: the key is parked and the job waits for it; no attempt is used.
"""

from __future__ import annotations

from typing import Any, Final

from windrow.errors import RateLimited, WindrowError
from windrow.queue.job import Job
from windrow.queue.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze
from windrow.worker.registry import Handler

OUTCOMES = (Done, Retry, Snooze, Fail, Cancel)


_DONE: Final = Done()


def to_outcome(value: Any) -> Outcome:
    """What a handler returned, as an outcome."""
    if value is None:
        return _DONE
    return value if isinstance(value, OUTCOMES) else Done(value)


def classify(error: BaseException, job: Job, handler: Handler) -> Outcome:
    """The outcome of a run that raised."""
    if isinstance(error, RateLimited):
        return Snooze(0.0 if error.key in job.limits else _wait(error, job, handler))
    if isinstance(error, WindrowError) and not error.transient:
        return Fail(error)
    return with_backoff(Retry(error, after=_retry_after(error)), job, handler)


def with_backoff(outcome: Outcome, job: Job, handler: Handler) -> Outcome:
    """A retry that names no time waits as long as the handler's back-off says."""
    if isinstance(outcome, Retry) and outcome.after is None:
        return Retry(outcome.error, after=handler.backoff(job.attempts))
    return outcome


def _wait(error: RateLimited, job: Job, handler: Handler) -> float:
    after = _retry_after(error)
    return handler.backoff(job.attempts) if after is None else after


def _retry_after(error: BaseException) -> float | None:
    after = getattr(error, "retry_after", None)
    return float(after) if isinstance(after, int | float) and after >= 0 else None
