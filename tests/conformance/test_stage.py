"""stage_jobs: what is due becomes claimable, oldest first, in batches."""

from __future__ import annotations

import asyncio

from tests.builders import (
    accept,
    add,
    add_and_claim,
    add_many,
    claim,
    counts,
    ids,
    snooze,
    state,
    states,
)
from windrow.clock import FakeClock
from windrow.queue.job import JobState
from windrow.queue.store import Store


async def test_due_job_becomes_ready(store: Store, clock: FakeClock) -> None:
    job_id = await add(store, delay=10)
    clock.advance(9.999)
    assert await store.stage_jobs() == 0

    clock.advance(0.001)
    assert await store.stage_jobs() == 1
    assert ids(await claim(store, 9)) == [job_id]


async def test_job_not_due_is_left(store: Store, clock: FakeClock) -> None:
    due, later = await add(store, delay=10), await add(store, delay=20)
    clock.advance(15)

    assert await store.stage_jobs() == 1
    assert await states(store, [due, later]) == [JobState.READY, JobState.SCHEDULED]


async def test_nothing_is_due(store: Store) -> None:
    assert await store.stage_jobs() == 0


async def test_batches_take_the_longest_due_first(store: Store, clock: FakeClock) -> None:
    job_ids = [await add(store, delay=delay) for delay in (30, 10, 40, 20)]
    clock.advance(100)

    assert await store.stage_jobs(limit=2) == 2
    assert await states(store, job_ids) == [
        *(JobState.SCHEDULED, JobState.READY, JobState.SCHEDULED, JobState.READY)
    ]
    assert await store.stage_jobs(limit=99) == 2


async def test_staged_jobs_stand_where_they_came(store: Store, clock: FakeClock) -> None:
    first = await add(store, delay=10)
    second = await add(store)
    urgent = await add(store, delay=5, priority=9)
    clock.advance(10)
    await store.stage_jobs()

    assert ids(await claim(store, 9)) == [urgent, first, second]


async def test_snoozed_job_comes_back(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    await accept(store, snooze(job, 5))
    clock.advance(5)

    assert await store.stage_jobs() == 1
    assert await state(store, job.id) == JobState.READY


async def test_paused_job_is_not_staged(store: Store, clock: FakeClock) -> None:
    """A4"""
    job_id = await add(store, delay=5)
    await store.pause_jobs([job_id])
    clock.advance(10)

    assert await store.stage_jobs() == 0
    assert await state(store, job_id) == JobState.PAUSED


async def test_cancelled_job_is_not_staged(store: Store, clock: FakeClock) -> None:
    """A4: a cancelled job is not revived."""
    job_id = await add(store, delay=5)
    await store.cancel_jobs([job_id], "no")
    clock.advance(10)

    assert await store.stage_jobs() == 0


async def test_jobs_of_a_paused_queue_are_staged_and_wait_there(
    store: Store, clock: FakeClock
) -> None:
    job_id = await add(store, delay=5)
    await store.pause_queue("default")
    clock.advance(10)

    assert await store.stage_jobs() == 1
    assert await claim(store, 9) == []
    await store.resume_queue("default")
    assert ids(await claim(store, 9)) == [job_id]


async def test_many_stage_at_once_without_counting_twice(
    store: Store, open_another, clock: FakeClock
) -> None:
    other = await open_another()
    await add_many(store, 300, delay=5)
    clock.advance(10)
    moved = await asyncio.gather(*(s.stage_jobs(limit=100) for s in (store, other) * 4))
    moved.append(await store.stage_jobs())

    assert sum(moved) == 300
    assert await counts(store) == {JobState.READY: 300}
