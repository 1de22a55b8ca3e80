"""Schedules: every slot is fired once, whoever asks and whatever the clock does."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import cycle, repeat
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pytest

from tests.builders import EVERYTHING, add, claim_one, complete, counts, get, make_group, row
from tests.conftest import OpenAnother
from tests.faults import FaultyStore
from windrow.clock import Clock, FakeClock
from windrow.errors import InvalidSchedule, ScheduleNotFound, StoreUnavailable
from windrow.queue.job import Job, JobState
from windrow.queue.records import Inserted, Schedule, ScheduleRow
from windrow.queue.schedule import SLOTS_PER_CALL, slot_id
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("schedules")

MINUTE, HOUR = 60, 3600
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)  # where the fake clock begins


def schedule_row(name: str = "tidy", *, job: dict[str, Any] | None = None, **fields: Any):
    if "cron" not in fields:
        fields.setdefault("every_seconds", float(MINUTE))
    return ScheduleRow(name=name, job=row(**(job or {})), **fields)


async def put(store: Store, name: str = "tidy", **fields: Any) -> Schedule:
    return await store.put_schedule(schedule_row(name, **fields))


async def only(store: Store) -> Schedule:
    [schedule] = await store.list_schedules()
    return schedule


async def slots(store: Store, name: str = "tidy") -> list[str]:
    """The slots that have jobs, as times of the day, in order."""
    jobs = await store.list_jobs(EVERYTHING, limit=100_000)
    found = [job.headers["slot"] for job in jobs if job.headers.get("schedule") == name]
    return [slot[11:19] for slot in sorted(found)]


def outcomes(fired: Iterable[Inserted]) -> list[str]:
    return [one.outcome for one in fired]


async def test_new_schedule_waits_for_its_first_slot(store: Store, clock: FakeClock) -> None:
    clock.advance(15)
    made = await put(store)
    assert (made.next_at, made.last_at, made.is_paused) == (
        NOON + timedelta(minutes=1),
        None,
        False,
    )
    assert made.created_at == clock.now()
    assert await store.fire_schedules() == []
    clock.advance(45)
    assert outcomes(await store.fire_schedules()) == ["inserted"]
    assert await store.fire_schedules() == []


async def test_fired_job_is_made_like_the_template(store: Store, clock: FakeClock) -> None:
    template = {
        "kind": "report",
        "payload": {"n": 1.50, "ü": ["猫"]},
        "queue": "reports",
        "priority": 9,
        "headers": {"trace": "1"},
        "tags": ("a", "b"),
        "tenant": "acme",
        "max_attempts": 2,
        "max_crashes": 3,
        "lease_seconds": 90,
        "retention_seconds": 5,
        "limits": ("acme", "api"),
        "max_hold_seconds": 60,
    }
    await put(store, job=template)
    clock.advance(90)
    [fired] = await store.fire_schedules()
    slot = NOON + timedelta(minutes=1)
    job = await get(store, slot_id("tidy", slot))
    assert (fired.id, fired.state, job.run_at) == (job.id, JobState.HELD, slot)
    assert job.created_at == clock.now()
    assert job.headers == {"trace": "1", "schedule": "tidy", "slot": slot.isoformat()}
    assert job.payload == template["payload"]
    same = ("kind", "queue", "priority", "tags", "tenant", "max_attempts", "max_crashes")
    for name in (*same, "lease_seconds", "retention_seconds", "limits", "max_hold_seconds"):
        assert getattr(job, name) == template[name], name
    assert await store.promote_jobs() == 1
    assert (await claim_one(store, "reports")).id == job.id


async def test_schedules_are_listed_by_name_as_they_were_put(store: Store) -> None:
    for name in ("b", "ä", "B", "a"):
        await put(store, name, jitter_seconds=1.5, catch_up="skip", job={"kind": name})
    await put(store, "c", cron="0 3 * * *", timezone="Europe/Berlin")
    found = await store.list_schedules()
    assert [one.name for one in found] == ["B", "a", "b", "c", "ä"]
    assert [(one.job.kind, one.jitter_seconds, one.catch_up) for one in found][1] == (
        *("a", 1.5, "skip"),
    )
    by_cron = found[3]
    assert (by_cron.cron, by_cron.timezone, by_cron.every_seconds) == (
        *("0 3 * * *", "Europe/Berlin", None),
    )
    assert by_cron.next_at == datetime(2026, 1, 2, 2, tzinfo=UTC)


async def test_putting_the_same_timing_again_keeps_the_slot(store: Store, clock: FakeClock) -> None:
    first = await put(store)
    clock.advance(90)
    again = await put(store, job={"kind": "other"}, jitter_seconds=0.5, catch_up="all")
    assert (again.next_at, again.created_at) == (first.next_at, first.created_at)
    [fired] = await store.fire_schedules()
    assert (await get(store, fired.id)).kind == "other"


async def test_putting_another_timing_begins_anew(store: Store, clock: FakeClock) -> None:
    await put(store)
    clock.advance(90)
    changed = await put(store, every_seconds=float(HOUR))
    assert changed.next_at == NOON + timedelta(hours=1)
    assert await store.fire_schedules() == []
    by_cron = await put(store, cron="*/30 * * * *")
    assert by_cron.next_at == NOON + timedelta(minutes=30)
    elsewhere = await put(store, cron="*/30 * * * *", timezone="Asia/Kathmandu")
    assert elsewhere.next_at == NOON + timedelta(minutes=15)
    assert await only(store) == elsewhere


async def test_bad_timing_changes_nothing(store: Store) -> None:
    before = await put(store)
    for bad in ({"cron": "nonsense"}, {"cron": "0 0 * * *", "timezone": "Mars/Olympus"}):
        with pytest.raises(InvalidSchedule):
            await put(store, **bad)
        with pytest.raises(InvalidSchedule):
            await put(store, "new", **bad)
    assert await only(store) == before


async def test_deleted_schedule_fires_no_more(store: Store, clock: FakeClock) -> None:
    await put(store)
    clock.advance(MINUTE)
    await store.fire_schedules()
    assert await store.delete_schedule("tidy")
    assert not await store.delete_schedule("tidy")
    clock.advance(HOUR)
    assert await store.fire_schedules() == []
    assert await slots(store) == ["12:01:00"]


@pytest.mark.parametrize("name", ["nobody", "a\x00b", "\ud800"])
async def test_unknown_schedules_are_named(store: Store, name: str) -> None:
    for verb in (store.pause_schedule, store.resume_schedule):
        with pytest.raises(ScheduleNotFound) as missing:
            await verb(name)
        assert missing.value.name == name
    assert not await store.delete_schedule(name)


@pytest.mark.parametrize("catch_up", ["one", "all", "skip"])
async def test_slots_of_a_pause_are_not_fired(
    store: Store, clock: FakeClock, catch_up: str
) -> None:
    await put(store, catch_up=catch_up)
    clock.advance(MINUTE)
    await store.fire_schedules()
    assert (await store.pause_schedule("tidy")).is_paused
    clock.advance(10 * MINUTE)
    assert await store.fire_schedules() == []
    assert (await put(store, catch_up=catch_up)).is_paused
    resumed = await store.resume_schedule("tidy")
    assert (resumed.is_paused, resumed.next_at) == (False, NOON + timedelta(minutes=12))
    assert await store.fire_schedules() == []
    clock.advance(MINUTE)
    await store.fire_schedules()
    assert await slots(store) == ["12:01:00", "12:12:00"]


async def test_resuming_what_is_not_paused_leaves_what_is_due(
    store: Store, clock: FakeClock
) -> None:
    before = await put(store)
    clock.advance(MINUTE)
    assert await store.resume_schedule("tidy") == before
    assert len(await store.fire_schedules()) == 1


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("one", ["12:30:00"]),
        ("all", ["12:10:00", "12:20:00", "12:30:00"]),
        ("skip", []),
    ],
)
async def test_missed_slots_are_caught_up_by_policy(
    store: Store, clock: FakeClock, catch_up: str, expected: list[str]
) -> None:
    await put(store, every_seconds=10.0 * MINUTE, catch_up=catch_up)
    clock.advance(35 * MINUTE)
    fired = await store.fire_schedules()
    assert outcomes(fired) == ["inserted"] * len(expected)
    assert await slots(store) == expected
    schedule = await only(store)
    assert schedule.next_at == NOON + timedelta(minutes=40)
    assert schedule.last_at == (NOON + timedelta(minutes=30) if expected else None)
    clock.advance(5 * MINUTE + 30)
    await store.fire_schedules()
    assert await slots(store) == [*expected, "12:40:00"]


async def test_a_long_backlog_is_caught_up_call_by_call(store: Store, clock: FakeClock) -> None:
    await put(store, catch_up="all")
    await put(store, "other")
    clock.advance(1100 * MINUTE)
    first = await store.fire_schedules()
    assert len(first) == SLOTS_PER_CALL // 2 + 1
    second, third = await store.fire_schedules(), await store.fire_schedules()
    assert (len(second), len(third)) == (600, 0)
    assert len(set(await slots(store))) == 1100
    assert await slots(store, "other") == ["06:20:00"]


async def test_limit_counts_schedules_and_the_longest_due_go_first(
    store: Store, clock: FakeClock
) -> None:
    for n in range(5):
        await put(store, f"s{n}", every_seconds=float(50 - 10 * n))
    clock.advance(MINUTE)
    for expected in (["s4", "s3"], ["s2", "s1"], ["s0"], []):
        fired = [
            (await get(store, one.id)).headers["schedule"] for one in await store.fire_schedules(2)
        ]
        assert fired == expected


async def test_jitter_delays_the_job_and_not_the_slots(store: Store, clock: FakeClock) -> None:
    await put(store, jitter_seconds=30.0, every_seconds=float(HOUR))
    clock.advance(HOUR)
    [fired] = await store.fire_schedules()
    slot = NOON + timedelta(hours=1)
    assert fired.state == JobState.SCHEDULED
    assert fired.run_at is not None
    assert slot < fired.run_at <= slot + timedelta(seconds=30)
    assert (await only(store)).next_at == slot + timedelta(hours=1)
    clock.advance(30)
    assert await store.stage_jobs() == 1


@pytest.mark.parametrize(
    ("on_conflict", "expected"),
    [
        ("return", "existing"),
        ("reject", "rejected"),
        ("replace", "existing"),
        ("follow", "inserted"),
    ],
)
async def test_unique_key_keeps_a_running_job_from_being_doubled(
    store: Store, clock: FakeClock, on_conflict: str, expected: str
) -> None:
    await put(store, job={"unique": "tidy", "on_conflict": on_conflict})
    clock.advance(MINUTE)
    await store.fire_schedules()
    running = await claim_one(store)
    clock.advance(MINUTE)
    assert outcomes(await store.fire_schedules()) == [expected]
    assert (await counts(store)).get(JobState.READY, 0) == 0
    await complete(store, running)
    clock.advance(MINUTE)
    await store.fire_schedules()
    assert (await claim_one(store)).headers["schedule"] == "tidy"


async def test_key_held_in_a_group_does_not_stop_the_others(store: Store, clock: FakeClock) -> None:
    group = await make_group(store)
    await add(store, unique="taken", group=group.id)
    await put(store, "a", job={"unique": "taken", "on_conflict": "replace"})
    await put(store, "b")
    clock.advance(MINUTE)
    assert "inserted" in outcomes(await store.fire_schedules())
    assert await slots(store, "b") == ["12:01:00"]
    assert await slots(store, "a") == []


async def test_slot_that_was_fired_before_is_not_doubled_by_a_new_schedule(
    store: Store, clock: FakeClock
) -> None:
    await put(store)
    clock.advance(MINUTE)
    [fired] = await store.fire_schedules()
    await complete(store, await claim_one(store))
    await store.delete_schedule("tidy")
    clock.advance(-30)
    await put(store)
    clock.advance(30)
    [again] = await store.fire_schedules()
    assert (again.id, again.outcome, again.state) == (fired.id, "existing", JobState.COMPLETED)
    assert await slots(store) == ["12:01:00"]


async def test_clock_that_jumps_back_fires_no_slot_again(store: Store, clock: FakeClock) -> None:
    await put(store)
    clock.advance(10 * MINUTE)
    await store.fire_schedules()
    clock.advance(-5 * MINUTE)
    assert await store.fire_schedules() == []
    # Neither does another timing, nor a pause, begin before the last slot.
    assert (await put(store, every_seconds=30.0)).next_at == NOON + timedelta(seconds=630)
    await store.pause_schedule("tidy")
    assert (await store.resume_schedule("tidy")).next_at == NOON + timedelta(seconds=630)
    clock.advance(5 * MINUTE + 30)
    await store.fire_schedules()
    assert await slots(store) == ["12:10:00", "12:10:30"]


async def test_firing_whose_reply_was_lost_is_repeated(store: Store, clock: FakeClock) -> None:
    faulty = FaultyStore(store)
    await put(store, catch_up="all")
    clock.advance(3 * MINUTE)
    faulty.fail_before("fire_schedules", call=1)
    faulty.lose_reply("fire_schedules", call=2)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await faulty.fire_schedules()
    assert await faulty.fire_schedules() == []
    assert await slots(store) == ["12:01:00", "12:02:00", "12:03:00"]


async def test_of_many_who_fire_at_once_one_does(
    store: Store, open_another: OpenAnother, clock: FakeClock
) -> None:
    stores = [store, *[await open_another() for _ in range(3)]]
    for name in "abcdefgh":
        await put(store, name, catch_up="all")
    for _ in range(10):
        clock.advance(2 * MINUTE)
        fired = await asyncio.gather(*(stores[n % 4].fire_schedules(3) for n in range(12)))
        while rest := await store.fire_schedules():
            fired.append(rest)
        assert Counter(outcomes(one for some in fired for one in some)) == {"inserted": 16}
    for name in "abcdefgh":
        assert await slots(store, name) == [f"12:{minute:02}:00" for minute in range(1, 21)]


async def test_putting_at_once_makes_one_schedule(store: Store, open_another: OpenAnother) -> None:
    other = await open_another()
    await asyncio.gather(*((store, other)[n % 2].put_schedule(schedule_row()) for n in range(20)))
    assert (await only(store)).next_at == NOON + timedelta(minutes=1)


async def test_the_databases_own_clock_counts_when_none_is_given(
    open_another: OpenAnother,
) -> None:
    real = await open_another(Clock())
    before = datetime.now(UTC)
    made = await put(real, every_seconds=1.0, catch_up="one")
    assert before - timedelta(seconds=1) < made.next_at <= datetime.now(UTC) + timedelta(seconds=2)
    while not (fired := await real.fire_schedules()):
        await asyncio.sleep(0.05)
    assert outcomes(fired) == ["inserted"]
    last_at = (await only(real)).last_at
    assert last_at is not None
    assert last_at >= made.next_at


# Months through the changes of the clocks: what is fired, against a list made step by step. Every
# line, and every change, falls on a quarter of an hour; by the minute a month took 1.9 s.
QUARTER = timedelta(minutes=15)

NEW_YORK, BERLIN = ZoneInfo("America/New_York"), ZoneInfo("Europe/Berlin")
LINES = {
    "daily-ny": ("30 2 * * *", NEW_YORK),
    "daily-berlin": ("30 2 * * *", BERLIN),
    "twice-ny": ("0,45 1 * * *", NEW_YORK),
    "workdays-berlin": ("0 9 * * MON-FRI", BERLIN),
    "hourly-ny": ("0 * * * *", NEW_YORK),
    "half-hours-berlin": ("*/30 * * * *", BERLIN),
}


@cache
def expected_slots(name: str, start: datetime, days: int) -> list[str]:
    """The slots by looking at the wall clock each quarter: told apart from the code under test."""
    return [slot.isoformat() for slot in _slots(name, start, days)]


def _slots(name: str, start: datetime, days: int) -> Iterator[datetime]:
    zone = LINES[name][1]
    seen: set[datetime] = set()
    owed = False
    for number in range(1, timedelta(days=days) // QUARTER + 1):
        moment = start + number * QUARTER
        local = moment.astimezone(zone).replace(tzinfo=None)
        before = (moment - QUARTER).astimezone(zone).replace(tzinfo=None)
        passed = [before + (n + 1) * QUARTER for n in range((local - before) // QUARTER)]
        match name:
            case "hourly-ny" | "half-hours-berlin":
                if local.minute == 0 or (name.startswith("half") and local.minute == 30):
                    yield moment
                continue
            case "twice-ny":
                owed = any(one.hour == 1 and one.minute in (0, 45) for one in passed)
            case "workdays-berlin":
                owed = any((one.hour, one.minute) == (9, 0) and one.weekday() < 5 for one in passed)
            case _:
                owed = any((one.hour, one.minute) == (2, 30) for one in passed)
        if owed and local not in seen:
            yield moment
        seen.add(local)


@pytest.mark.parametrize(
    ("first_day", "changes"),
    [
        (datetime(2026, 3, 1, tzinfo=UTC), {"daily-ny": "08 07:00", "daily-berlin": "29 01:00"}),
        (datetime(2026, 10, 5, tzinfo=UTC), {"twice-ny": "01 05:45", "daily-berlin": "25 00:30"}),
    ],
)
@pytest.mark.long
async def test_a_month_with_two_changes_of_the_clocks(
    store: Store,
    open_another: OpenAnother,
    clock: FakeClock,
    first_day: datetime,
    changes: dict[str, str],
) -> None:
    """Asked now and then, also after days: what was missed is made up for."""
    jumps = cycle([1, 5, 180, 59, 1440, 37, 4000])
    await put_lines(store, clock, first_day, catch_up="all")
    jobs = await fire_for([store, await open_another()], clock, days=30, steps=jumps)
    assert_expected(jobs, first_day, 30, changes)


@pytest.mark.parametrize(
    ("first_day", "changes"),
    [
        (datetime(2026, 3, 7, tzinfo=UTC), {"daily-ny": "08 07:00"}),
        (datetime(2026, 3, 28, tzinfo=UTC), {"daily-berlin": "29 01:00"}),
        (datetime(2026, 10, 24, tzinfo=UTC), {"daily-berlin": "25 00:30"}),
        (datetime(2026, 10, 31, tzinfo=UTC), {"twice-ny": "01 05:45"}),
    ],
)
@pytest.mark.long
async def test_the_days_around_a_change_of_the_clocks(
    store: Store,
    open_another: OpenAnother,
    clock: FakeClock,
    first_day: datetime,
    changes: dict[str, str],
) -> None:
    """Asked all the time, so that nothing has to be made up for."""
    await put_lines(store, clock, first_day, catch_up="one")
    jobs = await fire_for([store, await open_another()], clock, days=3, steps=repeat(15))
    assert_expected(jobs, first_day, 3, changes)


async def put_lines(
    store: Store, clock: FakeClock, first_day: datetime, catch_up: Literal["one", "all"]
) -> None:
    clock.advance((first_day - clock.now()).total_seconds())
    for name, (line, zone) in LINES.items():
        await put(store, name, cron=line, timezone=zone.key, catch_up=catch_up)


async def fire_for(
    stores: Sequence[Store], clock: FakeClock, *, days: int, steps: Iterator[int]
) -> Sequence[Job]:
    """All the jobs, after so many days in steps of so many minutes, at each of which all fire."""
    left = days * 1440
    while left:
        step = min(next(steps), left)
        left -= step
        clock.advance(step * MINUTE)
        await asyncio.gather(*(one.fire_schedules() for one in stores))
    return await stores[0].list_jobs(EVERYTHING, limit=100_000)


def assert_expected(
    jobs: Sequence[Job], first_day: datetime, days: int, changes: dict[str, str]
) -> None:
    for name in LINES:
        mine = sorted(job.headers["slot"] for job in jobs if job.headers["schedule"] == name)
        assert mine == expected_slots(name, first_day, days), name
        if name in changes:
            assert any(changes[name] == slot[8:16].replace("T", " ") for slot in mine)
