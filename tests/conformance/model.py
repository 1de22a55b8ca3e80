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
from windrow.queue.store import Finish, GroupRow, JobRow

S = JobState


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

    @property
    def is_live(self) -> bool:
        return self.state not in FINAL


@dataclass(slots=True)
class MGroup:
    id: str
    root: str | None
    then: JobRow | None
    is_open: bool
    had_members: bool = False
    is_closed: bool = False
    is_cancelled: bool = False
    is_paused: bool = False
    state: str = "active"

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
        return self._insert_new(row, seq, is_follower=True)

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
        job = MJob(
            id=row.id,
            seq=seq,
            queue=row.queue,
            kind=row.kind,
            priority=row.priority,
            state=S.HELD if is_follower else self.due_state(self.due_at(row)),
            run_at=self.due_at(row),
            max_crashes=row.max_crashes,
            unique=row.unique,
            tenant=row.tenant,
            group=row.group,
            is_follower=is_follower,
        )
        self.jobs[job.id] = job
        if job.group is not None:
            self.groups[job.group].had_members = True
        return "inserted", job.id

    def _replace(self, old: MJob, row: JobRow) -> tuple[str, str]:
        if old.group != row.group:
            raise Refused("InvalidJob")
        old.kind, old.queue, old.priority = row.kind, row.queue, row.priority
        old.run_at, old.max_crashes = self.due_at(row), row.max_crashes
        old.attempts = old.crashes = 0
        old.state = S.HELD if old.is_follower else self.due_state(old.run_at)
        return "replaced", old.id

    def due_at(self, row: JobRow) -> datetime:
        return row.run_at or self.now + timedelta(seconds=row.delay)

    def due_state(self, run_at: datetime) -> JobState:
        return S.READY if run_at <= self.now else S.SCHEDULED

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
        ]
        return sorted(found, key=lambda job: (-job.priority, job.seq))

    def claim(self, job: MJob, token: str, seconds: int) -> None:
        job.state, job.token = S.ACTIVE, token
        job.runs += 1
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

    def _waits_for_group(self, job: MJob) -> bool:
        return job.root_of is not None and not self.groups[job.root_of].has_ended

    def _go_back(self, job: MJob) -> None:
        """Back to wait; or out, for whoever asked or follows."""
        stop_as, job.stop_as = job.stop_as, None
        if stop_as == S.CANCELLED or self.follower_of(job) is not None:
            self._end(job, S.CANCELLED)
        else:
            job.state = stop_as or self.due_state(job.run_at)

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
            if job.crashes >= job.max_crashes and job.stop_as is None:
                self._end(job, S.FAILED)
            else:
                self._go_back(job)
        return {job.id for job in late}

    def stage(self) -> int:
        due = [
            job for job in self.jobs.values() if job.state == S.SCHEDULED and job.run_at <= self.now
        ]
        for job in due:
            job.state = S.READY
        return len(due)

    # ends, and what they bring about

    def _end(self, job: MJob, state: JobState) -> None:
        follower = self.follower_of(job)
        job.state, job.stop_as = state, None
        if follower is not None and follower.is_live:
            self._promote(follower)
        if job.root_of is not None and state in (S.FAILED, S.CANCELLED):
            self.cancel_group(self.groups[job.root_of])
        self._touch(job.group)

    def _promote(self, follower: MJob) -> None:
        follower.is_follower = False
        if follower.state == S.HELD:
            follower.state = self.due_state(follower.run_at)

    def pending(self, group_id: str) -> int:
        return sum(job.group == group_id and job.is_live for job in self.jobs.values())

    def _touch(self, group_id: str | None) -> None:
        if group_id is not None:
            self.touched.append(group_id)

    def settle(self) -> None:
        """The end of every verb: groups with nothing left to wait for end, which may end others."""
        while self.touched:
            group = self.groups[self.touched.pop()]
            if group.has_ended or self.pending(group.id):
                continue
            is_used_up = group.had_members and not group.is_open
            if is_used_up or group.is_closed or group.is_cancelled:
                self._end_group(group)

    def _end_group(self, group: MGroup) -> None:
        group.state = "cancelled" if group.is_cancelled else "completed"
        if group.then is not None:
            self.finish_jobs.append(group.then.id)
            self._insert_new(group.then, self.next_seq(), is_follower=False)
        root = self.jobs.get(group.root or "")
        if root is not None and root.state == S.WAITING:
            self._end(root, S.CANCELLED if group.is_cancelled else S.COMPLETED)

    def next_seq(self) -> int:
        return 1 + max((job.seq for job in self.jobs.values()), default=0)

    # groups

    def create_group(self, row: GroupRow) -> str:
        root = self.jobs.get(row.root or "")
        if root is not None and root.root_of is not None:
            return root.root_of
        self.groups[row.id] = MGroup(row.id, row.root, row.then, row.is_open)
        if root is not None:
            root.root_of = row.id
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
                job.stop_as = S.CANCELLED
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
            job.stop_as = S.CANCELLED
        elif job.is_live:
            self._cancel_all([job])

    def pause(self, job: MJob) -> None:
        if job.state == S.ACTIVE:
            job.stop_as = job.stop_as or S.PAUSED
        elif job.state in UNCLAIMED:
            job.state = S.PAUSED

    def resume(self, job: MJob) -> None:
        if job.state == S.ACTIVE and job.stop_as == S.PAUSED:
            job.stop_as = None
        elif job.state == S.PAUSED:
            job.state = S.HELD if job.is_follower else self.due_state(job.run_at)

    def retry(self, job: MJob, seq: int) -> str | None:
        """The id of the job that is in the way, if one is."""
        if job.state in (S.FAILED, S.CANCELLED):
            holder = self._with_key(job.unique, job.tenant, is_follower=False)
            if holder is not None:
                return holder.id
            job.attempts = job.crashes = 0
            job.state, job.run_at, job.seq = S.READY, self.now, seq
            job.token = job.stop_as = None
            job.is_follower = False
        elif job.state == S.SCHEDULED:
            job.state, job.run_at = S.READY, self.now
        return None

    def delete(self, job: MJob) -> bool:
        if job.state in (S.ACTIVE, S.WAITING):
            return False
        follower = self.follower_of(job) if job.is_live else None
        del self.jobs[job.id]
        if follower is not None:
            self._promote(follower)
        self._touch(job.group)
        return True

    # looking

    def live(self) -> Iterator[MJob]:
        return (job for job in self.jobs.values() if job.is_live)

    def tally(self) -> dict[str, dict[JobState, int]]:
        found: dict[str, dict[JobState, int]] = {}
        for job in self.jobs.values():
            of_queue = found.setdefault(job.queue, {})
            of_queue[job.state] = of_queue.get(job.state, 0) + 1
        return found
