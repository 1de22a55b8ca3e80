"""list_queues: counts that are exact after everything, and the oldest job that waits.

Every other conformance test is followed by the same comparison (see conftest.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.builders import (
    accept,
    add,
    add_and_claim,
    add_completed,
    add_failed,
    add_many,
    attempt,
    cancellation,
    claim,
    completion,
    counted,
    counts,
    failure,
    insert,
    make_group,
    queue,
    snooze,
    tallied,
)
from windrow.clock import FakeClock
from windrow.queue.job import JobState
from windrow.queue.records import Finish
from windrow.queue.store import Store


async def test_no_queues_at_first(store: Store) -> None:
    assert await store.list_queues() == []


async def test_queues_are_listed_by_name(store: Store) -> None:
    for name in ("zebra", "apple", "mango"):
        await add(store, queue=name)
    await store.pause_queue("kiwi")

    assert [info.name for info in await store.list_queues()] == ["apple", "kiwi", "mango", "zebra"]


async def test_counts_show_only_states_that_have_jobs(store: Store) -> None:
    await add_many(store, 3)
    await add(store, delay=60)
    await claim(store, 1)

    assert (await queue(store)).counts == {
        JobState.READY: 2,
        JobState.ACTIVE: 1,
        JobState.SCHEDULED: 1,
    }


async def test_every_end_of_a_run_is_counted(store: Store) -> None:
    await add_many(store, 6)
    jobs = await claim(store, 5)
    ends: list[Callable[..., Finish]] = [completion, failure, cancellation, attempt, snooze]
    finishes = [end(job) for end, job in zip(ends, jobs, strict=True)]
    await accept(store, *finishes)
    await accept(store, *finishes)

    assert await counts(store) == {
        JobState.COMPLETED: 1,
        JobState.FAILED: 1,
        JobState.CANCELLED: 1,
        JobState.READY: 3,
    }


async def test_a_life_of_changes_is_counted_exactly(store: Store, clock: FakeClock) -> None:
    group = await make_group(store)
    job_ids = await add_many(store, 12, group=group.id)
    await store.pause_jobs(job_ids[:4])
    await store.cancel_jobs(job_ids[2:6], "no")
    await store.retry_jobs(job_ids[2:5])
    await store.edit_job(job_ids[7], {"queue": "other"})
    await store.delete_jobs(job_ids[8:9])
    await claim(store, 3)
    clock.advance(61)
    await store.rescue_jobs()
    await store.resume_jobs(job_ids)
    await store.cancel_group(group.id, "enough")

    assert await tallied(store) == await counted(store)


@pytest.mark.requires("replaces")
async def test_unique_keys_are_counted_exactly(store: Store) -> None:
    await add_and_claim(store, unique="a")
    for _ in range(3):
        await insert(store, unique="a", on_conflict="follow")
        await insert(store, unique="b", on_conflict="replace", queue="other")
        await insert(store, unique="b")

    assert await tallied(store) == {
        "default": {JobState.ACTIVE: 1, JobState.HELD: 1},
        "other": {JobState.READY: 1},
    }


@pytest.mark.requires("replaces")
async def test_replaced_job_that_moves_is_counted_in_its_new_queue(store: Store) -> None:
    await insert(store, unique="a")
    await insert(store, unique="a", on_conflict="replace", queue="other", delay=60)

    assert await tallied(store) == {"other": {JobState.SCHEDULED: 1}}


async def test_folding_changes_no_count(store: Store) -> None:
    for _ in range(20):
        await add_completed(store)
    await add_failed(store)
    before = await tallied(store)
    for _ in range(2):
        await store.fold_counts()
        assert await tallied(store) == before == await counted(store)


async def test_counts_stay_exact_while_they_are_folded(store: Store, open_another) -> None:
    other = await open_another()
    for _ in range(5):
        await asyncio.gather(
            *(add_many(s, 10) for s in (store, other)),
            *(s.fold_counts() for s in (other, store)),
            *(s.list_queues() for s in (other, store)),
        )

    assert await counts(store) == {JobState.READY: 100}


async def test_emptied_queue_is_no_longer_listed(store: Store) -> None:
    job_id = await add(store)
    await store.delete_jobs([job_id])
    await store.fold_counts()

    assert await store.list_queues() == []


async def test_oldest_ready_job_is_shown(store: Store, clock: FakeClock) -> None:
    start = clock.now()
    await add(store, priority=1)
    clock.advance(10)
    await add(store, priority=9)
    await add(store, queue="other")

    assert (await queue(store)).oldest_ready_at == start
    assert (await queue(store, "other")).oldest_ready_at == clock.now()


async def test_no_oldest_when_nothing_is_ready(store: Store) -> None:
    await add(store, delay=60)
    await claim(store, 9)
    await add_completed(store, queue="other")

    assert (await queue(store)).oldest_ready_at is None
    assert (await queue(store, "other")).oldest_ready_at is None


async def test_oldest_counts_from_when_it_became_due(store: Store, clock: FakeClock) -> None:
    due = clock.now()
    await add(store, delay=30)
    clock.advance(100)
    await add(store)
    await store.stage_jobs()
    oldest = (await queue(store)).oldest_ready_at

    assert oldest is not None
    assert (oldest - due).total_seconds() == 30


async def test_queues_with_ugly_names_are_counted_apart(store: Store) -> None:
    names = ["a", "A", "ä", "a ", "漢字", "'\"%_", "🚜"]
    for name in names:
        await add(store, queue=name)

    assert await tallied(store) == {name: {JobState.READY: 1} for name in names}
