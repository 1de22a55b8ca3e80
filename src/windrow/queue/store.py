"""The seam between the queue and a database: domain verbs, batch-shaped, one transaction each.

A store is given checked and encoded values (`codec.py` does that) and knows nothing of handlers.
Every verb is all or nothing. Time is `clock.now()`, or the database's own when that is None.

Invariants every store keeps, and `tests/conformance` checks:

- Only `ready` jobs are claimed, by priority (higher first), then `seq` (first come first); one
  claim never waits behind another's rows. Jobs of a paused queue or group are passed over.
- A job is `active` exactly while it names the lease token of its claim. `finish_jobs`,
  `report_progress`, `save_step`, `save_work` and `extend_leases` change something only if the job
  is active under the given token.
- A job that went back to wait keeps the token of its last run, and so does a finished one: a
  finish repeated because its reply was lost is recognised and accepted as already done. A rescued
  job forgets the token, so the worker that lost it is refused.
- At most one live job per (tenant, unique key), plus at most one follower, `held` until the first
  one ends or goes back to wait. A job going back to wait while a follower is there is `cancelled`
  in its favour; whenever the first leaves, the follower takes its place.
- No job waits for itself: a root waits for its group, a group for its members, a follower for the
  first of its key. A new follower that would close a circle of these is refused; nothing else can.
- A group's `pending` is the number of its members that are not final. It ends, once, in the
  transaction that brings it to zero (or closes it): its root job is completed and its finish job
  inserted there. The root itself is not a member.
- A group never has two jobs with one group key, those that have ended or were deleted included, nor
  more members than its `max_jobs`. Of the rows of one insert the first ones get in.
- A job with limit keys is never made `ready` by anything but `promote_jobs`, and takes its place in
  the line there; whatever else would make it ready makes it `held`. For every key with an active
  limit N the jobs that carry it and are `ready` or `active` are at most N. That is counted from the
  jobs themselves under a lock on the keys, so nothing can leak. Inserts touch no limit.
- `seq` is given at the insert and grows from job to job. It stays, but a store may give a job with
  limits a new, higher one whenever it is promoted; nobody else's changes.
- `tally` of a queue and state is exactly the number of its jobs in that state.
- Every slot of a schedule is fired at most once, and slots only go forward: `next_at` lies after
  `last_at`, whatever the clock does.
- Whoever reads the events up to a number has seen all that will ever be there up to it, a late
  commit included. A job's events are in the order of its states.
- A role has at most one leader whose time is not over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from windrow.clock import Clock
from windrow.db.database import Database
from windrow.queue.bells import Bell
from windrow.queue.dialects.loading import DialectInfo
from windrow.queue.far_runs import FarRunStore
from windrow.queue.job import Job, JobState, Step
from windrow.queue.records import (
    Archive,
    Change,
    Claim,
    DiskUsage,
    ErrorCount,
    EventFilter,
    EventPage,
    Finish,
    Finished,
    Group,
    GroupFilter,
    GroupLook,
    GroupRow,
    Inserted,
    JobFilter,
    JobRow,
    LimitInfo,
    LimitRow,
    OnFull,
    ProgressReport,
    Pruned,
    QueueInfo,
    ReadyKind,
    Renewal,
    Retention,
    Schedule,
    ScheduleRow,
    Vitals,
    WorkerInfo,
    WorkerRow,
)


def _means(text: str, *, default: bool | None = None) -> Any:
    """A capability, with the line that docs/reference/stores.md has of it."""
    if default is None:
        return field(metadata={"means": text})
    return field(default=default, metadata={"means": text})


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a store can do beyond the common contract. Asked for, never guessed from its name. What
    it does not declare it refuses with `Unsupported`, and says what to do instead."""

    transactional_insert: bool = _means("`enqueue(tx=…)`: jobs commit with your own rows")
    reads_in_transaction: bool = _means("`job.tx` can fetch, not only execute")
    many_machines: bool = _means("workers on many machines")
    tenancy: bool = _means("`as_tenant(…)`: the database keeps tenants apart")
    table_prefix: str = _means("stands before the names of Windrow's own tables")
    sees_jobs: bool = _means("can look at jobs; not, if it may only enqueue", default=True)
    # Else its verbs can also run, and block, in a thread without one.
    needs_loop: bool = _means("needs an event loop", default=True)
    job_transactions: bool = _means(
        "`job.tx`: rows that a job writes, once, if it is completed", default=True
    )
    atomic_ends: bool = _means(
        "the rows of `job.tx`, the completion and the follow-ups are one transaction; else the "
        "rows are committed first, and the others follow, at the latest when the lease has run out",
        default=True,
    )
    groups: bool = _means("groups: counted, paused, cancelled and finished as one", default=True)
    limits: bool = _means("limits per key: so many at once, so many per second", default=True)
    schedules: bool = _means("schedules: cron and every so often", default=True)
    bounds: bool = _means("bounded queues: `set_queue(max_depth=…)`", default=True)
    replaces: bool = _means(
        '`on_conflict="replace"`, unique keys over all queues, and followers that are seen, and '
        "can be cancelled, while they wait",
        default=True,
    )
    edits: bool = _means("`edit`, and pausing one job", default=True)
    exact_claims: bool = _means(
        "claims choose by kind and tenant, in one line over all queues, where a job given back has "
        "its old place; jobs claimed together share a lease",
        default=True,
    )
    events: bool = _means("the stream of events: `queue.events(…)`", default=True)
    documents: bool = _means(
        "pages, documents, calls, credentials, keys, quotas: what ingestion and the HTTP API keep",
        default=True,
    )
    dialects: bool = _means("other schemas over the same jobs", default=True)
    transfers: bool = _means(
        "`windrow db copy` and `windrow migrate`: jobs come from and go to other databases",
        default=True,
    )
    foreign_ids: bool = _means(
        "jobs that others made, with ids of their own: queue and id, `images:17`", default=False
    )
    settable_clock: bool = _means("its time can be set, for tests", default=True)


@runtime_checkable
class JobTransaction(Protocol):
    """The transaction a job will be finished in: its statements commit with the finish, or not at
    all. Parameters are $1, $2 …; SQLite takes its own ? as well."""

    async def execute(self, sql: str, *args: Any) -> None: ...
    async def fetch(self, sql: str, *args: Any) -> list[dict[str, Any]]: ...

    async def note(self, group_id: str, subject: str, texts: Sequence[str]) -> None:
        """Notes of a group, each once."""
        ...

    async def rollback(self) -> None: ...


class JobStore(Protocol):
    """Jobs from insert to end."""

    async def insert_jobs(self, rows: Sequence[JobRow], *, tx: Any = None) -> list[Inserted]:
        """Insert, one outcome per row, in order. With `tx`, in the caller's own transaction.

        What a group has had, or has no room for, is `left_out`.

        Raises GroupEnded, GroupNotFound, QueueFull, or InvalidJob if a row would replace a job of
        another group or follow one that waits for it, and then inserts nothing. A bounded queue
        that drops its oldest jobs does so here. In the caller's transaction the bound of a queue is
        looked at without a lock, and nothing is dropped.
        """
        ...

    async def claim_jobs(self, claim: Claim) -> list[Job]:
        """Make up to `limit` ready jobs active, best first. Each carries its `lease_token`; jobs
        with the same lease length share one. Adds to `runs`, sets `started_at`."""
        ...

    async def finish_jobs(
        self,
        finishes: Sequence[Finish],
        *,
        claim: Claim | None = None,
        tx: JobTransaction | None = None,
    ) -> Finished:
        """End runs, and claim the next ones in the same transaction if asked to. With `tx`
        (exactly one finish) its statements commit with it; if the token is stale they are rolled
        back. Follow-ups never fail the finish: those that an insert would raise for are
        `dropped`. An end that is written already is accepted again, and changes nothing; another
        end of the same run changes nothing either, and is `conflicting`. Several runs of one job
        are judged each by its token, and `lost` has the job if one of them was stale."""
        ...

    async def begin(self) -> JobTransaction:
        """A transaction to be given to `finish_jobs`."""
        ...

    async def extend_leases(self, tokens: Sequence[str], seconds: int | None = None) -> Renewal:
        """Push the expiry of live leases to now + their length (or `seconds`, which becomes their
        length). A lease that has expired or is gone is not revived: none of its jobs is held."""
        ...

    async def report_progress(self, reports: Sequence[ProgressReport]) -> tuple[str, ...]:
        """Keep progress; returns the ids whose token was stale."""
        ...

    async def save_step(self, job_id: str, token: str, name: str, result: str) -> str:
        """Keep the result (JSON) of a step of a running job. The first one stays: returns what is
        kept, this one or that. Raises LeaseLost if the token is stale, and then keeps nothing."""
        ...

    async def save_work(self, job_id: str, token: str, tx: JobTransaction) -> None:
        """Commit what a running job has written in a transaction of `begin()`, while it goes on.
        Raises LeaseLost if the token is stale, and then keeps nothing."""
        ...

    async def stage_jobs(self, limit: int = 1000) -> int:
        """`scheduled` jobs that are due become `ready`, oldest first; followers whose place is free
        take it. Returns how many moved."""
        ...

    async def rescue_jobs(self, limit: int = 1000) -> list[Change]:
        """Jobs of expired leases: a crash is counted and written to the history, then `ready`
        again, due from now on, or where `stop_as` says; but `failed` when crashes reach
        max_crashes, unless it is to be cancelled. Leases with no job left are removed."""
        ...


class RowStore(Protocol):
    """The application's own tables, in the same database; `job.tx` writes them."""

    async def fetch_rows(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        """What a query finds, which changes nothing. Parameters are $1, $2 …"""
        ...

    async def change_rows(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        """Run one statement; what its RETURNING says."""
        ...


class JobAdmin(Protocol):
    """Looking at jobs and changing them from outside. Ids that are not UUIDs are just not found."""

    async def get_jobs(self, ids: Sequence[str]) -> dict[str, Job]:
        """Everything of each: payload, result (blobs too), errors, progress, lease."""
        ...

    async def get_states(self, ids: Sequence[str]) -> dict[str, JobState]:
        """The states alone, for those who ask often; ids that are not there are left out."""
        ...

    async def get_steps(self, job_id: str) -> list[Step]:
        """What is kept of a job's steps, oldest first; it goes when the job does."""
        ...

    async def list_jobs(
        self, wanted: JobFilter, *, after: str | None = None, limit: int = 100
    ) -> list[Job]:
        """Newest first by id; `after` is the last id of the page before. No results or errors."""
        ...

    async def find_earlier(
        self, wanted: JobFilter, count: int, *, after: str | None = None
    ) -> str | None:
        """The id of a job so many before this one, or before the newest; None if there are not so
        many. Counted are those of an index that all that are wanted are in: of the unique key, the
        group, the tenant or the bad end, and else all that have ended, or have not, or both. What
        is filtered can be looked for that far and no farther. Always None where jobs are not kept
        in one line."""
        ...

    async def list_ended(
        self,
        group_id: str,
        kind: str,
        state: JobState,
        *,
        after: str | None = None,
        skip: int = 0,
        limit: int = 100,
    ) -> list[str]:
        """Ids of the members of a group that ended so, the first to end first. `after` is the last
        id of those before; so many after it are skipped."""
        ...

    async def look_at_group(
        self, group_id: str, root_id: str, kind: str, *, skip: int = 0, limit: int = 100
    ) -> GroupLook:
        """A job, a group that it began, and completed members of a kind as `list_ended` orders
        them: what would be four calls, for those who ask often. If the group has ended all of
        its members are there to be found."""
        ...

    async def cancel_jobs(self, ids: Sequence[str], reason: str) -> dict[str, Change]:
        """Unclaimed and waiting ones become `cancelled`; active ones are told (`stop_as`). A root's
        group is cancelled at once, also while the root runs. A second cancel of a running job keeps
        the first reason."""
        ...

    async def pause_jobs(self, ids: Sequence[str]) -> dict[str, Change]:
        """Unclaimed ones become `paused`; active ones are told (`stop_as`)."""
        ...

    async def resume_jobs(self, ids: Sequence[str]) -> dict[str, Change]:
        """`paused` ones become `ready` (or `scheduled` if not due, `held` if a follower); an active
        one that was told to pause is told to go on."""
        ...

    async def retry_jobs(
        self, ids: Sequence[str], *, from_start: bool = False
    ) -> dict[str, Change]:
        """`failed` and `cancelled` ones become `ready` with no attempts or crashes used (their
        history stays); `scheduled` ones become due now. `from_start`: their steps are forgotten."""
        ...

    async def edit_job(self, job_id: str, changes: Mapping[str, Any]) -> Change:
        """Change payload (Raw), headers (Raw), tags, kind, queue, priority, run_at, max_attempts,
        max_crashes, lease_seconds, retention_seconds, limits, max_hold_seconds of an unclaimed,
        failed or cancelled job. A new run_at of an unclaimed job makes it scheduled, or ready or
        held. With other limits than before a ready one is held, from now on; with none one that
        was held by limits is ready, and max_hold_seconds is forgotten. Raises InvalidJob for
        max_hold_seconds of a job without limits."""
        ...

    async def delete_jobs(self, ids: Sequence[str]) -> dict[str, Change]:
        """Remove without a trace; active and waiting ones are refused."""
        ...

    async def list_queues(self) -> list[QueueInfo]:
        """Every queue that has jobs or is paused, by name. No scan of history."""
        ...

    async def count_tenant(self, tenant: str, most: int) -> dict[tuple[str, JobState], int]:
        """How many of a tenant's newest jobs, `most` at the most, are in each queue and state."""
        ...

    async def list_ready_kinds(self, limit: int = 100) -> list[ReadyKind]:
        """The kinds of the first `limit` ready jobs of each queue, in the order in which they would
        be claimed; paused queues too. By queue and kind."""
        ...

    async def list_errors(
        self, queue: str | None = None, limit: int = 50, *, newest: int | None = None
    ) -> list[ErrorCount]:
        """Failed jobs by error text, most frequent first."""
        ...

    async def pause_queue(self, name: str) -> None: ...
    async def resume_queue(self, name: str) -> None: ...

    async def set_queue(self, name: str, max_depth: int | None, on_full: OnFull) -> None:
        """Bound the number of unclaimed jobs of a queue, or (None) no longer. `block` is refused
        as `reject` is, with an error that says that waiting may help."""
        ...


class GroupStore(Protocol):
    async def create_group(self, row: GroupRow) -> Group:
        """A group; one with this id that is there is returned as it is. With `root`, that (live)
        job's: a root has one group, which is cancelled from its start if the root was told to end.
        Raises JobNotFound if the root is not live."""
        ...

    async def keep_group_keys(
        self, group_id: str, keys: Sequence[str], job_id: str
    ) -> frozenset[str]:
        """Give those keys (hashes) that the group never had to a job. Which of these keys are the
        job's, now or since before. Raises GroupNotFound."""
        ...

    async def add_group_notes(self, group_id: str, subject: str, texts: Sequence[str]) -> None:
        """Notes of a group, each once; those that are there stay as they are."""
        ...

    async def list_group_notes(
        self, group_id: str, subject: str, *, after: str, limit: int
    ) -> list[str]:
        """A page of what was noted of a group on a subject, in the order of the texts' code
        points on SQLite, and as the database sorts on Postgres; `after` is the last one before."""
        ...

    async def get_group(self, group_id: str) -> Group | None: ...

    async def list_groups(
        self, wanted: GroupFilter, *, after: str | None = None, limit: int = 100
    ) -> list[Group]:
        """Newest first by id; `after` is the last id of the page before. Of the members only those
        that have ended are in `counts`: the others are not looked at, and `pending` says how many
        they are."""
        ...

    async def close_group(self, group_id: str) -> Group:
        """No more held open: ends now if no member is pending. Raises GroupNotFound."""
        ...

    async def end_empty_groups(self, seconds: float, held_seconds: float, limit: int = 1000) -> int:
        """Close groups that have stood for so long without ever having a member: their maker is
        gone. Not those of roots. How many. Safe if several do it at once."""
        ...

    async def pause_group(self, group_id: str) -> Group: ...
    async def resume_group(self, group_id: str) -> Group: ...

    async def cancel_group(self, group_id: str, reason: str) -> Group:
        """Unclaimed and waiting members become `cancelled` now, active ones are told; no new
        members are taken. It ends, `cancelled`, when the last member has. On an ended group: no
        change."""
        ...


class LimitStore(Protocol):
    """Limits per key. The choice between keys is `limits.py`'s."""

    async def set_limit(self, row: LimitRow) -> None:
        """Make or change a limit. Ready jobs over a lower one are `held` again, in the same
        transaction; active ones run on."""
        ...

    async def remove_limit(self, key: str) -> bool:
        """Whether there was one. A parked key is no longer parked."""
        ...

    async def list_limits(self, *, counts_held: bool = True) -> list[LimitInfo]:
        """Every key that has a limit or jobs, or is parked, by key. Counting what is held
        reads every held job; without it, `held` is 0 and keys with nothing else are left out."""
        ...

    async def park_key(
        self, key: str, *, until: datetime | None = None, seconds: float | None = None
    ) -> None:
        """No job that carries the key is promoted or claimed until then (or for so many seconds
        from now); with neither, the key goes on at once. No job is touched."""
        ...

    async def promote_jobs(
        self,
        keys: Sequence[str] | None = None,
        limit: int = 1000,
        *,
        claim: Claim | None = None,
        rounds: int = 1,
    ) -> int:
        """Make held jobs ready while all their keys have room, in turn between fairness keys (of
        these, or of all); how many were. Followers are not meant. Of very many keys
        `limits.KEYS_AT_ONCE` are looked at in each of the rounds, the next ones by the next call.

        Jobs of paused queues and groups are passed over. A ready job gives its places back, and is
        held again, when another one waits for them and it cannot run: its queue or group is paused,
        one of its keys is parked, or nobody has claimed it for `limits.PATIENCE_SECONDS`. Then
        the jobs of its queue, kind and tenant get only what no others want, until somebody
        asks for them: a worker that registers, or `claim`, which found too few."""
        ...

    async def prune_limits(self, after: str = "", limit: int = 1000) -> tuple[int, str]:
        """Forget keys that nothing is set for and that no job is ready, active or held under, of
        the next `limit` keys behind `after`. How many, and where to go on ("": at an end). Safe if
        several do it at once, and while jobs with these keys come and go."""
        ...

    async def expire_jobs(self, limit: int = 1000) -> list[Change]:
        """Held jobs (not followers) that have waited longer than they may become `failed`, with an
        error that names their keys."""
        ...


class ScheduleStore(Protocol):
    """Jobs that come again and again: one for each slot, however many ask for it, at once or
    twice. The arithmetic of slots is `schedule.py`'s."""

    async def put_schedule(self, row: ScheduleRow) -> Schedule:
        """Make a schedule, or change the one of that name. The same timing keeps the next slot, and
        what is paused stays so; a new timing begins with its first slot from now on."""
        ...

    async def delete_schedule(self, name: str) -> bool:
        """Whether it was there. Jobs it has fired stay."""
        ...

    async def list_schedules(self) -> list[Schedule]:
        """All of them, by name."""
        ...

    async def pause_schedule(self, name: str) -> Schedule:
        """Raises ScheduleNotFound."""
        ...

    async def resume_schedule(self, name: str) -> Schedule:
        """Go on with the first slot from now on; those of the pause are not fired. One that is not
        paused is left as it is. Raises ScheduleNotFound."""
        ...

    async def fire_schedules(self, limit: int = 100) -> list[Inserted]:
        """Insert the jobs of due slots, of up to `limit` schedules, and move these on, in one
        transaction. A job's id follows from its schedule's name and slot, so a slot that was fired
        before is `existing`. Schedules somebody else is firing are passed over."""
        ...


class RetentionStore(Protocol):
    """How long finished jobs are kept. A job expires after its own retention, else that of its
    queue for its state, else the default, counted from its finish. Members of a group do not expire
    by themselves: everything of a group goes when the group does, and that is counted from its end,
    anew if a member was retried after that."""

    async def set_retention(self, queue: str, seconds: Mapping[str, int | None]) -> None:
        """For jobs that finish from now on; `seconds` by state (None: the default), the states
        that are not named stay as they were."""
        ...

    async def list_retention(self) -> dict[str, Retention]:
        """The queues for which something was set."""
        ...

    async def prune_jobs(self, limit: int = 500, *, archive: Archive | None = None) -> Pruned:
        """Remove about `limit` jobs that are past their time, with all that is theirs, and groups.
        With `archive`, they are handed to it before; when it raises, those are not removed. Safe if
        several do it at once. A store may let jobs stay up to an hour longer."""
        ...

    async def measure_disk(self) -> DiskUsage:
        """What the database takes."""
        ...


class WakeUps(Protocol):
    """Sleeping until something happened. Hang up a bell, look, then sleep: what was committed
    before is seen by the look, and what is committed after it rings. A bell may ring for nothing,
    and may be late or silent, so the sleep has a time-out, and whoever wakes looks again.
    """

    def listen_for_work(self, queues: Sequence[str] | None) -> AbstractAsyncContextManager[Bell]:
        """A bell that rings when jobs of these queues (None: of any) may have become claimable."""
        ...

    def listen_for_ends(self, job_ids: Sequence[str]) -> AbstractAsyncContextManager[Bell]:
        """A bell that rings when some of these jobs have ended."""
        ...

    def listen_for_events(self) -> AbstractAsyncContextManager[Bell]:
        """A bell that rings when events were written."""
        ...

    async def check_wake_ups(self) -> str | None:
        """Begin to listen; why nothing is heard from other processes and everybody polls, or None
        if bells ring."""
        ...


class WorkerStore(Protocol):
    """Which workers there are. For people to look at: no verb decides anything by it, and a worker
    that is not here may still hold leases."""

    async def register_worker(self, row: WorkerRow, seconds: float) -> None:
        """Say that a worker is alive for so many seconds from now, and how it is; said again before
        they are over, it stays alive. Workers whose time is over are forgotten."""
        ...

    async def drop_worker(self, worker_id: str) -> bool:
        """Forget a worker that stops; whether it was there."""
        ...

    async def list_workers(self) -> list[WorkerInfo]:
        """Those that are alive, by name."""
        ...


class EventStore(Protocol):
    """What happened, in the order in which it did: each change is written with an event, or
    neither is. `events.py` takes the batches apart."""

    async def read_events(
        self, after: int | None, wanted: EventFilter, *, span: int, limit: int
    ) -> EventPage:
        """The first `limit` batches behind a number (None: behind all there are), of the next
        `span` numbers. What was removed is passed over: the page tells up to where."""
        ...

    async def prune_events(self, seconds: float, limit: int = 1000) -> bool:
        """Remove events that are older, in their order; False if there is more to remove now. A
        store may let them stay up to six hours longer."""
        ...


class Maintenance(Protocol):
    async def elect_leader(self, role: str, holder: str, seconds: float) -> bool:
        """Take a role that is free, or whose holder's time is over, or that is held already, for
        so many seconds from now; whether `holder` has it."""
        ...

    async def resign_leader(self, role: str, holder: str) -> bool:
        """Give a role back before its time is over; whether `holder` had it."""
        ...

    async def fold_counts(self) -> None:
        """Fold the counts kept as deltas; a store that keeps totals has nothing to do."""
        ...

    async def check_health(self) -> Vitals:
        """What tells whether the database itself is well. Reads no job."""
        ...

    async def schema_version(self) -> int:
        """The version of the tables that are there; 0 if none."""
        ...

    async def check_schema(self) -> None:
        """Raise SchemaOutdated, SchemaTooNew or SchemaTooOld unless the tables are the ones this
        code knows."""
        ...

    async def migrate(self) -> list[str]:
        """Bring the tables up to date, safe if several do it at once; the names of the migrations
        that were applied."""
        ...

    async def install_dialect(self, name: str) -> bool:
        """Lay a foreign schema over the tables, or bring it up to date; whether it is new. Raises
        ConfigError if there is none of this name for this database."""
        ...

    async def remove_dialect(self, name: str) -> bool:
        """Take a foreign schema away; jobs that came through it stay. Whether it was there."""
        ...

    async def list_dialects(self) -> list[DialectInfo]:
        """Those there are for this database, and those that are installed, by name."""
        ...

    async def close(self) -> None: ...


class Store(
    JobStore,
    RowStore,
    JobAdmin,
    GroupStore,
    LimitStore,
    ScheduleStore,
    RetentionStore,
    WakeUps,
    WorkerStore,
    FarRunStore,
    EventStore,
    Maintenance,
    Protocol,
):
    """All of it."""

    capabilities: Capabilities
    clock: Clock
    tenant: str | None  # whose rows are all that it sees and writes; None: it sees everything

    @property
    def database(self) -> Database:
        """The database beneath, for the statements of other packages. Raises Unsupported where
        the store has none."""
        ...

    def as_tenant(self, tenant: str, *, is_sole: bool = False) -> Store:
        """The same store for one tenant, on the same connections. `is_sole`: closing it closes
        them, else they stay open. Raises ConfigError where the capability is missing."""
        ...
