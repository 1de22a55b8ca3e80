"""The model once more, with bounded queues and schedules: slots are counted here in plain seconds.

Of the other verbs only those are done that let jobs come and go, so that slots meet jobs of earlier
ones that wait, run and have ended, in queues that are full.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.builders import row
from tests.conformance.test_model import (
    EXAMPLES,
    QUEUES,
    SECONDS,
    WANTED,
    StoreMachine,
    Wanted,
    run_machine,
)
from windrow.queue.records import CatchUp, JobRow, OnFull, ScheduleRow
from windrow.queue.schedule import slot_id

pytestmark = pytest.mark.requires("schedules")

NAMES = st.sampled_from(["s0", "s1", "s2"])
POLICIES: st.SearchStrategy[CatchUp] = st.sampled_from(["one", "all", "skip"])
GRACE = 60  # seconds that a slot may be late and is not skipped


@dataclass(slots=True)
class MSchedule:
    row: ScheduleRow
    next_at: datetime
    last_at: datetime | None = None
    is_paused: bool = False

    def slot_after(self, moment: datetime) -> datetime:
        """Slots are the multiples of the interval."""
        every = self.row.every_seconds
        assert every is not None
        return datetime.fromtimestamp((moment.timestamp() // every + 1) * every, UTC)

    def begin(self, now: datetime) -> None:
        """With the first slot after now, and after the last one that was fired."""
        self.next_at = self.slot_after(max(now, self.last_at or now))

    def put(self, row: ScheduleRow, now: datetime) -> None:
        is_same = row.every_seconds == self.row.every_seconds
        self.row = row
        if not is_same:
            self.begin(now)

    def fire(self, now: datetime) -> list[datetime]:
        """The slots to be fired, which the schedule then has behind it."""
        slots = []
        while self.next_at <= now:
            slots.append(self.next_at)
            self.next_at = self.slot_after(self.next_at)
        if self.row.catch_up == "one":
            slots = slots[-1:]
        elif self.row.catch_up == "skip":
            slots = [slot for slot in slots if slot >= now - timedelta(seconds=GRACE)]
        self.last_at = slots[-1] if slots else self.last_at
        return slots


class ScheduleMachine(StoreMachine):
    insert_again = renew = finish_many = None  # type: ignore[assignment]
    create_group = close_group = cancel_group = pause_or_resume_group = None  # type: ignore[assignment]
    set_limit = remove_limit = park_key = expire = prune_limits = None  # type: ignore[assignment]
    edit_limits = set_retention = prune = drain = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.schedules: dict[str, MSchedule] = {}

    @initialize(name=NAMES, wanted=WANTED)
    def start_with_a_schedule(self, name: str, wanted: Wanted) -> None:
        self.put_schedule(name, 31.0, "all", wanted)

    # bounds

    @rule(
        name=QUEUES,
        max_depth=st.sampled_from([None, 1, 2, 4]),
        on_full=st.sampled_from(["reject", "drop_oldest"]),
    )
    def set_queue(self, name: str, max_depth: int | None, on_full: OnFull) -> None:
        self.run(self.store.set_queue(name, max_depth, on_full))
        self.model.bounds.pop(name, None)
        if max_depth is not None:
            self.model.bounds[name] = max_depth, on_full

    @rule(
        name=QUEUES,
        on_full=st.sampled_from(["reject", "drop_oldest", "drop_oldest"]),
        wanted=st.lists(WANTED, min_size=3, max_size=5),
    )
    def fill(self, name: str, on_full: OnFull, wanted: list[Wanted]) -> None:
        """More than there is room for."""
        self.set_queue(name, 4, on_full)
        for some in (wanted[:2], wanted[2:]):
            self.insert([replace(one, queue=name, unique=None) for one in some])

    # schedules

    @rule(name=NAMES, every=st.sampled_from([31.0, 47.0, 90.0]), catch_up=POLICIES, wanted=WANTED)
    def put_schedule(self, name: str, every: float, catch_up: CatchUp, wanted: Wanted) -> None:
        new = ScheduleRow(
            name=name, every_seconds=every, catch_up=catch_up, job=self.template(name, wanted)
        )
        self.run(self.store.put_schedule(new))
        if name in self.schedules:
            self.schedules[name].put(new, self.model.now)
        else:
            self.schedules[name] = MSchedule(new, self.model.now)
            self.schedules[name].begin(self.model.now)

    def template(self, name: str, wanted: Wanted) -> JobRow:
        """A key of its own: which of two schedules goes first is left open."""
        return self.to_row(replace(wanted, unique=wanted.unique and name, delay=0.0))

    @precondition(lambda self: self.schedules)
    @rule(pick=st.integers(0, 2))
    def pause_or_resume_schedule(self, pick: int) -> None:
        schedule = self.pick_schedule(pick)
        schedule.is_paused = not schedule.is_paused
        if not schedule.is_paused:
            schedule.begin(self.model.now)
        verb = self.store.pause_schedule if schedule.is_paused else self.store.resume_schedule
        assert self.run(verb(schedule.row.name)).is_paused == schedule.is_paused

    @precondition(lambda self: self.schedules)
    @rule(pick=st.integers(0, 2))
    def pause_or_resume_again(self, pick: int) -> None:
        """Which changes nothing: not what is due, and not when a pause ends."""
        schedule = self.pick_schedule(pick)
        verb = self.store.pause_schedule if schedule.is_paused else self.store.resume_schedule
        self.run(verb(schedule.row.name))

    @precondition(lambda self: self.schedules)
    @rule(pick=st.integers(0, 2))
    def delete_schedule(self, pick: int) -> None:
        name = self.pick_schedule(pick).row.name
        del self.schedules[name]
        assert self.run(self.store.delete_schedule(name))
        assert not self.run(self.store.delete_schedule(name))

    @rule(seconds=st.just(0.0) | SECONDS)
    def fire(self, seconds: float) -> None:
        """A slot's job is like the template's, and taken however full its queue is."""
        self.pass_time(3 * seconds)
        expected = copy.deepcopy(self.model)
        rows = [
            job_of(schedule.row, slot)
            for schedule in self.schedules.values()
            if not schedule.is_paused
            for slot in schedule.fire(expected.now)
        ]
        outcomes = [self.follow_up(expected, new) for new in rows]
        expected.settle()
        fired = self.run(self.store.fire_schedules())
        self.model = expected

        assert Counter((one.outcome, one.id) for one in fired) == Counter(outcomes)
        self.learn_seqs(fired)
        assert self.run(self.store.fire_schedules()) == []

    @rule(name=NAMES, catch_up=POLICIES, wanted=WANTED, seconds=SECONDS)
    def put_and_fire(self, name: str, catch_up: CatchUp, wanted: Wanted, seconds: float) -> None:
        """Slots that are late, by each policy."""
        self.put_schedule(name, 31.0, catch_up, wanted)
        self.fire(seconds)

    def pick_schedule(self, pick: int) -> MSchedule:
        return list(self.schedules.values())[pick % len(self.schedules)]

    @invariant()
    def schedules_agree(self) -> None:
        found = {one.name: one for one in self.run(self.store.list_schedules())}
        assert found.keys() == self.schedules.keys()
        for name, schedule in self.schedules.items():
            real = found[name]
            assert (real.next_at, real.last_at) == (schedule.next_at, schedule.last_at)
            assert (real.is_paused, real.catch_up) == (schedule.is_paused, schedule.row.catch_up)
            assert real.job == schedule.row.job

    @invariant()
    def bounds_are_told(self) -> None:
        found = {one.name: one for one in self.run(self.store.list_queues())}
        for name, (max_depth, on_full) in self.model.bounds.items():
            assert (found[name].max_depth, found[name].on_full) == (max_depth, on_full)


def job_of(schedule: ScheduleRow, slot: datetime) -> JobRow:
    template = schedule.job
    return row(
        id=slot_id(schedule.name, slot),
        run_at=slot,
        queue=template.queue,
        priority=template.priority,
        unique=template.unique,
        on_conflict=template.on_conflict,
        tenant=template.tenant,
        max_crashes=template.max_crashes,
        limits=template.limits,
        max_hold_seconds=template.max_hold_seconds,
        retention_seconds=template.retention_seconds,
    )


@pytest.mark.long
def test_any_sequence_of_verbs_keeps_to_bounds_and_schedules(
    store_name: str, make_store_url: Callable[[], str]
) -> None:
    run_machine(ScheduleMachine, make_store_url, EXAMPLES[store_name] // 3)
