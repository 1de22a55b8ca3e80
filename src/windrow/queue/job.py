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
from typing import Any, Final, Literal, Protocol

import msgspec

from windrow.errors import InvalidJob

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


@dataclass(frozen=True, slots=True)
class JobError:
    """One line of a job's error history."""

    at: datetime | None
    reason: Literal["attempt", "crash", "cancel", "hold"]
    message: str
    type: str | None = None
    traceback: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What is kept of one step of a job's runs."""

    name: str
    result_json: str
    at: datetime

    @property
    def result(self) -> Any:
        return msgspec.json.decode(self.result_json)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is; the percentage never goes back."""

    percent: int
    message: str | None = None
    counters: Mapping[str, int] = msgspec.field(default_factory=dict)
    updated_at: datetime | None = None


class Binding(Protocol):
    """What a claimed job is bound to: makes what is asked of the job, when it is first asked."""

    def make_transaction(self, job: Job) -> Any: ...

    def make_run(self, job: Job) -> Any: ...


# No dataclass: it is made for each of many jobs. One that is claimed leads back to itself only when
# its transaction or its steps were used, so that most are gone without the garbage collector.
class Job(msgspec.Struct, eq=False):
    """A job as the database has it. Payload and result are decoded when first looked at."""

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
        return self._tx is not None and bool(self._tx.has_begun)

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

    @property
    def result(self) -> Any:
        """What it was completed with; None before."""
        if self._result is msgspec.UNSET:
            stored = self.result_json
            self._result = None if stored is None else msgspec.json.decode(stored)
        return self._result

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
