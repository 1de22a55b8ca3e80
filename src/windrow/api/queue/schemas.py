"""What the bodies of requests to the queue may say, as types: they check what comes in, and OpenAPI
is made of them. The names are those of `Queue`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from windrow.queue.job import DEFAULT_PRIORITY, NewJob, OnConflict
from windrow.queue.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze

MOST_JOBS: Final = 10_000  # enqueued at once
MOST_RUNS: Final = 1_000  # claimed, renewed or ended at once
MOST_SECONDS: Final = 60.0  # that a request waits
SECONDS: Final = 30.0


class _Body(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A body of a request, or a part of one."""


class JobBody(_Body, frozen=True):
    """A new job. Durations are in seconds."""

    kind: str
    payload: Any = None
    queue: str | None = None
    priority: int = DEFAULT_PRIORITY
    delay: float | None = None
    run_at: datetime | None = None
    unique: str | None = None
    on_conflict: OnConflict = "return"
    tenant: str | None = None
    group: str | None = None
    group_key: str | None = None
    headers: dict[str, Any] | None = None
    tags: list[str] = []
    max_attempts: int | None = None
    max_crashes: int | None = None
    lease: float | None = None
    retention: float | None = None
    limits: list[str] | None = None
    max_hold: float | None = None
    id: str | None = None

    def to_new(self) -> NewJob:
        given = msgspec.structs.asdict(self)
        return NewJob(given.pop("kind"), given.pop("payload"), **given)


class JobsBody(_Body, frozen=True):
    """Many new jobs: all of them are stored, or none."""

    jobs: list[JobBody]


class EditBody(_Body, frozen=True):
    """What is to be changed of a job that is not running."""

    payload: Any = UNSET
    kind: str | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    run_at: datetime | UnsetType = UNSET
    headers: dict[str, Any] | UnsetType | None = UNSET
    tags: list[str] | UnsetType = UNSET
    max_attempts: int | UnsetType = UNSET
    max_crashes: int | UnsetType = UNSET
    lease: float | UnsetType | None = UNSET
    retention: float | UnsetType | None = UNSET
    limits: list[str] | UnsetType = UNSET
    max_hold: float | UnsetType | None = UNSET

    def changes(self) -> dict[str, Any]:
        given = msgspec.structs.asdict(self)
        return {name: value for name, value in given.items() if value is not UNSET}


class ReasonBody(_Body, frozen=True):
    reason: str = "cancelled"


class RetryBody(_Body, frozen=True):
    """`from_start` forgets what the steps of the job gave back."""

    from_start: bool = False


class ClaimBody(_Body, frozen=True):
    """What to claim, for how many `seconds`. With none there, wait so long for one."""

    queues: list[str]
    kinds: list[str] | None = None
    tenants: list[str] | None = None
    limit: int = 1
    seconds: float = SECONDS
    worker: str | None = None
    wait: float = 0.0


class RunBody(_Body, frozen=True):
    """A run, by the job and the token of its lease."""

    id: str
    lease: str


class RenewBody(_Body, frozen=True):
    runs: list[RunBody]
    seconds: float | None = None


class ReleaseBody(_Body, frozen=True):
    lease: str

    def to_outcome(self) -> Outcome:
        return Snooze(0)


class CompleteBody(_Body, frozen=True):
    """`then` are enqueued in the same transaction."""

    lease: str
    result: Any = None
    then: list[JobBody] = []

    def to_outcome(self) -> Outcome:
        return Done(self.result, [job.to_new() for job in self.then])


class FailBody(_Body, frozen=True):
    """It runs again `retry_in` seconds later (if that is not said, later each time) while attempts
    are left; with `retry: false` it does not."""

    lease: str
    error: str = "failed without a message"
    retry: bool = True
    retry_in: float | None = None

    def to_outcome(self) -> Outcome:
        return Retry(self.error, after=self.retry_in) if self.retry else Fail(self.error)


class SnoozeBody(_Body, frozen=True):
    lease: str
    seconds: float

    def to_outcome(self) -> Outcome:
        return Snooze(self.seconds)


class ProgressBody(_Body, frozen=True):
    lease: str
    percent: float | None = None
    message: str | None = None
    counters: dict[str, int] = {}


class CompletedRun(CompleteBody, tag_field="outcome", tag="complete", frozen=True, kw_only=True):
    id: str


class FailedRun(FailBody, tag_field="outcome", tag="fail", frozen=True, kw_only=True):
    id: str


class SnoozedRun(SnoozeBody, tag_field="outcome", tag="snooze", frozen=True, kw_only=True):
    id: str


class ReleasedRun(ReleaseBody, tag_field="outcome", tag="release", frozen=True, kw_only=True):
    id: str


class CancelledRun(_Body, tag_field="outcome", tag="cancel", frozen=True, kw_only=True):
    id: str
    lease: str
    reason: str = "cancelled by its worker"

    def to_outcome(self) -> Outcome:
        return Cancel(self.reason)


class FinishBody(_Body, frozen=True):
    """The ends of many runs, in one transaction."""

    runs: list[CompletedRun | FailedRun | SnoozedRun | ReleasedRun | CancelledRun]


class GroupBody(_Body, frozen=True):
    """A new group. It ends when its last job has, and then `then` is enqueued, once; with `hold` it
    does not end before it is closed. With `root`, a running job waits for it."""

    then: JobBody | None = None
    root: str | None = None
    hold: bool = False
    tenant: str | None = None
    retention: float | None = None
    max_jobs: int | None = None
