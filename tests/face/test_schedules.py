"""Schedules by the public face."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from windrow import NewJob, Queue
from windrow.clock import FakeClock
from windrow.errors import InvalidJob, InvalidSchedule, PayloadTooLarge, ScheduleNotFound
from windrow.queue.job import JobState


async def test_a_schedule_enqueues_a_job_for_each_slot(queue: Queue, clock: FakeClock) -> None:
    made = await queue.schedule(
        "nightly",
        "report",
        {"n": 1},
        cron="30 2 * * *",
        timezone="Europe/Berlin",
        queue="reports",
        headers={"trace": "1"},
    )
    assert made.next_at == datetime(2026, 1, 2, 1, 30, tzinfo=UTC)
    for day in (2, 3):
        clock.advance(86_400)
        [job] = (lease := await queue.claim("reports")).jobs
        assert (job.kind, job.payload) == ("report", {"n": 1})
        slot = f"2026-01-0{day}T01:30:00+00:00"
        assert job.headers == {"trace": "1", "schedule": "nightly", "slot": slot}
        await lease.complete(job)
    assert not await queue.claim("reports")


async def test_tending_fires_and_stages_what_is_due(queue: Queue, clock: FakeClock) -> None:
    await queue.schedule("tidy", "tidy", every=timedelta(minutes=1))
    await queue.schedule("late", "late", every=60, jitter=5)
    assert await queue.tend() == 0
    clock.advance(60)
    assert await queue.tend() == 2
    clock.advance(5)
    assert await queue.tend() == 1
    assert {job.kind for job in (await queue.claim(limit=5)).jobs} == {"tidy", "late"}


async def test_jobs_of_a_schedule_keep_to_their_limits(queue: Queue, clock: FakeClock) -> None:
    await queue.set_limit("api", active=1)
    made = await queue.schedule(
        "poll", "poll", every=60, catch_up="all", limits=["api", "acme"], max_hold=90
    )
    assert (made.job.limits, made.job.max_hold_seconds) == (("api", "acme"), 90)
    [listed] = await queue.schedules()
    assert listed.job == made.job
    clock.advance(120)
    [job] = (await queue.claim(limit=5, seconds=600)).jobs
    assert (job.limits, job.max_hold_seconds) == (("api", "acme"), 90)
    assert (await queue.counts())[JobState.HELD] == 1
    clock.advance(91)
    await queue.tend()
    [failed] = await queue.list(state=JobState.FAILED)
    assert failed.error is not None
    assert failed.error.startswith("held too long: waited 90 s for room under api (limit 1 active)")


def test_a_schedule_takes_every_field_of_a_job_but_those_its_slots_decide() -> None:
    taken = set(inspect.signature(Queue.schedule).parameters)
    decided = {"id", "delay", "run_at", "group", "group_key"}
    assert {*NewJob.__struct_fields__} - taken == decided


async def test_starting_the_application_again_changes_nothing(
    queue: Queue, clock: FakeClock
) -> None:
    first = await queue.schedule("tidy", "tidy", every=60)
    clock.advance(61)
    again = await queue.schedule("tidy", "tidy", every=60)
    assert (again.next_at, again.created_at) == (first.next_at, first.created_at)
    assert await queue.tend() == 1


async def test_schedules_are_listed_paused_resumed_and_removed(
    queue: Queue, clock: FakeClock
) -> None:
    await queue.schedule("b", "tidy", every=60)
    await queue.schedule("a", "tidy", cron="@daily")
    assert [one.name for one in await queue.schedules()] == ["a", "b"]
    assert (await queue.pause_schedule("b")).is_paused
    clock.advance(600)
    assert await queue.tend() == 0
    assert not (await queue.resume_schedule("b")).is_paused
    assert await queue.tend() == 0
    clock.advance(60)
    assert await queue.tend() == 1
    assert await queue.unschedule("b")
    assert not await queue.unschedule("b")
    assert [one.name for one in await queue.schedules()] == ["a"]
    for verb in (queue.pause_schedule, queue.resume_schedule):
        with pytest.raises(ScheduleNotFound, match="no such schedule: b"):
            await verb("b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either every or cron"),
        ({"every": 60, "cron": "* * * * *"}, "either every or cron"),
        ({"every": 0.5}, "at least 1 second"),
        ({"every": timedelta(0)}, "at least 1 second"),
        ({"every": -1}, "every must be between"),
        ({"every": "1h"}, "every must be seconds"),
        ({"every": float("nan")}, "every must be between"),
        ({"every": 60, "jitter": -1}, "jitter must be between"),
        ({"every": 60, "catch_up": "none"}, "catch_up must be one of"),
        ({"cron": "every day"}, "five fields"),
        ({"cron": "0 25 * * *"}, "bad hour"),
        ({"cron": "* * * * *", "timezone": "Europe/Bärlin"}, "no time zone named"),
        ({"cron": "* * * * *", "timezone": None}, "time zone must be a name"),
        ({"every": 60, "name": ""}, "the name of the schedule must be"),
        ({"every": 60, "name": "a\x00"}, "NUL character"),
    ],
)
async def test_bad_schedules_are_explained_and_not_written(
    queue: Queue, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        await queue.schedule(**{"name": "tidy", "kind": "tidy"} | options)
    assert await queue.schedules() == []


async def test_the_job_of_a_schedule_is_checked_like_any_other(queue: Queue) -> None:
    with pytest.raises(InvalidJob, match="the kind must be"):
        await queue.schedule("tidy", "", every=60)
    with pytest.raises(InvalidJob, match="needs a unique key"):
        await queue.schedule("tidy", "tidy", every=60, on_conflict="follow")
    with pytest.raises(PayloadTooLarge):
        await Queue(queue.store, limits=type(queue._limits)(10, 10)).schedule(
            "tidy", "tidy", "x" * 100, every=60
        )
    assert await queue.schedules() == []


def test_the_blocking_queue_has_schedules_too(store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        queue.schedule("tidy", "tidy", every=3600)
        assert [one.name for one in queue.schedules()] == ["tidy"]
        assert queue.unschedule("tidy")
