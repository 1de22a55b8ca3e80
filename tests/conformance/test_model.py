"""Any sequence of verbs on a store, compared with the model of the contract after every step.

Stale tokens, repeated finishes and late replies are part of it: a run once claimed may be finished
at any later time. What the contract does not decide is not done here (see the `assume`s).
"""

from __future__ import annotations

import asyncio
import copy
import os
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.builders import boom, row, tallied
from tests.conformance.model import MJob, Model, Refused
from windrow import Queue
from windrow.clock import FakeClock
from windrow.errors import WindrowError
from windrow.ids import new_id
from windrow.queue.events import OLDEST
from windrow.queue.job import FINAL, JobState
from windrow.queue.limits import Limit
from windrow.queue.opening import open_store
from windrow.queue.records import FOREVER, Claim, Finish, GroupRow, Inserted, JobRow, LimitRow
from windrow.queue.store import Store

T = TypeVar("T")
S = JobState
SLACK = timedelta(hours=1)  # a store may keep jobs so much longer

# Examples of so many steps, sized so that both stores together take well under a minute.
STEPS = 40
MORE = int(os.environ.get("WINDROW_TEST_MORE", "1"))
# `make chaos` makes twelve times as many.
EXAMPLES = {"sqlite": 30 * MORE, "postgres": 8 * MORE}

QUEUES = st.sampled_from(["a", "b"])
SOME_QUEUES = st.sampled_from([None, ("a",), ("b",), ("a", "b")])
# A hundredth more each time: no sum of a few is the whole length of a lease.
SECONDS = st.sampled_from([0.01, 1.01, 7.03, 33.07, 61.01])

SOME_LIMITS = st.sampled_from([(), (), ("x",), ("y",), ("x", "z"), ("y", "z")])


@dataclass(frozen=True, slots=True)
class Wanted:
    """A job to insert, drawn before it is known which groups there are."""

    queue: str
    priority: int
    delay: float
    unique: str | None
    mode: str
    tenant: str | None
    group: int | None
    group_key: str | None
    lease: int | None
    max_crashes: int
    limits: tuple[str, ...]
    max_hold: int | None
    retention: int | None


WANTED = st.builds(
    Wanted,
    queue=QUEUES,
    priority=st.sampled_from([-3, 5, 9]),
    delay=st.sampled_from([0.0, 0.0, 0.0, 20.0]),
    unique=st.sampled_from([None, "k", "k", "l"]),
    mode=st.sampled_from(["return", "reject", "replace", "follow", "follow"]),
    tenant=st.sampled_from([None, None, "t"]),
    group=st.none() | st.integers(0, 5),
    group_key=st.sampled_from([None, None, "aa" * 16, "bb" * 16, "cc" * 16]),
    lease=st.sampled_from([None, None, 20]),
    max_crashes=st.sampled_from([1, 2, 5]),
    limits=SOME_LIMITS,
    max_hold=st.sampled_from([None, None, 30]),
    retention=st.sampled_from([None, None, 0, 7200, FOREVER]),
)
KEYS = st.sampled_from(["x", "y", "z"])
GROUP_KEYS = st.lists(st.sampled_from(["aa" * 16, "bb" * 16, "dd" * 16]), unique=True)
ENDS = st.sampled_from([S.COMPLETED, S.COMPLETED, S.FAILED, S.CANCELLED, S.READY, S.READY])


class StoreMachine(RuleBasedStateMachine):
    """Drives one store on a database of its own."""

    make_url: Callable[[], str]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.clock = FakeClock()
        self.model = Model(self.clock.now())
        self.store: Store = self.run(open_store(self.make_url(), clock=self.clock))
        self.runs: list[tuple[str, str]] = []  # every (job id, token) that was ever claimed
        self.deleted: set[str] = set()
        self.reader = Queue(self.store).events(OLDEST, follow=False)
        self.told: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()

    @initialize(first=st.lists(WANTED, min_size=1, max_size=3))
    def start(self, first: list[Wanted]) -> None:
        self.insert(first)

    # inserting

    @rule(wanted=st.lists(WANTED, min_size=1, max_size=3))
    def insert(self, wanted: list[Wanted]) -> None:
        rows = self.to_rows(wanted)
        expected = copy.deepcopy(self.model)
        outcomes = self.expect_inserts(expected, rows)
        if isinstance(outcomes, Refused):
            with pytest.raises(WindrowError) as error:
                self.run(self.store.insert_jobs(rows))
            assert type(error.value).__name__ == outcomes.reason
            return
        inserted = self.run(self.store.insert_jobs(rows))
        self.model = expected

        assert [(one.outcome, one.id) for one in inserted] == outcomes
        # A row replaced by a later one of the same call may be told as it was or as it is.
        for last in {one.id: one for one in inserted if one.outcome != "left_out"}.values():
            state = self.model.jobs[last.id].state
            # One that was dropped at once, because its queue is full, is told as it was.
            assert last.state == state or state == S.CANCELLED
        self.learn_seqs(inserted)

    def learn_seqs(self, inserted: Sequence[Inserted]) -> None:
        for one in inserted:
            if one.outcome == "inserted":
                self.model.jobs[one.id].seq = one.seq

    def expect_inserts(
        self, expected: Model, rows: list[JobRow]
    ) -> list[tuple[str, str]] | Refused:
        try:
            outcomes = [expected.insert(new, expected.next_seq()) for new in rows]
            expected.keep_bounds(rows, outcomes)
            expected.settle()
            return outcomes
        except Refused as refused:
            return refused

    @precondition(lambda self: self.model.jobs)
    @rule(pick=st.integers(0, 99))
    def insert_again(self, pick: int) -> None:
        """A repetition after a lost reply, whatever became of the job meanwhile."""
        job = self.pick_job(pick)
        [again] = self.run(self.store.insert_jobs([row(id=job.id, may_exist=True)]))

        assert (again.outcome, again.id, again.state) == ("existing", job.id, job.state)

    def to_rows(self, wanted: list[Wanted]) -> list[JobRow]:
        """Whether a unique key or the room in a group is looked at first, if rows of one batch
        depend on each other, is nobody's business."""
        rows = [self.to_row(one) for one in wanted]
        is_narrow = any(new.group_key or self.is_capped(new.group) for new in rows)
        if not is_narrow or len(rows) == 1:
            return rows
        return [msgspec.structs.replace(new, unique=None, on_conflict="return") for new in rows]

    def is_capped(self, group_id: str | None) -> bool:
        return group_id is not None and self.model.groups[group_id].max_jobs is not None

    def to_row(self, wanted: Wanted) -> JobRow:
        groups = dict(enumerate(sorted(self.model.groups)))
        group = None if wanted.group is None else groups.get(wanted.group)
        return row(
            queue=wanted.queue,
            priority=wanted.priority,
            delay=wanted.delay,
            unique=wanted.unique,
            on_conflict=wanted.mode if wanted.unique else "return",
            tenant=wanted.tenant,
            # Whether a taken key or an ended group is noticed first is nobody's business.
            group=None if group and wanted.unique and self.is_closing(group) else group,
            group_key=None if group is None or wanted.unique else wanted.group_key,
            lease_seconds=wanted.lease,
            max_crashes=wanted.max_crashes,
            limits=wanted.limits,
            max_hold_seconds=wanted.max_hold if wanted.limits else None,
            retention_seconds=wanted.retention,
        )

    def is_closing(self, group_id: str) -> bool:
        group = self.model.groups[group_id]
        return group.has_ended or group.is_cancelled

    # running

    @rule(queues=SOME_QUEUES, limit=st.sampled_from([1, 2, 5]))
    def claim(self, queues: tuple[str, ...] | None, limit: int) -> None:
        wanted = self.model.claimable(queues)[:limit]
        claimed = self.run(self.store.claim_jobs(Claim(queues, limit, 60, "worker")))

        assert [job.id for job in claimed] == [job.id for job in wanted]
        for job in claimed:
            assert job.lease_token is not None
            self.model.claim(self.model.jobs[job.id], job.lease_token, job.lease_seconds or 60)
            self.runs.append((job.id, job.lease_token))

    @precondition(lambda self: self.runs)
    @rule(
        pick=st.integers(0, 99),
        end=ENDS,
        delay=st.sampled_from([0.0, 0.0, 15.0]),
        uses_attempt=st.booleans(),
        then=st.lists(WANTED, max_size=2),
    )
    def finish(
        self, pick: int, end: JobState, delay: float, uses_attempt: bool, then: list[Wanted]
    ) -> None:
        """Of the newest runs more often than of old ones; an old one is stale or a repetition."""
        job_id, token = self.runs[-1 - pick % min(len(self.runs), 6)]
        rows = tuple(self.to_rows(then))
        finish = Finish(
            *(job_id, token, end),
            delay=delay,
            error=boom() if uses_attempt else None,
            uses_attempt=uses_attempt,
            then=rows,
        )
        expected = copy.deepcopy(self.model)
        job = expected.jobs.get(job_id)
        is_new = job is not None and job.state == S.ACTIVE and job.token == token
        is_accepted = expected.finish(finish)
        is_other = is_accepted and not is_new and expected.has_ended_otherwise(finish)
        outcomes = [self.follow_up(expected, new) for new in rows] if is_new else []
        expected.settle()
        finished = self.run(self.store.finish_jobs([finish]))
        self.model = expected

        assert finished.lost == (() if is_accepted else (job_id,))
        assert finished.conflicting == ((job_id,) if is_other else ())
        if is_new:
            assert [(one.outcome, one.id) for one in finished.then] == outcomes
            self.learn_seqs(finished.then)
        elif is_other:
            assert finished.then == ()
        elif is_accepted:
            assert [one.outcome for one in finished.then] == ["existing"] * len(rows)

    def follow_up(self, expected: Model, new: JobRow) -> tuple[str, str]:
        try:
            return expected.insert(new, expected.next_seq())
        except Refused:
            return "dropped", new.id

    @precondition(lambda self: len(self.runs) > 1)
    @rule(ends=st.lists(ENDS, min_size=2, max_size=4))
    def finish_many(self, ends: list[JobState]) -> None:
        """Of distinct jobs, none a root: then the order within a call cannot matter."""
        runs = {job_id: token for job_id, token in self.runs if not self.is_root(job_id)}
        chosen = list(runs.items())[-len(ends) :]
        finishes = [Finish(*run, end) for run, end in zip(chosen, ends, strict=False)]
        lost = [finish.id for finish in finishes if not self.model.finish(finish)]
        self.model.settle()

        assert sorted(self.run(self.store.finish_jobs(finishes)).lost) == sorted(lost)

    def is_root(self, job_id: str) -> bool:
        return job_id in self.model.jobs and self.model.jobs[job_id].root_of is not None

    @precondition(lambda self: self.runs)
    @rule(pick=st.integers(0, 99))
    def renew(self, pick: int) -> None:
        _, token = self.runs[-1 - pick % min(len(self.runs), 6)]
        renewal = self.run(self.store.extend_leases([token]))

        assert renewal.held == self.model.renew(token)
        assert renewal.stopping == {
            job.id: job.stop_as
            for job in self.model.held_by(token)
            if job.id in renewal.held and job.stop_as
        }

    # time

    @rule(seconds=SECONDS)
    def pass_time(self, seconds: float) -> None:
        self.model.now = self.clock.advance(seconds)

    @rule()
    def stage(self) -> None:
        moved = self.model.stage()

        assert self.run(self.store.stage_jobs()) == moved

    @rule()
    def rescue(self) -> None:
        rescued = self.model.rescue()
        self.model.settle()

        assert {change.id for change in self.run(self.store.rescue_jobs())} == rescued

    # limits

    @rule(keys=st.none() | st.lists(KEYS, min_size=1, max_size=2))
    def promote(self, keys: list[str] | None) -> None:
        promoted = self.model.promote(keys)

        assert self.run(self.store.promote_jobs(keys)) == len(promoted)

    @rule(
        key=KEYS,
        active=st.sampled_from([None, 0, 1, 2]),
        per_second=st.sampled_from([None, 0.5, 2.0]),
        burst=st.sampled_from([None, 1, 3]),
    )
    def set_limit(
        self,
        key: str,
        active: int | None,
        per_second: float | None,
        burst: int | None,
    ) -> None:
        limit = LimitRow(key, active, per_second, burst if per_second else None)
        self.model.set_limit(limit)
        self.run(self.store.set_limit(limit))

    @rule(key=KEYS)
    def remove_limit(self, key: str) -> None:
        self.model.remove_limit(key)
        self.run(self.store.remove_limit(key))

    @rule()
    def prune_limits(self) -> None:
        assert self.run(self.store.prune_limits()) == (self.model.prune_limits(), "")

    @precondition(lambda self: self.model.jobs)
    @rule(pick=st.integers(0, 99), limits=SOME_LIMITS, max_hold=st.sampled_from([None, 30]))
    def edit_limits(self, pick: int, limits: tuple[str, ...], max_hold: int | None) -> None:
        job = self.pick_job(pick)
        # Under which keys the start of a run counts that was under others is left open.
        assume(job.started_at is None)
        changes: dict[str, Any] = {"limits": limits}
        if limits:
            changes["max_hold_seconds"] = max_hold
        change = self.run(self.store.edit_job(job.id, changes))

        assert change.is_refused != self.model.edit_limits(job, limits, max_hold)
        assert change.after == job.state

    @rule(key=KEYS, seconds=st.sampled_from([None, 10.0]))
    def park_key(self, key: str, seconds: float | None) -> None:
        until = None if seconds is None else self.model.now + timedelta(seconds=seconds)
        self.model.limits.setdefault(key, Limit(key)).parked_until = until
        self.run(self.store.park_key(key, seconds=seconds))

    @rule()
    def expire(self) -> None:
        expired = self.model.expire()
        self.model.settle()

        assert {change.id for change in self.run(self.store.expire_jobs())} == expired

    @invariant()
    def limits_are_kept(self) -> None:
        for limit in self.run(self.store.list_limits()):
            carrying = [job for job in self.model.live() if limit.key in job.limits]
            in_use = [job for job in carrying if job.state in (S.READY, S.ACTIVE)]
            assert limit.taken == len(in_use)
            assert limit.in_use == sum(job.state == S.ACTIVE for job in in_use)
            # Jobs that ran when the limit was lowered run on; nothing else is over it.
            if limit.active is not None and limit.taken > limit.active:
                assert all(job.state == S.ACTIVE for job in in_use)

    # retention

    @rule(
        name=QUEUES,
        state=st.sampled_from(["completed", "failed", "cancelled"]),
        seconds=st.sampled_from([None, 0, 3600, FOREVER]),
    )
    def set_retention(self, name: str, state: str, seconds: int | None) -> None:
        self.model.retention[name, state] = seconds
        self.run(self.store.set_retention(name, {state: seconds}))

    @rule(hours=st.sampled_from([0, 1, 1, 26, 26, 200]))
    def prune(self, hours: int) -> None:
        """What is past its time may go, and an hour later must have gone; nothing else may."""
        self.model.now = self.clock.advance(hours * 3600 + 0.01)
        while not self.run(self.store.prune_jobs()).is_done:
            continue
        found = self.run(self.store.get_jobs(list(self.model.jobs)))
        for job in list(self.model.jobs.values()):
            expires_at = self.model.expiry(job)
            if job.id in found:
                assert expires_at is None or expires_at > self.model.now - SLACK
            else:
                assert expires_at is not None
                assert expires_at <= self.model.now
                del self.model.jobs[job.id]
                self.deleted.add(job.id)
        self.prune_groups()

    def prune_groups(self) -> None:
        for group in list(self.model.groups.values()):
            is_over = group.expires_at is not None and group.expires_at <= self.model.now
            if self.run(self.store.get_group(group.id)) is None:
                assert is_over
                self.model.remove_group(group)
            else:
                assert not is_over

    # groups

    @rule(
        root=st.none() | st.integers(0, 99),
        is_open=st.booleans(),
        has_then=st.booleans(),
        max_jobs=st.sampled_from([None, None, 1, 3]),
    )
    def create_group(
        self, root: int | None, is_open: bool, has_then: bool, max_jobs: int | None
    ) -> None:
        live = [job.id for job in self.model.live()]
        chosen = live[root % len(live)] if root is not None and live else None
        then = row("then", queue="a") if has_then else None
        new = GroupRow(id=new_id(), root=chosen, then=then, is_open=is_open, max_jobs=max_jobs)

        made = self.run(self.store.create_group(new))
        assert made.id == self.model.create_group(new)
        self.model.settle()

    @precondition(lambda self: self.model.groups and self.model.jobs)
    @rule(pick=st.integers(0, 99), job=st.integers(0, 99), keys=GROUP_KEYS)
    def keep_keys(self, pick: int, job: int, keys: list[str]) -> None:
        group, job_id = self.model.groups[self.pick_group(pick)], self.pick_job(job).id

        kept = self.run(self.store.keep_group_keys(group.id, keys, job_id))
        assert kept == self.model.keep_keys(group, keys, job_id)

    @precondition(lambda self: self.model.groups)
    @rule(pick=st.integers(0, 99))
    def close_group(self, pick: int) -> None:
        group_id = self.pick_group(pick)
        self.model.close_group(group_id)
        self.model.settle()
        self.run(self.store.close_group(group_id))

    @precondition(lambda self: self.model.groups)
    @rule(pick=st.integers(0, 99))
    def cancel_group(self, pick: int) -> None:
        group_id = self.pick_group(pick)
        self.model.cancel_group(self.model.groups[group_id])
        self.model.settle()
        self.run(self.store.cancel_group(group_id, "enough"))

    @precondition(lambda self: self.model.groups)
    @rule(pick=st.integers(0, 99))
    def pause_or_resume_group(self, pick: int) -> None:
        group = self.model.groups[self.pick_group(pick)]
        group.is_paused = not group.is_paused
        verb = self.store.pause_group if group.is_paused else self.store.resume_group

        assert self.run(verb(group.id)).is_paused == group.is_paused

    @rule(name=QUEUES)
    def pause_or_resume_queue(self, name: str) -> None:
        self.model.paused_queues ^= {name}
        is_paused = name in self.model.paused_queues
        self.run((self.store.pause_queue if is_paused else self.store.resume_queue)(name))

    # from outside

    @precondition(lambda self: self.model.jobs)
    @rule(pick=st.integers(0, 99))
    def cancel(self, pick: int) -> None:
        job = self.pick_job(pick)
        self.model.cancel(job)
        self.model.settle()

        change = self.run(self.store.cancel_jobs([job.id], "no"))[job.id]
        assert change.after == job.state

    @precondition(lambda self: self.model.jobs)
    @rule(pick=st.integers(0, 99))
    def pause(self, pick: int) -> None:
        job = self.pick_job(pick)
        self.model.pause(job)

        assert self.run(self.store.pause_jobs([job.id]))[job.id].after == job.state

    @precondition(lambda self: self.model.jobs)
    @rule(pick=st.integers(0, 99))
    def resume(self, pick: int) -> None:
        job = self.pick_job(pick)
        self.model.resume(job)

        assert self.run(self.store.resume_jobs([job.id]))[job.id].after == job.state

    @precondition(lambda self: self.model.jobs)
    @rule(pick=st.integers(0, 99))
    def retry(self, pick: int) -> None:
        job = self.pick_job(pick)
        # Nothing is said of new life in a group that is being cancelled.
        group = self.model.groups.get(job.group or "")
        assume(group is None or group.has_ended or not group.is_cancelled)
        change = self.run(self.store.retry_jobs([job.id]))[job.id]
        seq = self.run(self.store.get_jobs([job.id]))[job.id].seq

        if change.before in FINAL and change.after not in FINAL:
            self.told[job.id].append(("retried", ""))  # which no event tells of
        assert change.blocked_by == self.model.retry(job, seq)
        assert change.after == job.state

    @precondition(lambda self: self.model.jobs)
    @rule(pick=st.integers(0, 99))
    def delete(self, pick: int) -> None:
        job = self.pick_job(pick)
        # What becomes of a group whose root is deleted is left open.
        assume(job.root_of is None or self.model.groups[job.root_of].has_ended)
        is_deleted = self.model.delete(job)
        self.model.settle()
        change = self.run(self.store.delete_jobs([job.id]))[job.id]

        assert (change.after is None, change.is_refused) == (is_deleted, not is_deleted)
        if is_deleted:
            self.deleted.add(job.id)

    @rule()
    def drain(self) -> None:
        """Let everything go on and run to its end: no job and no group may be left over."""
        self.let_go()
        while True:
            self.pass_time(33.07)
            self.stage()
            self.promote(None)
            self.claim(None, 1000)
            running = [job for job in self.model.live() if job.state == S.ACTIVE]
            if not running:
                break
            for job in running:
                assert job.token is not None
                finish = Finish(job.id, job.token, S.COMPLETED)
                self.model.finish(finish)
                self.model.settle()
                assert self.run(self.store.finish_jobs([finish])).lost == ()

        assert list(self.model.live()) == []
        assert [group for group in self.model.groups.values() if not group.has_ended] == []

    def let_go(self) -> None:
        """Lift every pause and limit, close what is held open."""
        for key in ("x", "y", "z"):
            self.remove_limit(key)
        for name in sorted(self.model.paused_queues):
            self.pause_or_resume_queue(name)
        for group in self.model.groups.values():
            group.is_paused = False
            self.run(self.store.resume_group(group.id))
            self.model.close_group(group.id)
            self.model.settle()
            self.run(self.store.close_group(group.id))
        for job in list(self.model.live()):
            self.model.resume(job)
            self.run(self.store.resume_jobs([job.id]))

    def pick_job(self, pick: int) -> MJob:
        """Of the newest more often than of the oldest."""
        jobs = list(self.model.jobs.values())
        return jobs[-1 - pick % len(jobs)]

    def pick_group(self, pick: int) -> str:
        return sorted(self.model.groups)[pick % len(self.model.groups)]

    # what must hold after every step

    @invariant()
    def store_and_model_agree(self) -> None:
        self.run(self.compare())

    async def compare(self) -> None:
        await self.compare_jobs()
        await self.compare_groups()
        await self.compare_events()
        assert await tallied(self.store) == self.model.tally()
        keys = [(j.tenant, j.unique, j.is_follower) for j in self.model.live() if j.unique]
        assert len(keys) == len(set(keys))

    async def compare_jobs(self) -> None:
        found = await self.store.get_jobs([*self.model.jobs, *self.deleted])
        self.learn_places(found)

        assert set(found) == set(self.model.jobs)
        for job_id, job in self.model.jobs.items():
            real = found[job_id]
            assert (real.state, real.queue, real.priority) == (job.state, job.queue, job.priority)
            assert (real.attempts, real.crashes, real.runs) == (job.attempts, job.crashes, job.runs)
            assert (real.group, real.root_of) == (job.group, job.root_of)
            assert (real.limits, real.max_hold_seconds) == (job.limits, job.max_hold)
            if job.place is None:
                assert real.seq == job.seq
            if job.is_live:
                assert (real.run_at, real.stop_as) == (job.run_at, job.stop_as)

    async def compare_events(self) -> None:
        """The stream, read on from where it was, tells of every job and group what is so."""
        async for event in self.reader:
            self.told[event.job_id or event.group_id or ""].append((event.type, event.state))
        for job_id, job in self.model.jobs.items():
            types = [type for type, _ in self.told[job_id]]
            assert types.count("job.created") == 1
            assert types[0] == "job.created"
            assert types.count("job.started") == job.runs
            last = self.told[job_id][-1]
            assert (last == ("job.finished", job.state)) == (job.state in FINAL)
        for group_id, group in self.model.groups.items():
            ends = [state for type, state in self.told[group_id] if type == "group.ended"]
            assert ends == ([group.state] if group.has_ended else [])

    def learn_places(self, found: dict[str, Any]) -> None:
        """The finish jobs of groups get their place in the line from the store."""
        known = [j.seq for i, j in self.model.jobs.items() if i not in self.model.finish_jobs]
        while self.model.finish_jobs:
            job_id = self.model.finish_jobs.pop()
            self.model.jobs[job_id].seq = found[job_id].seq
            assert found[job_id].seq > max(known, default=0)

    async def compare_groups(self) -> None:
        for group_id, group in self.model.groups.items():
            real = await self.store.get_group(group_id)
            assert real is not None
            assert real.pending == self.model.pending(group_id)
            assert (real.members, real.max_jobs) == (group.members, group.max_jobs)
            assert (real.ended_at is not None) == group.has_ended
            if group.has_ended:
                assert real.state == group.state


class LimitMachine(StoreMachine):
    """The same with few verbs and a limit on every job, so that limits are met often."""

    insert_again = renew = finish_many = delete = None  # type: ignore[assignment]
    create_group = close_group = cancel_group = pause_or_resume_group = None  # type: ignore[assignment]
    keep_keys = None  # type: ignore[assignment]
    pause_or_resume_queue = pass_hours = set_retention = prune = None  # type: ignore[assignment]

    @initialize(first=st.lists(WANTED, min_size=4, max_size=8))
    def start(self, first: list[Wanted]) -> None:
        self.insert(first)
        self.promote(None)

    @rule(key=KEYS, limit=st.sampled_from([1, 2]))
    def park_and_claim(self, key: str, limit: int) -> None:
        self.promote(None)
        self.park_key(key, 10.0)
        self.claim(None, limit)
        self.promote(None)

    @rule(active=st.sampled_from([0, 1, 2, 3]), key=KEYS)
    def lower_and_claim(self, active: int, key: str) -> None:
        self.set_limit(key, None, None, None)
        self.promote(None)
        self.set_limit(key, active, None, None)
        self.claim(None, 5)

    @rule(burst=st.sampled_from([1, 3]), seconds=SECONDS)
    def rate_and_claim(self, burst: int, seconds: float) -> None:
        self.set_limit("z", None, 0.5, burst)
        for _ in range(2):
            self.promote(None)
            self.claim(None, 2)
            self.pass_time(seconds)

    def to_row(self, wanted: Wanted) -> JobRow:
        alone = replace(wanted, unique=None, limits=wanted.limits or ("x", "z"), max_crashes=5)
        return super().to_row(alone)


class RetentionMachine(StoreMachine):
    """The same with few verbs and no keys or limits, so that jobs and groups end and expire."""

    insert_again = renew = stage = pause = resume = finish_many = None  # type: ignore[assignment]
    pause_or_resume_group = pause_or_resume_queue = None  # type: ignore[assignment]
    set_limit = remove_limit = park_key = promote = expire = drain = None  # type: ignore[assignment]
    prune_limits = edit_limits = None  # type: ignore[assignment]

    @rule(ends=st.lists(ENDS, min_size=1, max_size=6))
    def run_some(self, ends: list[JobState]) -> None:
        """Claim and end a few, so that most jobs end before their time is over."""
        known = len(self.runs)
        self.claim(None, len(ends))
        for place, end in enumerate(ends[: len(self.runs) - known]):
            self.finish(place, end, 0.0, False, [])

    def to_row(self, wanted: Wanted) -> JobRow:
        groups = len(self.model.groups)
        group = wanted.group % groups if groups and wanted.group is not None else None
        return super().to_row(replace(wanted, unique=None, limits=(), delay=0.0, group=group))


class CircleMachine(StoreMachine):
    """The same with few verbs: jobs that follow each other in nested groups, so that circles of
    jobs that wait for one another would be met."""

    insert_again = renew = finish_many = cancel = delete = None  # type: ignore[assignment]
    pause_or_resume_group = pause_or_resume_queue = pause = resume = None  # type: ignore[assignment]
    set_limit = park_key = expire = set_retention = prune = None  # type: ignore[assignment]
    close_group = cancel_group = prune_limits = edit_limits = None  # type: ignore[assignment]

    @initialize(first=st.lists(WANTED, min_size=3, max_size=6))
    def start(self, first: list[Wanted]) -> None:
        for wanted in first:
            self.nest(wanted)

    @rule(wanted=WANTED)
    def nest(self, wanted: Wanted) -> None:
        """A job, perhaps of a group, runs and becomes the root of another."""
        self.insert([wanted])
        known = len(self.runs)
        self.claim(None, 5)
        for root, _ in self.runs[known:]:
            new = GroupRow(id=new_id(), root=root)
            assert self.run(self.store.create_group(new)).id == self.model.create_group(new)

    @invariant()
    def no_follower_waits_for_itself(self) -> None:
        for job in self.model.live():
            follower = self.model.follower_of(job)
            assert follower is None or follower.group not in self.model.groups_before(job)

    def to_row(self, wanted: Wanted) -> JobRow:
        ids = sorted(self.model.groups)
        running = [place for place, one in enumerate(ids) if not self.is_closing(one)]
        group = running[(wanted.group or 0) % len(running)] if running else None
        unique = wanted.unique or "m"
        alone = replace(wanted, unique=unique, mode="follow", tenant=None, limits=(), delay=0.0)
        return super().to_row(replace(alone, group=group))


SHARE = {LimitMachine: 3, RetentionMachine: 3, CircleMachine: 6}


@pytest.mark.requires("groups", "limits")
@pytest.mark.parametrize("kind", [StoreMachine, LimitMachine, RetentionMachine, CircleMachine])
@pytest.mark.long
def test_any_sequence_of_verbs_keeps_to_the_contract(
    store_name: str, make_store_url: Callable[[], str], kind: type[StoreMachine]
) -> None:
    run_machine(kind, make_store_url, EXAMPLES[store_name] // SHARE.get(kind, 1))


def run_machine(kind: type[StoreMachine], make_store_url: Callable[[], str], examples: int) -> None:
    machine = type("Machine", (kind,), {"make_url": staticmethod(make_store_url)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            suppress_health_check=list(HealthCheck),
        ),
    )
