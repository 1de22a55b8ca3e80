"""What a run says of itself. One of these ends every claim.

Arguments are checked when an outcome is made, so the error names the line of the handler that made
it. Results are checked when they are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from windrow.errors import InvalidJob, InvalidOutcome
from windrow.queue.checks import check_seconds
from windrow.queue.job import NewJob

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultedTypeVar

    T_co = DefaultedTypeVar("T_co", covariant=True, default=Any)
else:
    T_co = TypeVar("T_co", covariant=True)

_NOTHING: Final[Any] = None


@dataclass(frozen=True, slots=True)
class Done(Generic[T_co]):
    """The work is finished; `then` are enqueued in the same transaction."""

    result: T_co = _NOTHING
    then: Sequence[NewJob] = ()

    def __post_init__(self) -> None:
        if self.result is not None:
            _refuse_nested(self.result)
        if self.then != ():
            object.__setattr__(self, "then", check_follow_ups(self.then, "Done(then=…)"))


@dataclass(frozen=True, slots=True)
class Retry:
    """The run failed and may be tried again after a while; uses up an attempt.

    `after` is in seconds; None asks the back-off policy.
    """

    error: BaseException | str = "asked for a retry"
    after: float | timedelta | None = None

    def __post_init__(self) -> None:
        if is_number(self.error):
            raise InvalidOutcome(
                f"Retry({shown(self.error)}): the first argument is the error, an exception or a "
                f"text; to retry after a while: Retry(after={shown(self.error)})"
            )
        _check_error(self.error, "Retry")
        _check_wait(self.after, "Retry(after=…)")


@dataclass(frozen=True, slots=True)
class Snooze:
    """Not yet: run it again after `after` seconds; no attempt is used."""

    after: float | timedelta

    def __post_init__(self) -> None:
        if self.after is None:
            raise InvalidOutcome("Snooze(None): say how many seconds to wait: Snooze(60)")
        _check_wait(self.after, "Snooze(…)")


@dataclass(frozen=True, slots=True)
class Fail:
    """The run failed and trying again would not help."""

    error: BaseException | str

    def __post_init__(self) -> None:
        _check_error(self.error, "Fail")


@dataclass(frozen=True, slots=True)
class Cancel:
    """The work is not wanted any more."""

    reason: str = "cancelled by its handler"

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise InvalidOutcome(
                f"Cancel({shown(self.reason)}): the reason must be a text{_as_text(self.reason)}"
            )


Outcome = Done | Retry | Snooze | Fail | Cancel
OUTCOMES = (Done, Retry, Snooze, Fail, Cancel)


def check_follow_ups(jobs: Any, what: str) -> tuple[NewJob, ...]:
    """The jobs that follow from a run, as a tuple. None means that there are none."""
    if jobs is None:
        return ()
    if isinstance(jobs, NewJob):
        raise InvalidOutcome(f"{what} takes a list of jobs, not one NewJob: put it into [ ]")
    if isinstance(jobs, str | bytes) or not isinstance(jobs, Iterable):
        raise InvalidOutcome(f"{what} takes a list of NewJob, not {shown(jobs)}")
    listed = tuple(jobs)
    for job in listed:
        if not isinstance(job, NewJob):
            raise InvalidOutcome(f"{what} takes a list of NewJob, and one item is {shown(job)}")
    return listed


def shown(value: Any) -> str:
    """A value in an error message: short, even if its `__repr__` fails."""
    try:
        text = repr(value)
    except Exception:
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:79]}…"


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse_nested(result: Any) -> None:
    """An outcome as the result of a job, or first in it (`return Fail(…),`), would be stored as
    JSON and the job be completed."""
    first = result[0] if type(result) in (list, tuple) and result else result
    if isinstance(first, OUTCOMES):
        raise InvalidOutcome(
            f"{shown(result)}: a result cannot contain an outcome: return the outcome by itself"
        )


def _check_error(error: Any, name: str) -> None:
    if isinstance(error, BaseException | str):
        return
    if isinstance(error, type) and issubclass(error, BaseException):
        raise InvalidOutcome(
            f"{name}({error.__name__}): this is a class; make an exception of it: "
            f"{name}({error.__name__}(…))"
        )
    raise InvalidOutcome(
        f"{name}({shown(error)}): the error must be an exception or a text"
        f"{'' if error is None else _as_text(error, name)}"
    )


def _as_text(value: Any, name: str = "Cancel") -> str:
    """How to write a number where a text is expected."""
    return f': {name}("{value}")' if is_number(value) else ""


def _check_wait(seconds: Any, what: str) -> None:
    try:
        check_seconds(seconds, what)
    except InvalidJob as error:
        raise InvalidOutcome(str(error)) from None
