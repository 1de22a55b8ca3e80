"""What a kind's handler says about new jobs.

A process that knows the handler enqueues by it; what `enqueue` or `NewJob` names comes first. A
process that does not know it takes the defaults of every job.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, Unpack, runtime_checkable

import msgspec

from windrow.errors import InvalidJob
from windrow.queue.job import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_MAX_CRASHES,
    DEFAULT_QUEUE,
    Job,
    JobOptions,
    NewJob,
)

P_contra = TypeVar("P_contra", contravariant=True)
if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultedTypeVar

    R_co = DefaultedTypeVar("R_co", covariant=True, default=Any)
else:
    R_co = TypeVar("R_co", covariant=True)
MAX_SHOWN: Final = 80  # characters of what is no kind, in an error


class Kind(msgspec.Struct, frozen=True):
    queue: str = DEFAULT_QUEUE
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    max_crashes: int = DEFAULT_MAX_CRASHES
    limits: tuple[str, ...] = ()


@runtime_checkable
class HandlerLike(Protocol[P_contra, R_co]):
    """A handler as `enqueue` and `schedule` accept it: contravariant in its payload."""

    @property
    def kind(self) -> str: ...

    def check_payload(self, payload: P_contra, /) -> None: ...

    def typed(self, job: Job[Any], /) -> Job[R_co]: ...


def new_job(
    kind: str | HandlerLike[Any, Any], payload: Any, **options: Unpack[JobOptions]
) -> NewJob:
    """A new job of a kind that is given by its name or by its handler."""
    given: Any = kind  # what is neither is refused where it is written
    if hasattr(kind, "check_payload"):  # isinstance() of a protocol would take 30 µs
        job: NewJob = given.job(payload, **options)
        return job
    return NewJob(given, payload, **options)


def check_kind(kind: Any) -> None:
    """Raise InvalidJob, in one line that says what is expected, if this is no name of a kind."""
    if isinstance(kind, str):
        return
    match kind:
        case HandlerLike():
            given = f"a handler here: {kind.kind}.job(payload) makes a NewJob"
        case NewJob():
            given = "a NewJob: enqueue_many([job]) takes these"
        case type():
            given = f"the class {kind.__name__}"
        case FunctionType():
            given = (
                f"the plain function {kind.__name__}: decorate it with @handler({kind.__name__!r})"
            )
        case _:
            given = repr(kind)[:MAX_SHOWN]
    raise InvalidJob(
        f"the kind must be the name of a handler ('thumbnail') or a handler itself, not {given}"
    )


_USUAL: Final = Kind()
_declared: Final[dict[str, Kind]] = {}


def declare(name: str, kind: Kind) -> None:
    """New jobs of this kind are made by these from now on; declared again, the last one counts."""
    _declared[name] = kind


def usual(name: str) -> Kind:
    return _declared.get(name, _USUAL)
