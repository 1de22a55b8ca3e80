"""The Store contract once more, as small as it can be said in Python: no SQL, no concurrency.

`Model` keeps jobs and groups in dictionaries and applies each verb as the contract words it. The
stateful test compares a real store with it after every step. Things the contract leaves to the
store (ids, tokens, `seq` of a retried job) are told to the model, not guessed by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from windrow.queue.job import FINAL, UNCLAIMED, JobState
from windrow.queue.limits import (
    PATIENCE_SECONDS,
    UNSERVED_SECONDS,
    Held,
    Idle,
    Lane,
    Limit,
    choose_places,
    release,
)
from windrow.queue.records import FOREVER, Finish, GroupRow, JobRow, LimitRow, OnFull

S = JobState
DAY = timedelta(days=1)


@dataclass(slots=True)
class MJob:
    id: str
    seq: int
    queue: str
    kind: str
    priority: int
    state: JobState
    run_at: datetime
    max_crashes: int
    unique: str | None = None
    tenant: str | None = None
    group: str | None = None
    root_of: str | None = None
    is_follower: bool = False
    token: str | None = None
    stop_as: JobState | None = None
    attempts: int = 0
    crashes: int = 0
    runs: int = 0
    limits: tuple[str, ...] = ()
    max_hold: int | None = None
    retention: int | None = None
    expires_at: datetime | None = None
    place: int | None = None  # given by a promotion; else the job stands where its seq is
    started_at: datetime | None = None
    promoted_at: datetime | None = None
    is_placed: bool = False  # gave its place under a limit back

    @property
    def lane(self) -> Lane:
        return self.queue, self.kind, self.tenant

    @property
    def order(self) -> tuple[int, int]:
        return -self.priority, self.seq if self.place is None else self.place

    @property
    def is_live(self) -> bool:
        return self.state not in FINAL


@dataclass(slots=True)
class MGroup:
    id: str
    root: str | None
    then: JobRow | None
    is_open: bool
    max_jobs: int | None = None
    members: int = 0  # that it ever had
    keys: dict[str, str] = field(default_factory=dict)  # that it ever had, and whose they are
    is_closed: bool = False
    is_cancelled: bool = False
    is_paused: bool = False
    state: str = "active"
    expires_at: datetime | None = None

    @property
    def has_ended(self) -> bool:
        return self.state != "active"


@dataclass(slots=True)
class MLease:
    expires_at: datetime
    seconds: int


class Refused(Exception):
    """The insert raises and changes nothing; `reason` is the name of the error."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class Model:
    now: datetime
    jobs: dict[str, MJob] = field(default_factory=dict)
    groups: dict[str, MGroup] = field(default_factory=dict)
    leases: dict[str, MLease] = field(default_factory=dict)
    paused_queues: set[str] = field(default_factory=set)
    finish_jobs: list[str] = field(default_factory=list)  # ids, born when their group ended
    touched: list[str] = field(default_factory=list)  # groups that may end with this verb
    left: set[str] = field(default_factory=set)  # groups that a live member left in this verb
    retention: dict[tuple[str, str], int | None] = field(default_factory=dict)  # by queue, state
    limits: dict[str, Limit] = field(default_factory=dict)
    unserved: dict[Lane, datetime] = field(default_factory=dict)
    bounds: dict[str, tuple[int, OnFull]] = field(default_factory=dict)

    # inserting

    def check_group(self, row: JobRow) -> None:
        if row.group is None:
            return
        group = self.groups.get(row.group)
        if group is None:
            raise Refused("GroupNotFound")
        if group.has_ended or group.is_cancelled:
            raise Refused("GroupEnded")

    def insert(self, row: JobRow, seq: int) -> tuple[str, str]:
        """(outcome, id of the job that holds the place)"""
        if row.id in self.jobs:
            return "existing", row.id
        self.check_group(row)
        keys = self.groups[row.group].keys if row.group is not None else {}
        if row.group_key in keys:
            return "left_out", keys[row.group_key]
        holder = self.holder(row)
        if holder is None:
            return self._insert_new(row, seq, is_follower=False)
        match row.on_conflict:
            case "return":
                return "existing", holder.id
            case "reject":
                return "rejected", holder.id
            case "replace" if holder.state not in UNCLAIMED:
                return "existing", holder.id
            case "replace":
                return self._replace(holder, row)
        if holder.state in UNCLAIMED:
            return self._replace(holder, row)
        follower = self.follower_of(holder)
        if follower is not None:
            return self._replace(follower, row)
        if row.group is not None and row.group in self.groups_before(holder):
            raise Refused("InvalidJob")
        return self._insert_new(row, seq, is_follower=True)

    def groups_before(self, job: MJob) -> set[str]:
        """The groups that must end before a job can: the one it is the root of, those of its
        members, and those of the jobs that members follow. A member that has ended as the root of
        a group that goes on counts too: it may be retried."""
        found: set[str] = set()
        jobs = [job]
        while jobs:
            one = jobs.pop()
            if one.is_follower:
                jobs += [j for j in self.live() if self.follower_of(j) is one]
            group = self.groups.get(one.root_of or "")
            if group is None or group.has_ended or group.id in found:
                continue
            found.add(group.id)
            jobs += [member for member in self.jobs.values() if member.group == group.id]
        return found

    def holder(self, row: JobRow) -> MJob | None:
        return self._with_key(row.unique, row.tenant, is_follower=False)

    def follower_of(self, job: MJob) -> MJob | None:
        if job.is_follower:
            return None
        return self._with_key(job.unique, job.tenant, is_follower=True)

    def _with_key(
        self, unique: str | None, tenant: str | None, *, is_follower: bool
    ) -> MJob | None:
        if unique is None:
            return None
        for job in self.live():
            if (job.unique, job.tenant, job.is_follower) == (unique, tenant, is_follower):
                return job
        return None

    def _insert_new(self, row: JobRow, seq: int, *, is_follower: bool) -> tuple[str, str]:
        if row.group is not None and not self._joins(row, self.groups[row.group]):
            return "left_out", row.id
        job = MJob(
            id=row.id,
            seq=seq,
            queue=row.queue,
            kind=row.kind,
            priority=row.priority,
            state=S.HELD if is_follower else self.due_state(self.due_at(row), row.limits),
            run_at=self.due_at(row),
            max_crashes=row.max_crashes,
            unique=row.unique,
            tenant=row.tenant,
            group=row.group,
            is_follower=is_follower,
            limits=row.limits,
            max_hold=row.max_hold_seconds,
            retention=row.retention_seconds,
        )
        self.jobs[job.id] = job
        return "inserted", job.id

    def _joins(self, row: JobRow, group: MGroup) -> bool:
        if group.members == group.max_jobs:
            return False
        group.members += 1
        if row.group_key is not None:
            group.keys[row.group_key] = row.id
        return True

    def keep_keys(self, group: MGroup, keys: Iterable[str], job_id: str) -> set[str]:
        return {key for key in keys if group.keys.setdefault(key, job_id) == job_id}

    def _replace(self, old: MJob, row: JobRow) -> tuple[str, str]:
        if old.group != row.group:
            raise Refused("InvalidJob")
        old.kind, old.queue, old.priority = row.kind, row.queue, row.priority
        old.run_at, old.max_crashes = self.due_at(row), row.max_crashes
        old.attempts = old.crashes = 0
        old.limits, old.max_hold = row.limits, row.max_hold_seconds
        old.retention = row.retention_seconds
        old.state = S.HELD if old.is_follower else self.due_state(old.run_at, old.limits)
        return "replaced", old.id

    def due_at(self, row: JobRow) -> datetime:
        return row.run_at or self.now + timedelta(seconds=row.delay)

    def due_state(self, run_at: datetime, limits: tuple[str, ...]) -> JobState:
        if run_at > self.now:
            return S.SCHEDULED
        return S.HELD if limits else S.READY

    def keep_bounds(self, rows: Iterable[JobRow], outcomes: Iterable[tuple[str, str]]) -> None:
        """After an insert: a queue that became too deep by it refuses all, or drops the oldest of
        its least urgent jobs."""
        taken = zip(rows, outcomes, strict=True)
        added = {row.queue for row, (outcome, _) in taken if outcome == "inserted"}
        for queue in sorted(added & self.bounds.keys()):
            max_depth, on_full = self.bounds[queue]
            waiting = [job for job in self.live() if job.state in UNCLAIMED and job.queue == queue]
            surplus = max(0, len(waiting) - max_depth)
            if surplus and on_full != "drop_oldest":
                raise Refused("QueueFull")
            worst = sorted(waiting, key=lambda job: (job.priority, job.order[1]))
            self._cancel_all(worst[:surplus])

    # claiming

    def claimable(self, queues: tuple[str, ...] | None) -> list[MJob]:
        """What a claim would take, best first."""
        found = [
            job
            for job in self.jobs.values()
            if job.state == S.READY
            and (queues is None or job.queue in queues)
            and job.queue not in self.paused_queues
            and not (job.group and self.groups[job.group].is_paused)
            and not any(self.is_parked(key) for key in job.limits)
        ]
        return sorted(found, key=lambda job: job.order)

    def claim(self, job: MJob, token: str, seconds: int) -> None:
        job.state, job.token = S.ACTIVE, token
        job.runs += 1
        job.started_at = self.now
        self.leases[token] = MLease(self.now + timedelta(seconds=seconds), seconds)

    def renew(self, token: str) -> set[str]:
        lease = self.leases.get(token)
        if lease is None or lease.expires_at <= self.now:
            return set()
        held = self.held_by(token)
        if held:
            lease.expires_at = self.now + timedelta(seconds=lease.seconds)
        return {job.id for job in held}

    def held_by(self, token: str) -> list[MJob]:
        return [job for job in self.jobs.values() if job.state == S.ACTIVE and job.token == token]

    # ending runs

    def finish(self, finish: Finish) -> bool:
        """Whether it is accepted."""
        job = self.jobs.get(finish.id)
        if job is None or job.token != finish.token:
            return False
        if job.state != S.ACTIVE:
            return True
        job.attempts += finish.uses_attempt
        if finish.state == S.READY:
            job.run_at = self.now + timedelta(seconds=finish.delay)
            self._go_back(job)
        elif finish.state == S.COMPLETED and self._waits_for_group(job):
            job.state, job.stop_as = S.WAITING, None
        else:
            self._end(job, finish.state)
        return True

    def has_ended_otherwise(self, finish: Finish) -> bool:
        """Whether a run that has ended cannot have ended like this, by where its job is now."""
        state = self.jobs[finish.id].state
        match finish.state:
            case S.COMPLETED:
                return state not in (S.COMPLETED, S.WAITING)
            case S.READY:
                return state not in (*UNCLAIMED, S.CANCELLED)
            case _:
                return state != finish.state

    def _waits_for_group(self, job: MJob) -> bool:
        return job.root_of is not None and not self.groups[job.root_of].has_ended

    def _go_back(self, job: MJob) -> None:
        """Back to wait; or out, for whoever asked or follows."""
        stop_as, job.stop_as = job.stop_as, None
        if stop_as == S.CANCELLED or self.follower_of(job) is not None:
            self._end(job, S.CANCELLED)
        else:
            job.state = stop_as or self.due_state(job.run_at, job.limits)

    def rescue(self) -> set[str]:
        """The ids of the jobs whose lease has run out."""
        late = [
            job
            for job in self.jobs.values()
            if job.state == S.ACTIVE
            and job.token is not None
            and self.leases[job.token].expires_at <= self.now
        ]
        for job in late:
            job.crashes += 1
            job.token = None
            if job.crashes >= job.max_crashes and job.stop_as != S.CANCELLED:
                self._end(job, S.FAILED)
            else:
                job.run_at = self.now
                self._go_back(job)
        return {job.id for job in late}

    def stage(self) -> int:
        due = [
            job for job in self.jobs.values() if job.state == S.SCHEDULED and job.run_at <= self.now
        ]
        for job in due:
            job.state = self.due_state(job.run_at, job.limits)
        return len(due)

    # ends, and what they bring about

    def _end(self, job: MJob, state: JobState) -> None:
        follower = self.follower_of(job)
        job.state, job.stop_as = state, None
        if follower is not None and follower.is_live:
            self._promote(follower)
        if job.root_of is not None and state in (S.FAILED, S.CANCELLED):
            self.cancel_group(self.groups[job.root_of])
        job.expires_at = self._expiry(job)
        self._touch(job.group, is_left=True)

    def _promote(self, follower: MJob) -> None:
        follower.is_follower = False
        if follower.limits:
            follower.run_at = max(follower.run_at, self.now)
        if follower.state == S.HELD:
            follower.state = self.due_state(follower.run_at, follower.limits)

    def pending(self, group_id: str) -> int:
        return sum(job.group == group_id and job.is_live for job in self.jobs.values())

    def _touch(self, group_id: str | None, *, is_left: bool = False) -> None:
        if group_id is not None:
            self.touched.append(group_id)
            if is_left:
                self.left.add(group_id)

    def settle(self) -> None:
        """The end of every verb: groups with nothing left to wait for end, which may end others."""
        while self.touched:
            group = self.groups[self.touched.pop()]
            if group.has_ended and group.id in self.left and not self.pending(group.id):
                group.expires_at = self.now + DAY
            if group.has_ended or self.pending(group.id):
                continue
            is_used_up = group.members > 0 and not group.is_open
            if is_used_up or group.is_closed or group.is_cancelled:
                self._end_group(group)
        self.left.clear()

    def _end_group(self, group: MGroup) -> None:
        group.state = "cancelled" if group.is_cancelled else "completed"
        group.expires_at = self.now + DAY
        if group.then is not None:
            self.finish_jobs.append(group.then.id)
            self._insert_new(group.then, self.next_seq(), is_follower=False)
        root = self.jobs.get(group.root or "")
        if root is not None and root.state == S.WAITING:
            self._end(root, S.CANCELLED if group.is_cancelled else S.COMPLETED)

    def next_seq(self) -> int:
        """Behind everybody: places and seqs are of the same numbers."""
        places = [max(job.seq, job.place or 0) for job in self.jobs.values()]
        return 1 + max(places, default=0)

    # groups

    def create_group(self, row: GroupRow) -> str:
        root = self.jobs.get(row.root or "")
        if root is not None and root.root_of is not None:
            return root.root_of
        self.groups[row.id] = MGroup(row.id, row.root, row.then, row.is_open, row.max_jobs)
        if root is not None:
            root.root_of = row.id
            if root.stop_as == S.CANCELLED:
                self.cancel_group(self.groups[row.id])
        return row.id

    def close_group(self, group_id: str) -> None:
        group = self.groups[group_id]
        group.is_open, group.is_closed = False, True
        self._touch(group_id)

    def cancel_group(self, group: MGroup) -> None:
        if group.has_ended or group.is_cancelled:
            return
        group.is_cancelled = True
        members = [job for job in self.jobs.values() if job.group == group.id]
        for job in members:
            if job.state == S.ACTIVE:
                self._tell_to_end(job)
        # All at once: a follower among them must not take the place of its first.
        leaving = [job for job in members if job.state in UNCLAIMED or job.state == S.WAITING]
        self._cancel_all(leaving)
        self._touch(group.id)

    def _cancel_all(self, jobs: Iterable[MJob]) -> None:
        leaving = list(jobs)
        for job in sorted(leaving, key=lambda job: not job.is_follower):
            if job.is_live:
                self._end(job, S.CANCELLED)

    # from outside

    def cancel(self, job: MJob) -> None:
        if job.state == S.ACTIVE:
            self._tell_to_end(job)
        elif job.is_live:
            self._cancel_all([job])

    def _tell_to_end(self, job: MJob) -> None:
        """A running job; the group that it is the root of goes at once."""
        job.stop_as = S.CANCELLED
        if job.root_of is not None:
            self.cancel_group(self.groups[job.root_of])

    def pause(self, job: MJob) -> None:
        if job.state == S.ACTIVE:
            job.stop_as = job.stop_as or S.PAUSED
        elif job.state in UNCLAIMED:
            job.state = S.PAUSED

    def resume(self, job: MJob) -> None:
        if job.state == S.ACTIVE and job.stop_as == S.PAUSED:
            job.stop_as = None
        elif job.state == S.PAUSED:
            job.state = S.HELD if job.is_follower else self.due_state(job.run_at, job.limits)
            if job.limits and not job.is_follower:
                job.run_at = max(job.run_at, self.now)

    def retry(self, job: MJob, seq: int) -> str | None:
        """The id of the job that is in the way, if one is."""
        if job.state in (S.FAILED, S.CANCELLED):
            holder = self._with_key(job.unique, job.tenant, is_follower=False)
            if holder is not None:
                return holder.id
            job.attempts = job.crashes = 0
            job.run_at, job.seq = self.now, seq
            job.state = self.due_state(self.now, job.limits)
            job.token = job.stop_as = None
            job.is_follower = False
            job.expires_at = None
            if job.group is not None:
                self.groups[job.group].expires_at = None
        elif job.state == S.SCHEDULED:
            job.state, job.run_at = self.due_state(self.now, job.limits), self.now
        return None

    def delete(self, job: MJob) -> bool:
        if job.state in (S.ACTIVE, S.WAITING):
            return False
        follower = self.follower_of(job) if job.is_live else None
        del self.jobs[job.id]
        if follower is not None:
            self._promote(follower)
        self._touch(job.group, is_left=job.is_live)
        return True

    def edit_limits(self, job: MJob, limits: tuple[str, ...], max_hold: int | None) -> bool:
        """Whether its state allows it."""
        if job.state not in UNCLAIMED and job.state not in (S.FAILED, S.CANCELLED):
            return False
        has_moved = limits != job.limits and not job.is_follower
        job.limits, job.max_hold = limits, max_hold if limits else None
        if has_moved and job.state in (S.READY, S.HELD, S.SCHEDULED):
            if job.state == S.READY and limits:
                job.run_at = max(job.run_at, self.now)
            job.state = self.due_state(job.run_at, limits)
        return True

    # limits

    def is_parked(self, key: str) -> bool:
        until = self.limits[key].parked_until if key in self.limits else None
        return until is not None and until > self.now

    def held(self) -> dict[str, list[MJob]]:
        """Jobs that wait for room by their first key, best first."""
        found: dict[str, list[MJob]] = {}
        order = lambda job: (job.order[0], not job.is_placed, job.order[1])  # noqa: E731
        for job in sorted(self.live(), key=order):
            if job.state == S.HELD and not job.is_follower:
                found.setdefault(job.limits[0], []).append(job)
        return found

    def promote(self, keys: Iterable[str] | None) -> list[MJob]:
        waiting = self.held()
        if keys is not None:
            waiting = {key: jobs for key, jobs in waiting.items() if key in set(keys)}
        carried = sorted({key for jobs in waiting.values() for job in jobs for key in job.limits})
        limits = {key: self._evaluate(key) for key in carried}
        idle = self._idle(carried)
        release(limits, idle)
        given = {
            key: [
                Held(job.id, job.limits, job.lane, self._is_unserved(job))
                for job in jobs
                if not self._is_paused(job)
            ]
            for key, jobs in waiting.items()
            if limits[key].first_room(self.now) > 0
        }
        choice = choose_places(limits, given, idle, self.now, 1000)
        for one in choice.returned:
            job = self.jobs[one.id]
            job.state, job.is_placed = S.HELD, True
        for lane in choice.unserved:
            self.unserved[lane] = self.now + timedelta(seconds=UNSERVED_SECONDS)
        chosen = [self.jobs[held.id] for held in choice.promoted]
        for place, job in enumerate(chosen, self.next_seq()):
            job.state, job.promoted_at = S.READY, self.now
            if not job.is_placed:
                job.place = place
            job.is_placed = False
        return chosen

    def _idle(self, keys: list[str]) -> list[Idle]:
        """Ready jobs that could give their places to others."""
        idle = []
        for job in self.live():
            if job.state != S.READY or not {*job.limits} & {*keys}:
                continue
            is_blocked = self._is_paused(job) or any(map(self.is_parked, job.limits))
            is_known = is_blocked or self._is_unserved(job)
            assert job.promoted_at is not None
            waited = self.now - job.promoted_at
            is_overdue = waited > timedelta(seconds=PATIENCE_SECONDS)
            if is_known or is_overdue:
                idle.append(Idle(job.id, job.limits, job.lane, is_overdue and not is_known))
        return idle

    def _is_paused(self, job: MJob) -> bool:
        return job.queue in self.paused_queues or bool(
            job.group and self.groups[job.group].is_paused
        )

    def _is_unserved(self, job: MJob) -> bool:
        return job.lane in self.unserved and self.unserved[job.lane] > self.now

    def set_limit(self, row: LimitRow) -> None:
        limit = self.limits.setdefault(row.key, Limit(row.key))
        limit.active, limit.per_second = row.active, row.per_second
        limit.burst = row.burst
        surplus = self._evaluate(row.key).surplus()
        ready = [job for job in self.live() if job.state == S.READY and row.key in job.limits]
        for job in sorted(ready, key=lambda job: job.order, reverse=True)[:surplus]:
            job.state = S.HELD

    def remove_limit(self, key: str) -> None:
        """What is set is forgotten; the turn is kept."""
        if key in self.limits:
            self.limits[key] = Limit(key, turn=self.limits[key].turn)

    def prune_limits(self) -> int:
        """Forget keys with nothing set that nobody uses; how many."""
        in_use = {
            key for job in self.live() if job.state in (S.READY, S.ACTIVE) for key in job.limits
        }
        used = in_use | self.held().keys()
        idle = [
            key
            for key, limit in self.limits.items()
            if not limit.is_set and not self.is_parked(key) and key not in used
        ]
        for key in idle:
            del self.limits[key]
        return len(idle)

    def _evaluate(self, key: str) -> Limit:
        """A key with what it has in use now, refilled."""
        limit = self.limits.setdefault(key, Limit(key))
        of_key = [job for job in self.jobs.values() if key in job.limits]
        limit.ready = sum(job.state == S.READY for job in of_key)
        limit.in_use = limit.ready + sum(job.state == S.ACTIVE for job in of_key)
        since = limit.refilled_at or self.now
        starts = [job.started_at for job in of_key if job.started_at and job.started_at > since]
        limit.started, limit.last_started_at = len(starts), max(starts, default=None)
        limit.refill(self.now)
        return limit

    def expire(self) -> set[str]:
        late = [
            job
            for jobs in self.held().values()
            for job in jobs
            if job.max_hold is not None and job.run_at + timedelta(seconds=job.max_hold) <= self.now
        ]
        for job in late:
            self._end(job, S.FAILED)
        return {job.id for job in late}

    # retention

    def _expiry(self, job: MJob) -> datetime | None:
        """When a job that has just ended expires; None: never, or with its group."""
        if job.group is not None:
            return None
        seconds = job.retention
        if seconds is None:
            seconds = self.retention.get((job.queue, job.state))
        if seconds is None:
            return self.now + (7 * DAY if job.state == S.FAILED else DAY)
        return None if seconds == FOREVER else self.now + timedelta(seconds=seconds)

    def expiry(self, job: MJob) -> datetime | None:
        """When a job may be removed."""
        if job.is_live:
            return None
        return job.expires_at if job.group is None else self.groups[job.group].expires_at

    def remove_group(self, group: MGroup) -> None:
        del self.groups[group.id]
        root = self.jobs.get(group.root or "")
        if root is not None and root.root_of == group.id:
            root.root_of = None

    # looking

    def live(self) -> Iterator[MJob]:
        return (job for job in self.jobs.values() if job.is_live)

    def tally(self) -> dict[str, dict[JobState, int]]:
        found: dict[str, dict[JobState, int]] = {}
        for job in self.jobs.values():
            of_queue = found.setdefault(job.queue, {})
            of_queue[job.state] = of_queue.get(job.state, 0) + 1
        return found
