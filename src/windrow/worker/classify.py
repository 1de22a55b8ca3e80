"""Errors become outcomes here, and nowhere else.

- An outcome is taken as it is; any other value is the result of a job that is done.
- A transient error (`transient = True`, a time-out, a lost connection) and one nobody knows: retry,
  after `retry_after` seconds if the error has them, else as the handler's back-off says.
- A permanent error of Windrow (`transient = False`), a payload that does not fit: fail at once.
- `RateLimited`: the key is parked and the job waits for it; no attempt is used.
"""

from __future__ import annotations

import math
from types import CoroutineType
from typing import Any, Final

from windrow.errors import InvalidOutcome, RateLimited, WindrowError
from windrow.queue.checks import YEAR, check_seconds
from windrow.queue.job import Job
from windrow.queue.outcome import OUTCOMES, Done, Fail, Outcome, Retry, Snooze
from windrow.worker.registry import Handler

_DONE: Final = Done()


def to_outcome(value: Any) -> Outcome:
    """What a handler returned, as an outcome."""
    if value is None:
        return _DONE
    if isinstance(value, OUTCOMES):
        return value
    if isinstance(value, CoroutineType):
        value.close()
        raise InvalidOutcome("the handler returned a coroutine: await it")
    if isinstance(value, type) and value in OUTCOMES:
        raise InvalidOutcome(f"the handler returned the class {value.__name__}, not an outcome")
    return Done(value)


def classify(error: BaseException, job: Job, handler: Handler) -> Outcome:
    """The outcome of a run that raised. Never raises: the error and the back-off are a user's."""
    try:
        if isinstance(error, RateLimited):
            return Snooze(0.0 if error.key in job.limits else wait_for(error, job, handler))
        if isinstance(error, WindrowError) and not error.transient:
            return Fail(error)
        return Retry(error, after=wait_for(error, job, handler))
    except BaseException as trouble:
        return Fail(trouble)


def with_backoff(outcome: Outcome, job: Job, handler: Handler) -> Outcome:
    """A retry that names no time waits as long as the handler's back-off says."""
    if isinstance(outcome, Retry) and outcome.after is None:
        return Retry(outcome.error, after=_back_off(job, handler))
    return outcome


def wait_for(error: BaseException, job: Job, handler: Handler) -> float:
    """The seconds an error asks for, if it asks for a possible time, else those of the back-off."""
    after = getattr(error, "retry_after", None)
    if isinstance(after, int | float) and math.isfinite(after) and after >= 0:
        return min(float(after), YEAR)
    return _back_off(job, handler)


def _back_off(job: Job, handler: Handler) -> float:
    """What the handler's back-off says. Raises InvalidOutcome if that fails or is no duration."""
    try:
        seconds = check_seconds(handler.backoff(job.attempts), "the back-off")
    except Exception as error:
        raise InvalidOutcome(
            f"the back-off of {handler.kind!r} failed: {type(error).__name__}: {error}"
        ) from error
    if seconds is None:
        raise InvalidOutcome(f"the back-off of {handler.kind!r} returned None instead of seconds")
    return seconds
