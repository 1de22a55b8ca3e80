"""Bounded queues (N7): so many jobs may wait in one, and no more."""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import (
    add,
    add_many,
    claim_one,
    complete,
    counts,
    get,
    insert,
    make_group,
    queue,
    row,
    snooze,
    states,
)
from tests.callers import Caller
from windrow.errors import QueueFull
from windrow.queue.job import JobState
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("bounds")

S = JobState


async def test_full_queue_refuses_and_says_how_deep_it_is(store: Store) -> None:
    await store.set_queue("default", 3, "reject")
    await add_many(store, 2)
    await add(store, delay=60)

    with pytest.raises(QueueFull, match="queue 'default' is full: 3 jobs wait in it, at most 3"):
        await insert(store)
    with pytest.raises(QueueFull) as full:
        await store.insert_jobs([row(queue="other"), row()])
    assert (full.value.queue, full.value.depth, full.value.max_depth) == ("default", 3, 3)
    assert full.value.transient
    assert not full.value.may_wait
    assert await counts(store, "other") == {}


@pytest.mark.parametrize("count", [2, 120])
async def test_batch_is_taken_whole_or_not_at_all(store: Store, count: int) -> None:
    await store.set_queue("default", count, "reject")
    await add_many(store, count)
    await store.set_queue("default", 2 * count - 1, "reject")

    with pytest.raises(QueueFull):
        await store.insert_jobs([row() for _ in range(count)])
    assert await counts(store) == {S.READY: count}


async def test_claimed_jobs_leave_room_and_come_back_without_asking(store: Store) -> None:
    await store.set_queue("default", 1, "reject")
    await add(store)
    job = await claim_one(store)
    await add(store)
    await store.finish_jobs([snooze(job)])

    assert await counts(store) == {S.READY: 2}
    with pytest.raises(QueueFull):
        await insert(store)


async def test_follow_ups_are_always_taken(store: Store) -> None:
    await store.set_queue("default", 1, "reject")
    await add(store)
    job = await claim_one(store)
    finished = await complete(store, job, then=(row(), row(), row()))

    assert [one.outcome for one in finished.then] == ["inserted"] * 3


async def test_job_that_is_there_already_needs_no_room(store: Store) -> None:
    await store.set_queue("default", 1, "reject")
    job_id = await add(store, unique="k")

    for mode in ("return", "replace", "follow"):
        assert (await insert(store, unique="k", on_conflict=mode)).id == job_id
    again = await store.insert_jobs([row(id=job_id, may_exist=True)])
    assert again[0].outcome == "existing"


async def test_queue_that_blocks_says_that_waiting_may_help(store: Store) -> None:
    await store.set_queue("default", 1, "block")
    await add(store)

    with pytest.raises(QueueFull) as full:
        await insert(store)
    assert full.value.may_wait


async def test_oldest_of_the_least_urgent_are_dropped(store: Store) -> None:
    await store.set_queue("default", 4, "drop_oldest")
    group = await make_group(store)
    urgent = await add(store, priority=9)
    low = await add_many(store, 2, priority=1, group=group.id)
    usual = await add(store)
    new = await add_many(store, 2)

    assert await states(store, [urgent, *low, usual, *new]) == [
        *(S.READY, S.CANCELLED, S.CANCELLED, S.READY),
        *(S.READY, S.READY),
    ]
    dropped = await get(store, low[0])
    assert dropped.error == "dropped: queue default is full (4)"
    assert [error.reason for error in dropped.errors] == ["cancel"]
    ended = await store.get_group(group.id)
    assert ended is not None
    assert ended.ended_at is not None


async def test_bound_is_told_changed_and_taken_away(store: Store) -> None:
    await store.set_queue("default", 1, "block")
    info = await queue(store)
    assert (info.max_depth, info.on_full, info.is_paused) == (1, "block", False)
    await store.pause_queue("default")
    await store.resume_queue("default")
    assert (await queue(store)).max_depth == 1
    await store.set_queue("default", None, "reject")

    await add_many(store, 3)
    assert (await queue(store)).max_depth is None


async def test_bound_is_exact_when_many_insert_at_once(store: Store) -> None:
    await store.set_queue("default", 10, "reject")

    async def try_to_insert() -> bool:
        try:
            await insert(store)
        except QueueFull:
            return False
        return True

    done = await asyncio.gather(*(try_to_insert() for _ in range(30)))
    assert sum(done) == 10
    assert await counts(store) == {S.READY: 10}


async def test_full_queue_is_refused_in_the_callers_transaction(
    store: Store, caller: Caller
) -> None:
    await store.set_queue("default", 2, "block")
    await add(store)
    await store.insert_jobs([row()], tx=caller.connection)

    with pytest.raises(QueueFull):
        await store.insert_jobs([row()], tx=caller.connection)
    await caller.commit()
    assert await counts(store) == {S.READY: 2}
