"""The values that cross the seam between the queue and a store: what a verb takes and gives back.

They are checked and encoded already (`checks.py`, `codec.py`); `store.py` has the verbs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from windrow.queue.job import UNCLAIMED, Job, JobError, JobState, OnConflict

InsertOutcome = Literal["inserted", "existing", "replaced", "rejected", "left_out", "dropped"]
GroupState = Literal["active", "completed", "cancelled"]
CatchUp = Literal["one", "all", "skip"]
# Writes jobs away, durably, before they are removed: blocks, in a thread; raises if it cannot.
Archive = Callable[[Sequence[Job]], None]
OnFull = Literal["reject", "block", "drop_oldest"]

# `retention_seconds` of a job that is never pruned: JSON, which carries rows, has no infinity.
FOREVER: Final = -1


# Nothing in a row or an outcome can lead back to it, so the collector need not look at them.
class JobRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A new job, checked and encoded: what `insert_jobs` takes. JSON-encodable as a whole."""

    id: str
    queue: str
    kind: str
    payload: msgspec.Raw
    headers: msgspec.Raw | None = None
    tags: tuple[str, ...] = ()
    priority: int
    run_at: datetime | None = None  # absolute, or …
    delay: float = 0.0  # … seconds from now; a job due now or earlier is `ready` at once
    unique: str | None = None
    on_conflict: OnConflict = "return"
    tenant: str | None = None
    group: str | None = None
    group_key: str | None = None  # the hash (hex) of a key that its group takes once; not `unique`
    max_attempts: int
    max_crashes: int
    lease_seconds: int | None = None
    retention_seconds: int | None = None  # None: the default of its final state; FOREVER: kept
    limits: tuple[str, ...] = ()  # keys it counts under; the first is its fairness key
    max_hold_seconds: int | None = None  # how long after it is due it may be held by limits
    is_cleaned: bool = False  # NUL or lone surrogates in the payload were replaced
    may_exist: bool = False  # the id was given by the caller, or this insert is a repetition


def are_plain(rows: Sequence[JobRow]) -> bool:
    """Whether no row can collide or has to be counted to a group."""
    return not any(row.unique is not None or row.group is not None or row.may_exist for row in rows)


def are_alike(rows: Sequence[JobRow]) -> bool:
    """Whether rows differ in their ids and payloads only, as those of one call mostly do."""
    first = rows[0]
    id, payload, on_conflict = first.id, first.payload, first.on_conflict
    replace = msgspec.structs.replace
    return all(
        replace(row, id=id, payload=payload, on_conflict=on_conflict) == first for row in rows
    )


def read_row(text: str | bytes) -> JobRow:
    """A row that was kept as JSON. Headers are taken out first: msgspec, asked for raw JSON or
    nothing, takes only nothing."""
    fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    headers = fields.pop("headers", None)
    row = msgspec.json.decode(msgspec.json.encode(fields), type=JobRow)
    if headers is None or bytes(headers) == b"null":
        return row
    return msgspec.structs.replace(row, headers=headers)


class Inserted(msgspec.Struct, frozen=True, gc=False):
    """What became of one inserted row. `id` and the rest are of the job that now holds the place:
    the new one (`inserted`), the one already there (`existing`, `rejected`: left as it was;
    `replaced`: it kept its id and seq and took the new contents). `left_out`: its group has had its
    key, and `id` is that of the job that has it, there or not; or the group is full. `dropped`: the
    row was a follow-up that would have been refused as an insert. Of both nothing was written."""

    id: str
    outcome: InsertOutcome
    seq: int = 0
    state: JobState = JobState.READY
    run_at: datetime | None = None
    created_at: datetime | None = None


class Claim(msgspec.Struct, frozen=True):
    """What to claim. `queues` None means every queue; `kinds` and `tenants` None mean any."""

    queues: tuple[str, ...] | None
    limit: int
    seconds: int  # for jobs that do not bring a lease length of their own …
    worker: str
    kinds: tuple[str, ...] | None = None
    tenants: tuple[str, ...] | None = None
    kind_seconds: Mapping[str, int] = msgspec.field(default_factory=dict)  # … and whose has none

    def lease_length(self, kind: str, own: int | None) -> int:
        """The seconds of a job's lease: its own, else its kind's, else the claim's."""
        return self.kind_seconds.get(kind, self.seconds) if own is None else own


class Finish(msgspec.Struct, frozen=True):
    """The end of one run. `state` is where the job goes:

    - COMPLETED with `result`; WAITING instead if the job is the root of a group that has not ended;
    - FAILED or CANCELLED with `error`;
    - READY: back to wait, `delay` seconds from now (0: claimable at once, else `scheduled`). If the
      job was asked to stop meanwhile it becomes `cancelled` or `paused` instead (`stop_as`); if a
      follower waits for its place it becomes `cancelled`.

    `error` is appended to the history, whatever the state. `uses_attempt` adds to `attempts`.
    `then` are inserted in the same transaction, only if this finish is accepted.
    """

    id: str
    token: str
    state: JobState
    result: bytes | None = None
    delay: float = 0.0
    error: JobError | None = None
    uses_attempt: bool = False
    result_is_cleaned: bool = False
    then: tuple[JobRow, ...] = ()


class Finished(msgspec.Struct, frozen=True):
    """`lost`: ids whose token was stale (nothing of theirs was changed). `claimed`: jobs of the
    claim made in the same transaction, if one was asked for. `then`: the outcome of each follow-up,
    in order. `conflicting`: ids whose run had ended before in another way, which stands."""

    lost: tuple[str, ...] = ()
    claimed: tuple[Job, ...] = ()
    then: tuple[Inserted, ...] = ()
    conflicting: tuple[str, ...] = ()


# Where a job may be after a run ended so: it goes on from `ready`, and a root waits for its group.
_STATES_AFTER: Final[Mapping[JobState, frozenset[JobState]]] = {
    JobState.COMPLETED: frozenset({JobState.COMPLETED, JobState.WAITING}),
    JobState.FAILED: frozenset({JobState.FAILED}),
    JobState.CANCELLED: frozenset({JobState.CANCELLED}),
    JobState.READY: UNCLAIMED | {JobState.CANCELLED},
}


def is_same_end(finish: Finish, state: str, result: bytes | None, digest: bytes | None) -> bool:
    """Whether a run that has ended already ended like this: in the same way and, if it completed,
    with the same result (or a blob of this SHA-256). `state` is where its job is now."""
    if JobState(state) not in _STATES_AFTER[finish.state]:
        return False
    if finish.state is not JobState.COMPLETED:
        return True
    if digest is not None:
        return finish.result is not None and hashlib.sha256(finish.result).digest() == digest
    if finish.result is None or result is None:
        return finish.result is result
    return finish.result == result or sorted_json(finish.result) == sorted_json(result)


def sorted_json(text: bytes) -> bytes:
    """JSON without what does not matter: the order of keys, and white space."""
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted")
    except (ValueError, RecursionError):  # stored before it was checked that it can be read
        return text


class ProgressReport(msgspec.Struct, frozen=True):
    id: str
    token: str
    percent: int | None  # None leaves it; a lower one than before leaves it too
    message: str | None = None
    counters: Mapping[str, int] = msgspec.field(default_factory=dict)  # merged over the former ones


class Renewal(msgspec.Struct, frozen=True):
    """`held`: ids of the active jobs that the renewed leases hold; a job its worker believes in and
    that is not among them is lost. `stopping`: those that somebody asked to stop, with the state
    they are to end in. `expires_at`: the soonest new expiry. `is_rescue_due`: leases have run out,
    whoever had them, and nobody has taken their jobs back yet; a store need not tell of leases of
    10 s or more, since a leader that dies is replaced before these run out."""

    held: frozenset[str] = frozenset()
    stopping: Mapping[str, JobState] = msgspec.field(default_factory=dict)
    expires_at: datetime | None = None
    is_rescue_due: bool = False


class Change(msgspec.Struct, frozen=True):
    """What a verb did to one job: its state before and after (None: not there). A state that does
    not allow the change is left as it was: `is_refused`. `blocked_by` is the live job that holds
    the unique key a retried job would need."""

    id: str
    before: JobState | None
    after: JobState | None
    is_refused: bool = False
    blocked_by: str | None = None


class JobFilter(msgspec.Struct, frozen=True):
    """Which jobs to list; None means any. `error` is a part of the failure's text, `text` one of
    the payload's JSON, both in any case; `since` is an id: this job and newer ones."""

    queue: str | None = None
    kind: str | None = None
    states: tuple[JobState, ...] | None = None
    tenant: str | None = None
    group: str | None = None
    tag: str | None = None
    error: str | None = None
    unique: str | None = None
    since: str | None = None
    text: str | None = None


# Fields of a filter by which jobs are in an index, in the order of their ids: the narrowest first.
LINES: Final = ("unique", "group", "tenant")
BAD_ENDS: Final = frozenset({JobState.FAILED, JobState.CANCELLED})


def is_bad_end(states: Sequence[JobState] | None) -> bool:
    """Whether it is one state of those that few jobs end in, which are in an index too."""
    return states is not None and len(states) == 1 and states[0] in BAD_ENDS


class QueueInfo(msgspec.Struct, frozen=True):
    name: str
    is_paused: bool
    counts: Mapping[JobState, int]  # only states that have jobs
    # When the job that has been claimable the longest was due. Of each priority the first 20 jobs
    # are looked at: if all of them came back from a run, one behind may have been due before.
    oldest_ready_at: datetime | None
    max_depth: int | None = None  # the most unclaimed jobs it takes
    on_full: OnFull = "reject"


class ReadyKind(msgspec.Struct, frozen=True):
    """Jobs of one kind among the first that a queue would give out."""

    queue: str
    kind: str
    count: int
    example: str  # a job id


class LimitRow(msgspec.Struct, frozen=True):
    """What a key allows: so many `active` at once, so many starts `per_second` with a `burst`.
    None: no such limit."""

    key: str
    active: int | None = None
    per_second: float | None = None
    burst: int | None = None


class LimitInfo(LimitRow, frozen=True):
    """A key as it is: `in_use` jobs run; `ready` ones have a place too and wait in `ready_queues`
    to be claimed; `held` ones wait for room."""

    in_use: int = 0
    ready: int = 0
    ready_queues: tuple[str, ...] = ()
    held: int = 0
    parked_until: datetime | None = None

    @property
    def taken(self) -> int:
        """The places that are taken: no more than `active` at any moment."""
        return self.in_use + self.ready


class WorkerRow(msgspec.Struct, frozen=True):
    """A worker as it describes itself. `queues` and `kinds`: what it takes; None: any."""

    id: str
    name: str  # the one its leases have
    host: str
    pid: int
    queues: tuple[str, ...] | None
    kinds: tuple[str, ...] | None
    concurrency: int
    running: int = 0
    version: str = ""
    trouble: str | None = None  # what keeps failing in it

    def takes(self, queue: str, kind: str) -> bool:
        return (self.queues is None or queue in self.queues) and (
            self.kinds is None or kind in self.kinds
        )


class WorkerInfo(WorkerRow, frozen=True, kw_only=True):
    """A worker that is believed alive until `expires_at`."""

    started_at: datetime
    seen_at: datetime
    expires_at: datetime


class ErrorCount(msgspec.Struct, frozen=True):
    """Failed jobs that share an error text."""

    error: str
    count: int
    first_at: datetime
    last_at: datetime
    example: str  # a job id


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """A new group. `is_open`: it does not end before it is closed, even with no member left."""

    id: str
    tenant: str | None = None
    root: str | None = None
    then: JobRow | None = None
    is_open: bool = False
    retention_seconds: int | None = None
    max_jobs: int | None = None


class Group(msgspec.Struct, frozen=True):
    id: str
    state: GroupState
    is_paused: bool
    is_open: bool
    pending: int
    counts: Mapping[JobState, int]  # members by state, only states that have some
    root: str | None
    tenant: str | None
    created_at: datetime
    ended_at: datetime | None
    members: int = 0  # that it ever had, deleted ones too
    max_jobs: int | None = None  # the most it takes
    is_cancelled: bool = False  # also while its last running members end


class GroupLook(msgspec.Struct, frozen=True):
    """A group at a glance: its root and itself, if they are there, and some that have ended."""

    root: Job | None
    group: Group | None
    ended: Sequence[Job]


class GroupFilter(msgspec.Struct, frozen=True):
    """Which groups to list; None means any."""

    state: GroupState | None = None
    is_paused: Literal[True] | None = None
    tenant: str | None = None


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """When the slots of a schedule are: by a cron line in a time zone, or every so many seconds."""

    cron: str | None = None
    timezone: str = "UTC"
    every_seconds: float | None = None


class ScheduleRow(Timing, frozen=True, kw_only=True):
    """A schedule, checked: for each slot a job like `job` is inserted, up to `jitter_seconds`
    later. `catch_up`: which of the slots are fired that nobody fired in time."""

    name: str
    job: JobRow  # its id, delay and run_at mean nothing
    jitter_seconds: float = 0.0
    catch_up: CatchUp = "one"


class Schedule(ScheduleRow, frozen=True, kw_only=True):
    is_paused: bool
    next_at: datetime  # the next slot; passed, and not fired yet, if it is due
    last_at: datetime | None  # the last slot fired
    created_at: datetime


class Retention(msgspec.Struct, frozen=True):
    """How many seconds the finished jobs of a queue are kept, by state; None: the default."""

    completed: int | None = None
    failed: int | None = None
    cancelled: int | None = None


class Pruned(msgspec.Struct, frozen=True):
    """What was removed. Unless `is_done` there is more to remove now."""

    jobs: int = 0
    groups: int = 0
    is_done: bool = True


class DiskUsage(msgspec.Struct, frozen=True):
    """Bytes. `total`: what the database's files take; `used`: what of it is not free to be used
    again. The others, estimates, are parts of it."""

    total: int
    used: int
    payloads: int
    results: int
    blobs: int


class EventBatch(msgspec.Struct, frozen=True):
    """The same thing that happened to some jobs at once, or to a group (then without job ids)."""

    seq: int
    at: datetime
    type: str
    state: str | None
    queue: str | None
    kind: str | None
    tenant: str | None
    group_id: str | None
    job_ids: tuple[str, ...] | None
    details: str | None = None  # a JSON object
    jobs: int = 0  # how many there are, whether they are named or not


class EventFilter(msgspec.Struct, frozen=True):
    """Which events are wanted; None: any."""

    types: tuple[str, ...] | None = None
    queue: str | None = None
    group: str | None = None
    job: str | None = None
    names_jobs: bool = True  # or only tells how many there are, which takes a fraction of the time


class EventPage(msgspec.Struct, frozen=True):
    """A stretch of the stream, in order."""

    batches: tuple[EventBatch, ...]
    read_to: int  # everything up to this number was looked at, and nothing can come before it
    floor: int  # events up to this number may have been removed, before or while it was read
    last: int  # the greatest number given out
    has_more: bool  # there is more, now or when a transaction under way has ended


class OpenTransaction(msgspec.Struct, frozen=True):
    """A transaction of somebody that keeps old versions of rows from being cleaned up."""

    name: str  # by which it can be ended: the session's process id, or the prepared transaction's
    is_prepared: bool
    user: str
    application: str
    state: str
    seconds: float
    statement: str


class Vitals(msgspec.Struct, frozen=True, kw_only=True):
    """How a database is. What does not apply to it, or may not be looked at, is None."""

    now: datetime  # by its clock
    oldest_transaction: OpenTransaction | None = None
    live_rows: int | None = None  # of the jobs that have not ended, about
    dead_rows: int | None = None  # versions of them that were replaced and not cleaned up, about
    connections: int | None = None
    max_connections: int | None = None
    log_bytes: int | None = None  # written beside the file and not yet in it
    journal_mode: str | None = None
    network_file_system: str | None = None  # on which the file lies
    free_bytes: int | None = None  # on the disk
