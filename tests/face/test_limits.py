"""Limits and bounded queues as an application uses them: nobody calls promotion by hand."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from windrow import NewJob, Queue, Retry
from windrow.clock import FakeClock
from windrow.errors import InvalidJob, QueueFull
from windrow.queue.job import JobState
from windrow.queue.records import LimitInfo


async def test_limited_job_is_claimable_at_once_when_there_is_room(queue: Queue) -> None:
    made = await queue.enqueue(
        "fetch", limits=["api", "host", "api"], max_hold=timedelta(minutes=1)
    )

    assert made.limits == ("api", "host")
    assert made.max_hold_seconds == 60
    assert (await queue.get(made.id)).state is JobState.READY
    lease = await queue.claim()
    assert lease.jobs[0].limits == ("api", "host")


async def test_next_one_goes_when_one_has_ended(queue: Queue) -> None:
    await queue.set_limit("api", active=1)
    await queue.enqueue_many([NewJob("fetch", n, limits=["api"]) for n in range(4)])
    order = []
    while lease := await queue.claim(limit=4):
        [job] = lease.jobs
        order.append(job.payload)
        if len(order) == 2:
            await lease.finish(job, Retry("once more", after=0))
        elif len(order) == 3:
            await lease.finish_many([(job, Retry("later", after=100))])
        else:
            await lease.complete(job)

    assert order == [0, 1, 2, 3, 1]


async def test_claim_that_finds_too_little_lets_held_jobs_go(
    queue: Queue, clock: FakeClock
) -> None:
    await queue.set_limit("api", per_second=1)
    await queue.enqueue_many([NewJob("fetch", limits=["api"]) for _ in range(3)])
    assert len((await queue.claim(limit=9)).jobs) == 1
    clock.advance(0.5)
    assert not await queue.claim(limit=9)
    clock.advance(0.5)
    assert len((await queue.claim(limit=9)).jobs) == 1


async def test_limits_are_listed_and_removed(queue: Queue) -> None:
    await queue.set_limit("api", active=0)
    await queue.enqueue("fetch", limits=["api"])
    assert await queue.limits() == [LimitInfo("api", active=0, held=1)]
    assert await queue.remove_limit("api") is True
    assert await queue.limits() == [LimitInfo("api", ready=1, ready_queues=("default",))]


async def test_key_is_parked_and_freed(queue: Queue, clock: FakeClock) -> None:
    await queue.park_key("api", 30)
    await queue.enqueue("fetch", limits=["api"])
    assert not await queue.claim()
    assert [one.parked_until for one in await queue.limits()] == [
        clock.now() + timedelta(seconds=30)
    ]
    await queue.park_key("api", None)
    assert await queue.claim()
    await queue.park_key("api", clock.now() + timedelta(hours=1))
    await queue.park_key("api", timedelta(hours=1))


async def test_tending_fails_what_was_held_too_long(queue: Queue, clock: FakeClock) -> None:
    await queue.set_limit("api", active=0)
    made = await queue.enqueue("fetch", limits=["api"], max_hold=5)
    clock.advance(6)
    assert await queue.tend() == 1
    job = await queue.get(made.id)
    assert job.state is JobState.FAILED
    assert job.error == "held too long: waited 5 s for room under api (limit 0 active)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": "api"}, "a list of keys, not the text"),
        ({"limits": [""]}, "limit key must be a text"),
        ({"limits": [f"k{n}" for n in range(9)]}, "at most 8 limits, not 9"),
        ({"max_hold": 5}, "max_hold is for jobs with limits"),
        ({"limits": ["a"], "max_hold": -1}, "max_hold must be between"),
    ],
)
async def test_bad_limits_of_a_job_are_refused(queue: Queue, options, message: str) -> None:
    with pytest.raises(InvalidJob, match=message):
        await queue.enqueue("fetch", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"active": -1}, "active must be an integer from 0"),
        ({"per_second": 0}, "per_second must be a number from"),
        ({"per_second": float("nan")}, "per_second must be a number from"),
        ({"burst": 5}, "burst needs per_second"),
        ({"per_second": 5, "burst": 0}, "burst must be an integer from 1"),
        ({"per_second": True}, "per_second must be a number from"),
    ],
)
async def test_bad_limits_of_a_key_are_refused(queue: Queue, options, message: str) -> None:
    with pytest.raises(InvalidJob, match=message):
        await queue.set_limit("api", **options)


async def test_edited_limits_are_obeyed_at_once(queue: Queue) -> None:
    await queue.set_limit("api", active=0)
    job = await queue.enqueue("work")
    held = await queue.edit(job.id, limits=["api"], max_hold=60)
    assert (held.state, held.limits, held.max_hold_seconds) == (JobState.HELD, ("api",), 60)
    moved = await queue.edit(job.id, limits=["other"])
    assert (moved.state, moved.max_hold_seconds) == (JobState.READY, 60)
    assert (await queue.edit(job.id, max_hold=None)).max_hold_seconds is None
    assert (await queue.edit(job.id, limits=[])).limits == ()
    for changes in ({"max_hold": 60}, {"limits": [], "max_hold": 60}):
        with pytest.raises(InvalidJob, match="max_hold is for jobs with limits"):
            await queue.edit(job.id, **changes)
    with pytest.raises(InvalidJob, match="at most 8 limits"):
        await queue.edit(job.id, limits=[str(n) for n in range(9)])


async def test_bad_times_and_bounds_are_refused(queue: Queue) -> None:
    with pytest.raises(InvalidJob, match="time zone"):
        await queue.park_key("api", datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(InvalidJob, match="on_full must be one of reject, block, drop_oldest"):
        await queue.set_queue("a", max_depth=1, on_full="explode")  # type: ignore[arg-type]
    with pytest.raises(InvalidJob, match="max_depth must be an integer from 1"):
        await queue.set_queue("a", max_depth=0)


async def test_full_queue_is_told_to_the_caller(queue: Queue) -> None:
    await queue.set_queue("small", max_depth=1)
    await queue.enqueue("work", queue="small")
    with pytest.raises(QueueFull, match="queue 'small' is full: 1 jobs wait in it, at most 1 may"):
        await queue.enqueue("work", queue="small", timeout=60)
    await queue.set_queue("small")
    await queue.enqueue("work", queue="small")


async def test_caller_waits_for_room_in_a_queue_that_blocks(queue: Queue) -> None:
    await queue.set_queue("small", max_depth=1, on_full="block")
    await queue.enqueue("first", queue="small")
    waiting = asyncio.create_task(queue.enqueue_many([NewJob("second", queue="small")]))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    lease = await queue.claim("small")
    async with asyncio.timeout(60):
        [inserted] = await waiting
    assert inserted.outcome == "inserted"
    await lease.complete(lease.jobs[0])


async def test_caller_gives_up_waiting_after_the_timeout(queue: Queue) -> None:
    await queue.set_queue("small", max_depth=1, on_full="block")
    await queue.enqueue("first", queue="small")
    with pytest.raises(QueueFull):
        await queue.enqueue("second", queue="small", timeout=0.05)
