"""rescue_jobs: what a dead worker held is run again (N2, U6)."""

from __future__ import annotations

import asyncio

from tests.builders import (
    accept,
    add,
    add_and_claim,
    add_many,
    attempt,
    claim,
    claim_one,
    complete,
    completion,
    counts,
    get,
    ids,
    queue,
    row,
    state,
    states,
)
from windrow.clock import FakeClock
from windrow.queue.job import JobState
from windrow.queue.records import Change
from windrow.queue.store import Store


async def test_job_of_an_expired_lease_is_ready_again(store: Store, clock: FakeClock) -> None:
    """N2: an expired lock is reaped and the job re-queued."""
    job = await add_and_claim(store)
    clock.advance(61)
    changes = await store.rescue_jobs()
    rescued = await get(store, job.id)

    assert changes == [Change(job.id, JobState.ACTIVE, JobState.READY)]
    assert (rescued.state, rescued.crashes, rescued.lease_token) == (JobState.READY, 1, None)
    assert (rescued.worker, rescued.lease_expires_at) == (None, None)


async def test_live_lease_is_left_alone(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    clock.advance(59.9)

    assert await store.rescue_jobs() == []
    assert await state(store, job.id) == JobState.ACTIVE


async def test_rescued_job_keeps_its_place_in_the_line(store: Store, clock: FakeClock) -> None:
    first, second = await add_many(store, 2)
    await claim_one(store)
    clock.advance(61)
    await store.rescue_jobs()

    assert ids(await claim(store, 9)) == [first, second]


async def test_rescued_job_is_due_from_now_on(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()

    assert (await get(store, job.id)).run_at == clock.now()


async def test_job_that_crashed_too_often_keeps_the_time_it_was_due(
    store: Store, clock: FakeClock
) -> None:
    job = await add_and_claim(store, max_crashes=1)
    clock.advance(61)
    await store.rescue_jobs()

    assert (await get(store, job.id)).run_at == job.run_at


async def test_oldest_ready_job_is_found_behind_a_rescued_one(
    store: Store, clock: FakeClock
) -> None:
    await add_many(store, 2)
    due = clock.now()
    await claim_one(store)
    clock.advance(61)
    await store.rescue_jobs()

    assert (await queue(store)).oldest_ready_at == due


async def test_only_jobs_still_running_are_rescued(store: Store, clock: FakeClock) -> None:
    await add_many(store, 3)
    done, retried, running = await claim(store, 9)
    await complete(store, done)
    await accept(store, attempt(retried))
    clock.advance(61)

    assert [change.id for change in await store.rescue_jobs()] == [running.id]
    assert await states(store, [done.id, retried.id]) == [JobState.COMPLETED, JobState.READY]
    assert (await get(store, retried.id)).crashes == 0


async def test_job_claimed_again_is_not_rescued_for_its_old_lease(
    store: Store, clock: FakeClock
) -> None:
    job = await add_and_claim(store)
    await accept(store, attempt(job))
    again = await claim_one(store, seconds=600)
    clock.advance(61)

    assert await store.rescue_jobs() == []
    assert (await get(store, again.id)).lease_token == again.lease_token


async def test_leases_of_different_lengths_expire_apart(store: Store, clock: FakeClock) -> None:
    """U6: per item type."""
    await store.insert_jobs([row(lease_seconds=length) for length in (10, 300)])
    short, long = await claim(store, 9)
    clock.advance(11)
    assert [change.id for change in await store.rescue_jobs()] == [short.id]

    clock.advance(290)
    assert [change.id for change in await store.rescue_jobs()] == [long.id]


async def test_rescue_in_batches_leaves_none_behind(store: Store, clock: FakeClock) -> None:
    await add_many(store, 30)
    for _ in range(3):
        await claim(store, 10)
    clock.advance(61)
    rescued: list[str] = []
    for _ in range(30):
        rescued += [change.id for change in await store.rescue_jobs(limit=4)]

    assert len(rescued) == len(set(rescued)) == 30
    assert await counts(store) == {JobState.READY: 30}


async def test_concurrent_rescuers_count_each_crash_once(
    store: Store, open_another, clock: FakeClock
) -> None:
    other = await open_another()
    job_ids = await add_many(store, 50)
    await claim(store, 50)
    clock.advance(61)
    found = await asyncio.gather(*(s.rescue_jobs() for s in (store, other) * 4))

    assert sorted(change.id for changes in found for change in changes) == sorted(job_ids)
    jobs = await store.get_jobs(job_ids)
    assert {(job.crashes, len(job.errors)) for job in jobs.values()} == {(1, 1)}


async def test_rescued_job_told_to_end_is_cancelled(store: Store, clock: FakeClock) -> None:
    """A4: a cancelled job is not revived."""
    job = await add_and_claim(store)
    await store.cancel_jobs([job.id], "enough")
    clock.advance(61)
    [change] = await store.rescue_jobs()
    found = await get(store, job.id)

    assert change == Change(job.id, JobState.ACTIVE, JobState.CANCELLED)
    assert (found.state, found.crashes) == (JobState.CANCELLED, 1)
    assert found.finished_at == clock.now()


async def test_rescued_job_told_to_pause_is_paused(store: Store, clock: FakeClock) -> None:
    """A4: a paused one survives a restart."""
    job = await add_and_claim(store)
    await store.pause_jobs([job.id])
    clock.advance(61)
    [change] = await store.rescue_jobs()
    assert change == Change(job.id, JobState.ACTIVE, JobState.PAUSED)

    await store.resume_jobs([job.id])
    again = await claim_one(store)
    assert (again.id, again.crashes, again.stop_as) == (job.id, 1, None)


async def test_last_crash_of_a_job_told_to_pause_fails_it(store: Store, clock: FakeClock) -> None:
    """To be resumed and crash once more would be one crash more than it may have."""
    job = await add_and_claim(store, max_crashes=1)
    await store.pause_jobs([job.id])
    clock.advance(61)
    [change] = await store.rescue_jobs()
    found = await get(store, job.id)

    assert change == Change(job.id, JobState.ACTIVE, JobState.FAILED)
    assert (found.state, found.crashes, found.stop_as) == (JobState.FAILED, 1, None)


async def test_rescue_while_the_worker_finishes_has_one_winner(
    store: Store, open_another, clock: FakeClock
) -> None:
    other = await open_another()
    for _ in range(10):
        job = await add_and_claim(store)
        clock.advance(61)
        finished, rescued = await asyncio.gather(complete_or_lose(other, job), store.rescue_jobs())

        assert finished != bool(rescued)
        wanted = JobState.COMPLETED if finished else JobState.READY
        assert await state(store, job.id) == wanted
        await store.delete_jobs([job.id])


async def complete_or_lose(store: Store, job) -> bool:
    return not (await store.finish_jobs([completion(job)])).lost


async def test_rescued_member_of_a_paused_queue_waits_there(store: Store, clock: FakeClock) -> None:
    await add(store)
    await claim_one(store)
    await store.pause_queue("default")
    clock.advance(61)

    assert len(await store.rescue_jobs()) == 1
    assert await claim(store, 9) == []


async def test_leases_with_no_job_left_are_removed(store: Store, clock: FakeClock, run_sql) -> None:
    for _ in range(3):
        await add_many(store, 2)
        first, second = await claim(store, 2)
        await accept(store, completion(first), attempt(second, 600))
    await add(store)
    await claim_one(store)
    clock.advance(61)
    await store.rescue_jobs()

    assert run_sql("select count(*) from windrow.lease") == [(0,)]
