"""Slots: every wall-clock time once, in spring and in autumn; intervals that do not drift."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import raw, row
from windrow.errors import InvalidJob, InvalidSchedule
from windrow.ids import new_id
from windrow.queue.records import Schedule, Timing
from windrow.queue.schedule import (
    SLOTS_PER_CALL,
    check_catch_up,
    check_timing,
    due_slots,
    first_slot,
    job_of,
    latest_slot,
    next_slot,
    plan_firings,
    slot_id,
)

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def at(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=moment.tzinfo or UTC)


def slots(timing: Timing, start: str, end: str) -> list[str]:
    """Slots in (start, end], as the zone's wall clock shows them, with the offset from UTC."""
    zone, slot, found = ZoneInfo(timing.timezone), at(start), []
    while (slot := next_slot(timing, slot)) <= at(end):
        assert slot.tzinfo is UTC
        found.append(slot.astimezone(zone).strftime("%d %H:%M%z").removesuffix("00"))
    return found


def cron(line: str, zone: str = "UTC") -> Timing:
    return Timing(cron=line, timezone=zone)


def every(seconds: float) -> Timing:
    return Timing(every_seconds=seconds)


@pytest.mark.parametrize(
    ("zone", "line", "start", "expected"),
    [
        # Skipped hours: 02:00 to 03:00, and on Lord Howe Island half of that.
        (BERLIN, "30 2 * * *", "2026-03-28", ["28 02:30+01", "29 03:00+02", "30 02:30+02"]),
        (NEW_YORK, "30 2 * * *", "2026-03-07T05", ["07 02:30-05", "08 03:00-04", "09 02:30-04"]),
        (
            LORD_HOWE,
            "15 2 * * *",
            "2026-10-02T14",
            ["03 02:15+1030", "04 02:30+11", "05 02:15+11"],
        ),
        # Hours that come twice: the first time counts.
        (BERLIN, "30 2 * * *", "2026-10-24", ["24 02:30+02", "25 02:30+02", "26 02:30+01"]),
        (NEW_YORK, "30 1 * * *", "2026-10-31T04", ["31 01:30-04", "01 01:30-04", "02 01:30-05"]),
        (
            LORD_HOWE,
            "45 1 * * *",
            "2026-04-03T14",
            ["04 01:45+11", "05 01:45+11", "06 01:45+1030"],
        ),
        # Around them, and at their edges.
        (BERLIN, "0 3 * * *", "2026-03-28", ["28 03:00+01", "29 03:00+02", "30 03:00+02"]),
        (BERLIN, "0 2 * * *", "2026-10-23T12", ["24 02:00+02", "25 02:00+02", "26 02:00+01"]),
        (BERLIN, "0 3 * * *", "2026-10-24", ["24 03:00+02", "25 03:00+01", "26 03:00+01"]),
    ],
)
def test_daily_slot_comes_once_a_day_through_every_change(
    zone: str, line: str, start: str, expected: list[str]
) -> None:
    end = (at(start) + timedelta(days=3)).isoformat()

    assert slots(cron(line, zone), start, end) == expected


def test_slots_of_a_skipped_hour_come_together_right_after_it() -> None:
    night = ("2026-03-28T23:00", "2026-03-29T02:00")
    for line in ("*/20 2 * * *", "0,30 2 * * *", "* 2 * * *", "0 2,3 * * *"):
        assert slots(cron(line, BERLIN), *night) == ["29 03:00+02"]


def test_slots_of_an_hour_that_comes_twice_come_in_its_first_time() -> None:
    night = ("2026-10-24T22:00", "2026-10-25T03:00")
    first = ["25 02:00+02", "25 02:30+02"]
    assert slots(cron("*/30 2 * * *", BERLIN), *night) == first
    assert slots(cron("*/30 2,3 * * *", BERLIN), *night) == [*first, "25 03:00+01", "25 03:30+01"]


def test_asked_while_an_hour_comes_again_the_next_slot_lies_ahead() -> None:
    again = at("2026-10-25T01:30")  # 02:30 for the second time in Berlin
    assert next_slot(cron("45 2 * * *", BERLIN), again) == at("2026-10-26T01:45")
    assert next_slot(cron("45 2,3 * * *", BERLIN), again) == at("2026-10-25T02:45")
    assert next_slot(cron("45 * * * *", BERLIN), again) == at("2026-10-25T01:45")


def test_every_other_hour_keeps_to_the_wall_clock() -> None:
    line = cron("0 */2 * * *", BERLIN)
    assert slots(line, "2026-03-28T23:00", "2026-03-29T04:00") == [
        *("29 03:00+02", "29 04:00+02", "29 06:00+02")
    ]
    assert slots(line, "2026-10-24T22:00", "2026-10-25T05:00") == [
        *("25 02:00+02", "25 04:00+01", "25 06:00+01")
    ]


@pytest.mark.parametrize("night", ["2026-03-29T00:00", "2026-10-25T00:00"])
@pytest.mark.parametrize(("line", "step"), [("*/15 * * * *", 15), ("@hourly", 60)])
def test_lines_that_name_no_hour_go_by_real_time(night: str, line: str, step: int) -> None:
    slot = at(night)
    for _ in range(12):
        following = next_slot(cron(line, BERLIN), slot)
        assert following - slot == timedelta(minutes=step)
        slot = following


def test_quarters_of_an_hour_go_on_through_a_change_by_half_an_hour() -> None:
    assert slots(cron("*/15 * * * *", LORD_HOWE), "2026-04-04T14:15", "2026-04-04T15:45") == [
        *("05 01:30+11", "05 01:45+11", "05 01:30+1030", "05 01:45+1030"),
        *("05 02:00+1030", "05 02:15+1030"),
    ]


@pytest.mark.parametrize(
    ("line", "start", "expected"),
    [
        ("0 0 29 2 *", "2026-01-01", "2028-02-29"),
        ("0 0 31 * *", "2026-01-31", "2026-03-31"),
        ("0 0 L * *", "2026-02-01", "2026-02-28"),
        ("0 0 L * *", "2028-02-01", "2028-02-29"),
        ("0 0 LW * *", "2026-05-01", "2026-05-29"),
        ("0 9 * * MON-FRI", "2026-11-13T09:00", "2026-11-16T09:00"),
        ("0 0 * * 7", "2026-11-09", "2026-11-15"),
        ("0 0 * * sun", "2026-11-09", "2026-11-15"),
        ("0 0 * * 2#2", "2026-11-01", "2026-11-10"),
        ("0 0 13 * FRI", "2026-11-01", "2026-11-06"),
        ("*/15 * * * *", "2026-11-15T23:46", "2026-11-16"),
        ("59 23 31 12 *", "2026-12-31T23:59", "2027-12-31T23:59"),
        ("@yearly", "2026-01-01", "2027-01-01"),
        (" @Daily ", "2026-01-01T00:00:01", "2026-01-02"),
        ("@weekly", "2026-11-15", "2026-11-22"),
        ("@monthly", "2026-11-15", "2026-12-01"),
    ],
)
def test_next_slot_of_a_line(line: str, start: str, expected: str) -> None:
    assert next_slot(cron(line), at(start)) == at(expected)


def test_slot_is_later_than_the_moment_to_the_microsecond() -> None:
    noon = at("2026-01-01T12:00")
    tick = timedelta(microseconds=1)
    for timing, length in ((cron("* * * * *"), 60), (cron("0 12 * * *"), 86_400), (every(10), 10)):
        assert next_slot(timing, noon - tick) == noon
        assert next_slot(timing, noon) == noon + timedelta(seconds=length)


@pytest.mark.parametrize("seconds", [1, 1.5, 7, 60, 3600, 86_400, 0.1 * 33])
def test_intervals_do_not_drift(seconds: float) -> None:
    step = timedelta(seconds=seconds)
    slot = start = next_slot(every(seconds), at("2026-01-01T00:00:00.123456"))
    for _ in range(1000):
        # Somebody is late each time, and by another amount.
        slot = next_slot(every(seconds), slot + step / 3)
    assert slot == start + 1000 * step


def test_intervals_of_a_whole_hour_begin_on_the_hour() -> None:
    assert next_slot(every(3600), at("2026-01-01T09:20")) == at("2026-01-01T10:00")
    assert next_slot(every(86_400), at("2026-01-01T09:20")) == at("2026-01-02")


LINES = ["* * * * *", "*/7 * * * *", "30 2 * * *", "*/20 1-3 * * *", "0 0 L * *", "0 */5 * * 1,3"]
ZONES = ["UTC", BERLIN, NEW_YORK, LORD_HOWE, "Africa/Cairo", "Pacific/Chatham"]


@given(
    st.sampled_from(LINES),
    st.sampled_from(ZONES),
    st.integers(0, 365 * 86_400),
    st.integers(1, 40),
)
def test_walking_and_jumping_find_the_same_slots(
    line: str, zone: str, seconds: int, steps: int
) -> None:
    timing, start = cron(line, zone), at("2026-01-01") + timedelta(seconds=seconds)
    walked = [next_slot(timing, start)]
    for _ in range(steps):
        walked.append(next_slot(timing, walked[-1]))
    assert walked == sorted(set(walked))
    for earlier, later in pairwise(walked):
        assert next_slot(timing, earlier + (later - earlier) / 2) == later
        assert next_slot(timing, later - timedelta(microseconds=1)) == later
    assert latest_slot(timing, walked[0], walked[-1]) == walked[-1]
    just_before = walked[-1] - timedelta(microseconds=1)
    assert latest_slot(timing, walked[0], just_before) == walked[-2]


def test_latest_of_half_a_million_slots_is_found_at_once() -> None:
    now = at("2026-12-30T05:05:05")
    assert latest_slot(cron("* * * * *"), at("2026-01-01"), now) == at("2026-12-30T05:05")
    assert latest_slot(cron("* * * 1 *"), at("2026-01-01"), now) == at("2026-01-31T23:59")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, "UTC", None), "either every or cron"),
        (("* * * * *", "UTC", 60.0), "either every or cron"),
        ((None, "UTC", 0.999), "at least 1 second"),
        (("* * * *", "UTC", None), "five fields"),
        (("* * * * * *", "UTC", None), "five fields"),
        (("", "UTC", None), "five fields"),
        (("@reboot", "UTC", None), "five fields"),
        (("61 * * * *", "UTC", None), "bad minute"),
        (("* 24 * * *", "UTC", None), "bad hour"),
        (("* * * * FOO", "UTC", None), "bad day-of-week"),
        (("0 0 30 2 *", "UTC", None), "bad day-of-month"),
        (("0 0 * 2 MON#5,TUE#5", "Mars/Olympus", None), "no time zone named 'Mars/Olympus'"),
        (("* * * * *", "Europe", None), "no time zone"),
        (("* * * * *", "../etc/passwd", None), "no time zone"),
        (("* * * * *", "", None), "no time zone"),
        (("* * * * *", "localtime", None), "no time zone"),
        (("* * * * *", "\x00", None), "no time zone"),
        (("* * * * *", "a" * 5000, None), "no time zone"),
        ((None, None, 60.0), "must be a name"),
        ((5, "UTC", None), "must be a text"),
        (("*," * 200 + "* * * * *", "UTC", None), "up to 255 characters"),
    ],
)
def test_bad_timings_are_explained(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message) as refused:
        check_timing(*arguments)
    assert isinstance(refused.value, InvalidJob)


def test_unknown_policies_are_explained() -> None:
    with pytest.raises(InvalidSchedule, match="one of one, all, skip"):
        check_catch_up("none")


def test_end_of_the_calendar_is_explained() -> None:
    for timing in (every(86_400), cron("0 0 1 1 *")):
        with pytest.raises(InvalidSchedule):
            next_slot(timing, at("9999-12-31T23:59:59"))


def schedule(name: str = "tidy", **fields: Any) -> Schedule:
    usual: dict[str, Any] = {
        "every_seconds": None if "cron" in fields else 60.0,
        "job": row(),
        "is_paused": False,
        "next_at": at("2026-01-01T12:00"),
        "last_at": None,
        "created_at": at("2026-01-01"),
    }
    return Schedule(name=name, **(usual | fields))


@pytest.mark.parametrize(
    ("catch_up", "fired", "next_at"),
    [
        ("one", ["12:10"], "12:11"),
        ("all", [f"12:{minute:02}" for minute in range(11)], "12:11"),
        ("skip", ["12:10"], "12:11"),
    ],
)
def test_missed_slots_are_caught_up_by_policy(
    catch_up: str, fired: list[str], next_at: str
) -> None:
    firing = due_slots(schedule(catch_up=catch_up), at("2026-01-01T12:10:30"), 1000)

    assert [slot.strftime("%H:%M") for slot in firing.slots] == fired
    assert firing.next_at == at(f"2026-01-01T{next_at}")


@pytest.mark.parametrize(("late", "fired"), [(0, 1), (60, 1), (60.000001, 0), (3599, 0), (3600, 1)])
def test_skipping_allows_for_a_minute(late: float, fired: int) -> None:
    hourly = schedule(every_seconds=3600.0, catch_up="skip")
    firing = due_slots(hourly, hourly.next_at + timedelta(seconds=late), 1000)

    assert len(firing.slots) == fired
    assert firing.next_at == at("2026-01-01T13:00" if late < 3600 else "2026-01-01T14:00")


def test_what_is_too_much_for_one_call_is_left_for_the_next() -> None:
    firing = due_slots(schedule(catch_up="all"), at("2026-01-01T12:10"), 4)

    assert [slot.minute for slot in firing.slots] == [0, 1, 2, 3]
    assert firing.next_at == at("2026-01-01T12:04")


def test_schedules_share_a_call_evenly() -> None:
    due = [schedule(str(n), catch_up="all") for n in range(10)]
    planned = plan_firings(due, at("2026-02-01"))

    assert [len(firing.slots) for _, firing in planned] == [SLOTS_PER_CALL // 10] * 10


def test_schedule_that_cannot_be_computed_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lost = schedule("lost", cron="0 0 * * *", timezone="Mars/Olympus")
    planned = plan_firings([lost, schedule("tidy")], at("2026-01-01T12:00"))

    assert [one.name for one, _ in planned] == ["tidy"]
    assert "schedule 'lost' cannot be fired" in caplog.text


def test_first_slot_lies_after_the_last_one_fired() -> None:
    now, last_at = at("2026-01-01T12:00"), at("2026-01-01T12:05")
    assert first_slot(every(60), now) == at("2026-01-01T12:01")
    assert first_slot(every(60), now, last_at) == at("2026-01-01T12:06")


def test_job_of_a_slot_follows_from_name_and_slot() -> None:
    slot = at("2026-01-01T12:00")
    one, again = job_of(schedule(), slot), job_of(schedule(job=row()), slot)
    others = {job_of(schedule("b"), slot).id, job_of(schedule(), slot + timedelta(seconds=1)).id}

    assert one.id == again.id == slot_id("tidy", slot)
    assert len({one.id, *others}) == 3
    assert one.may_exist


def test_ids_of_slots_sort_by_time_among_those_of_other_jobs() -> None:
    made = [slot_id("tidy", at("2026-01-01") + timedelta(minutes=n)) for n in range(100)]
    assert made == sorted(made)
    assert {uuid.UUID(one).version for one in made} == {8}
    assert {uuid.UUID(one).variant for one in made} == {uuid.RFC_4122}
    now = datetime.now(UTC)
    second = timedelta(seconds=1)
    assert slot_id("tidy", now - second) < new_id() < slot_id("tidy", now + second)


def test_headers_of_the_template_stay_beside_those_of_the_slot() -> None:
    mine = row(headers={"trace": "1", "slot": "mine"})
    job = job_of(schedule(job=mine), at("2026-01-01T12:00"))

    assert job.headers is not None
    assert msgspec.json.decode(job.headers) == {
        "trace": "1",
        "schedule": "tidy",
        "slot": "2026-01-01T12:00:00+00:00",
    }
    assert job.payload == raw(None)


def test_jitter_is_the_same_for_everybody_and_spread_evenly() -> None:
    spread = schedule(jitter_seconds=60.0)
    moments = [spread.next_at + timedelta(minutes=n) for n in range(500)]
    delays = []
    for slot in moments:
        run_at = job_of(spread, slot).run_at
        assert run_at is not None
        assert run_at == job_of(spread, slot).run_at
        delays.append((run_at - slot).total_seconds())
    assert 0 <= min(delays) < 5
    assert 55 < max(delays) <= 60
    assert 25 < sum(delays) / len(delays) < 35
    assert job_of(schedule(), moments[0]).run_at == moments[0]
