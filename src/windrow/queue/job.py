"""The job: what is handed in (`NewJob`), what is read back (`Job`), and its states.

scheduled ─┐
held      ─┼─► ready ─► active ─► completed | failed | cancelled
paused    ─┘     ▲         │  └─► waiting (for its group) ─► completed
                 └─────────┘ retry, snooze, release, crash
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    overload,
)

import msgspec

from windrow.db.codec import decode_as, type_name
from windrow.errors import InvalidJob, ResultMismatch

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultedTypeVar

    from windrow.queue.outcome import Cancel, Done, Fail, Retry, Snooze

    # What a handler returns: a value, or an outcome. Unknown (Any) for jobs that are read by id.
    R_co = DefaultedTypeVar("R_co", covariant=True, default=Any)
else:
    R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

DEFAULT_QUEUE: Final = "default"
DEFAULT_PRIORITY: Final = 5
DEFAULT_MAX_ATTEMPTS: Final = 5
DEFAULT_MAX_CRASHES: Final = 5

OnConflict = Literal["return", "reject", "replace", "follow"]


class Priority:
    """Names for the priorities people use; any integer is allowed, higher runs first."""

    NOW: Final = 10  # a person is waiting for the answer
    COMMAND: Final = 9  # somebody typed a command
    NOTE: Final = 8  # a note or clipboard text
    ACTIVE_PROJECT: Final = 7  # files of the project being worked on
    NORMAL: Final = 5  # what a watcher sees
    SCAN: Final = 3  # background folder scans
    LIBRARY: Final = 1  # documentation of libraries
    BULK: Final = 0  # deferred and bulk work


class JobState(StrEnum):
    SCHEDULED = "scheduled"  # waits for its time
    HELD = "held"  # waits for room under a limit, or for the running job with its unique key
    PAUSED = "paused"  # waits for a person
    READY = "ready"  # can be claimed
    ACTIVE = "active"  # claimed, under a lease
    WAITING = "waiting"  # has run and waits for its group to end
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    def __repr__(self) -> str:
        """As a plain string, so that printed counts are readable."""
        return repr(self.value)


UNCLAIMED: Final = frozenset(
    {JobState.SCHEDULED, JobState.HELD, JobState.PAUSED, JobState.READY},
)
FINAL: Final = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})
LIVE: Final = frozenset(JobState) - FINAL


class _Named(msgspec.Struct, frozen=True):
    kind: str
    payload: Any = None


# No dataclass: it is made for each of many jobs, and a frozen one takes 2 µs, this a tenth of it.
class NewJob(_Named, frozen=True, kw_only=True):
    """A job to be enqueued. Same names as `Queue.enqueue`. What is None here is as the handler of
    its kind says, if this process knows it, else as usual."""

    queue: str | None = None
    priority: int = DEFAULT_PRIORITY
    delay: float | timedelta | None = None
    run_at: datetime | None = None
    unique: str | None = None
    on_conflict: OnConflict = "return"
    tenant: str | None = None
    group: str | None = None
    group_key: str | None = None
    headers: Mapping[str, Any] | None = None
    tags: Sequence[str] = ()
    max_attempts: int | None = None
    max_crashes: int | None = None
    lease: float | timedelta | None = None
    retention: float | timedelta | None = None
    limits: Sequence[str] | None = None
    max_hold: float | timedelta | None = None
    id: str | None = None


class ScheduledJobOptions(TypedDict, total=False):
    """The options of a job that a schedule enqueues."""

    queue: str | None
    priority: int
    unique: str | None
    on_conflict: OnConflict
    tenant: str | None
    headers: Mapping[str, Any] | None
    tags: Sequence[str]
    max_attempts: int | None
    max_crashes: int | None
    lease: float | timedelta | None
    retention: float | timedelta | None
    limits: Sequence[str] | None
    max_hold: float | timedelta | None


class JobOptions(ScheduledJobOptions, total=False):
    """The options of `NewJob`: everything but the kind and the payload."""

    delay: float | timedelta | None
    run_at: datetime | None
    group: str | None
    group_key: str | None
    id: str | None


class EnqueueOptions(JobOptions, total=False):
    """The options of `Queue.enqueue`."""

    timeout: float
    tx: Any


class JobError(msgspec.Struct, frozen=True):
    """One line of a job's error history."""

    at: datetime | None
    reason: Literal["attempt", "crash", "cancel", "hold"]
    message: str
    type: str | None = None
    traceback: str | None = None


class Step(msgspec.Struct, frozen=True):
    """What is kept of one step of a job's runs."""

    name: str
    result_json: str
    at: datetime

    @property
    def result(self) -> Any:
        return msgspec.json.decode(self.result_json)


class Progress(msgspec.Struct, frozen=True):
    """How far a job is; the percentage never goes back."""

    percent: int
    message: str | None = None
    counters: Mapping[str, int] = msgspec.field(default_factory=dict)
    updated_at: datetime | None = None


class Binding(Protocol):
    """What a claimed job is bound to: makes what is asked of the job, when it is first asked."""

    def make_transaction(self, job: Job) -> Any: ...

    def make_run(self, job: Job) -> Any: ...


if TYPE_CHECKING:
    _Unfinished: TypeAlias = Retry | Snooze | Fail | Cancel

    class _Unknown:
        """Placeholder that no handler returns: only `Job[Any]` is assignable to `Job[_Unknown]`."""

    class _ResultProperty:
        """`Job.result` for type checkers: the value in what the handler returns."""

        def __init__(self, read: Callable[[Job[Any]], Any]) -> None: ...

        @overload
        def __get__(self, job: None, owner: type[Any]) -> _ResultProperty: ...
        @overload
        def __get__(self, job: Job[_Unknown], owner: type[Any]) -> Any: ...
        @overload
        def __get__(self, job: Job[_Unfinished | None], owner: type[Any]) -> None: ...
        @overload
        def __get__(self, job: Job[Done[R] | _Unfinished], owner: type[Any]) -> R: ...
        @overload
        def __get__(self, job: Job[Done[R] | _Unfinished | None], owner: type[Any]) -> R | None: ...
        @overload
        def __get__(self, job: Job[R | Done[R] | _Unfinished], owner: type[Any]) -> R: ...
        def __get__(self, job: Job[Any] | None, owner: type[Any]) -> Any: ...
else:
    _ResultProperty = property


# No dataclass: it is made for each of many jobs. One that is claimed leads back to itself only when
# its transaction or its steps were used, so that most are gone without the garbage collector.
class Job(msgspec.Struct, Generic[R_co], eq=False):
    """A job as the database has it. Payload and result are decoded when first looked at.

    `Job[R]`: its handler returns R, a value or an outcome; type checkers derive `result` from it.
    """

    id: str
    seq: int
    queue: str
    kind: str
    state: JobState
    priority: int
    attempts: int
    crashes: int
    runs: int
    max_attempts: int
    max_crashes: int
    created_at: datetime
    run_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    tenant: str | None = None
    group: str | None = None
    root_of: str | None = None
    unique: str | None = None
    error: str | None = None
    worker: str | None = None
    lease_expires_at: datetime | None = None
    lease_seconds: int | None = None
    retention_seconds: int | None = None
    stop_as: JobState | None = None
    is_cleaned: bool = False
    headers: dict[str, Any] = {}
    tags: tuple[str, ...] = ()
    errors: list[JobError] = []
    progress: Progress | None = None
    payload_json: str | bytes = "null"
    result_json: str | bytes | None = None
    lease_token: str | None = None
    limits: tuple[str, ...] = ()
    max_hold_seconds: int | None = None
    is_left_out: bool = False  # its group did not take it: it was not stored
    _binding: Binding | None = None  # of a claimed job
    _tx: Any = None
    _leased_run: Any = None
    _payload: Any = msgspec.UNSET
    _result: Any = msgspec.UNSET
    _result_type: Any = None  # None: plain JSON values

    def __repr__(self) -> str:
        shown = [name for name in self.__struct_fields__ if not name.startswith("_")]
        return f"Job({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def bind_to(self, binding: Binding) -> None:
        """Windrow's own: from here on `tx`, `step` and the rest go by this lease."""
        self._binding = binding

    @property
    def tx(self) -> Any:
        """Of a claimed job: see lease.LazyTransaction."""
        if self._tx is None and self._binding is not None:
            self._tx = self._binding.make_transaction(self)
        return self._tx

    @tx.setter
    def tx(self, tx: Any) -> None:
        self._tx = tx

    @property
    def has_begun_tx(self) -> bool:
        """Whether anything was executed in `tx`."""
        # A handler may have put something else there.
        return bool(getattr(self._tx, "has_begun", False))

    @property
    def leased_run(self) -> Any:
        """Of a claimed job: see steps.LeasedRun."""
        if self._leased_run is None and self._binding is not None:
            self._leased_run = self._binding.make_run(self)
        return self._leased_run

    @leased_run.setter
    def leased_run(self, run: Any) -> None:
        self._leased_run = run

    @property
    def payload(self) -> Any:
        """What it was enqueued with."""
        if self._payload is msgspec.UNSET:
            self._payload = msgspec.json.decode(self.payload_json)
        return self._payload

    @_ResultProperty
    def result(self) -> Any:
        """What it was completed with; None before. Of a job that was enqueued by its handler, the
        type that the handler returns; else plain JSON values. Raises ResultMismatch."""
        if self._result is msgspec.UNSET:
            stored = self.result_json
            self._result = None if stored is None else self._decode_result(stored)
        return self._result

    def _decode_result(self, stored: str | bytes) -> Any:
        if self._result_type is None:
            return msgspec.json.decode(stored)
        try:
            return decode_as(stored, self._result_type)
        except ValueError as error:
            name = type_name(self._result_type)
            raise ResultMismatch(self.kind, name, str(error)) from error

    @property
    def result_type(self) -> Any:
        """Internal: the type that `result` is decoded as; None: plain JSON values."""
        return self._result_type

    def decode_result_as(self, result_type: Any) -> Job[Any]:
        """Internal: decode `result` as this type."""
        self._result = msgspec.UNSET
        self._result_type = result_type
        return self

    @property
    def is_finished(self) -> bool:
        """Whether it has ended: completed, failed or cancelled."""
        return self.state in FINAL

    def step(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """`await job.step("fetch", fetch, url)`: call the function and keep its result, which must
        be JSON; a later run of this job gets that and does not call it again. Each step of a job
        needs a name of its own. In code that blocks (`Queue.sync`, a handler in a thread) there is
        nothing to await: it blocks.

        Raises LeaseLost if the job is no longer ours, and then keeps nothing.
        """
        return self._leased().step(name, fn, *args, **kwargs)

    def report_progress(
        self, percent: float | None = None, message: str | None = None, **counters: int
    ) -> Any:
        """Say how far this run is, as `Lease.progress` does; to be awaited where `step` is."""
        return self._leased().report_progress(percent, message, **counters)

    def _leased(self) -> Any:
        if (run := self.leased_run) is None:
            raise InvalidJob(
                f"job {self.id} has no lease here, so no steps and no progress: it was read, not "
                "claimed"
            )
        return run
