"""extend_leases: a live lease is pushed on, a lost one is never revived."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import (
    add,
    add_and_claim,
    add_many,
    claim,
    claim_one,
    complete,
    completion,
    get,
    ids,
    row,
    state,
    wish,
)
from windrow.clock import FakeClock
from windrow.ids import new_id
from windrow.queue.job import Job, JobState
from windrow.queue.records import Renewal
from windrow.queue.store import Store


async def renew(store: Store, *jobs: Job, seconds: int | None = None) -> Renewal:
    tokens = {job.lease_token for job in jobs if job.lease_token}
    return await store.extend_leases(sorted(tokens), seconds)


async def test_renewed_lease_lasts_its_length_from_now(store: Store, clock: FakeClock) -> None:
    """U6: leases are renewed."""
    job = await add_and_claim(store)
    clock.advance(45)
    renewal = await renew(store, job)

    assert renewal.held == {job.id}
    assert renewal.expires_at == clock.now() + timedelta(seconds=60)
    assert (await get(store, job.id)).lease_expires_at == renewal.expires_at


async def test_renewed_lease_outlives_its_first_expiry(store: Store, clock: FakeClock) -> None:
    """N2: a renewed lock is not reaped."""
    job = await add_and_claim(store)
    for _ in range(5):
        clock.advance(45)
        await renew(store, job)
        assert await store.rescue_jobs() == []

    assert await state(store, job.id) == JobState.ACTIVE


async def test_renewal_holds_the_whole_lease(store: Store, clock: FakeClock) -> None:
    job_ids = await add_many(store, 5)
    jobs = await claim(store, 9)
    clock.advance(30)

    assert (await renew(store, *jobs)).held == set(job_ids)


async def test_given_seconds_become_the_length(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    assert (await renew(store, job, seconds=300)).expires_at == clock.now() + timedelta(seconds=300)

    clock.advance(200)
    assert (await renew(store, job)).expires_at == clock.now() + timedelta(seconds=300)


async def test_leases_of_different_lengths_are_renewed_together(
    store: Store, clock: FakeClock
) -> None:
    await store.insert_jobs([row(lease_seconds=length) for length in (300, 20)])
    jobs = await claim(store, 9)
    clock.advance(10)
    renewal = await renew(store, *jobs)

    assert renewal.held == set(ids(jobs))
    assert renewal.expires_at == clock.now() + timedelta(seconds=20)
    assert (await get(store, jobs[0].id)).lease_expires_at == clock.now() + timedelta(seconds=300)


async def test_expired_lease_is_not_revived(store: Store, clock: FakeClock) -> None:
    """N2: the worker whose lock was lost is told."""
    job = await add_and_claim(store)
    clock.advance(61)
    assert (await renew(store, job)).held == frozenset()

    assert [change.id for change in await store.rescue_jobs()] == [job.id]


async def test_rescued_job_is_not_held(store: Store, clock: FakeClock) -> None:
    """N2: the worker whose lock was lost is told."""
    job = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    renewal = await renew(store, job)

    assert (renewal.held, renewal.expires_at) == (frozenset(), None)
    assert await state(store, job.id) == JobState.READY


async def test_old_token_does_not_hold_the_next_claim(store: Store, clock: FakeClock) -> None:
    old = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    new = await claim_one(store)
    clock.advance(30)

    assert (await renew(store, old)).held == frozenset()
    assert (await get(store, new.id)).lease_expires_at == new.lease_expires_at


async def test_finished_jobs_are_not_held_and_the_others_are(store: Store) -> None:
    await add_many(store, 3)
    done, *rest = await claim(store, 9)
    await complete(store, done)

    assert (await renew(store, *rest)).held == set(ids(rest))


async def test_unknown_tokens_hold_nothing(store: Store) -> None:
    assert await store.extend_leases([new_id()]) == Renewal()
    assert await store.extend_leases([]) == Renewal()


async def test_live_lease_is_renewed_beside_a_dead_one(store: Store, clock: FakeClock) -> None:
    await store.insert_jobs([row(lease_seconds=length) for length in (10, 100)])
    short, long = await claim(store, 9)
    clock.advance(20)

    assert (await renew(store, short, long)).held == {long.id}


@pytest.mark.requires("edits")
async def test_renewal_tells_which_jobs_are_to_stop(store: Store) -> None:
    """A4: running jobs are told to pause or to end."""
    await add_many(store, 3)
    jobs = await claim(store, 9)
    await store.cancel_jobs([jobs[0].id], "enough")
    await store.pause_jobs([jobs[1].id])
    renewal = await renew(store, *jobs)

    assert renewal.stopping == {jobs[0].id: JobState.CANCELLED, jobs[1].id: JobState.PAUSED}
    assert renewal.held == set(ids(jobs))


@pytest.mark.requires("edits")
async def test_job_told_to_go_on_is_not_stopping(store: Store) -> None:
    job = await add_and_claim(store)
    await store.pause_jobs([job.id])
    await store.resume_jobs([job.id])

    assert (await renew(store, job)).stopping == {}


async def test_renewing_does_not_touch_other_leases(store: Store, clock: FakeClock) -> None:
    mine = await add_and_claim(store)
    await add(store)
    other = await claim_one(store)
    clock.advance(30)
    await renew(store, mine)

    assert (await get(store, other.id)).lease_expires_at == other.lease_expires_at


async def test_renewal_tells_that_leases_of_others_ran_out_until_somebody_rescued(
    store: Store, clock: FakeClock
) -> None:
    """N2: whoever works sees it, though the leader may be what was killed."""
    await store.insert_jobs([row(lease_seconds=length) for length in (4, 9)])
    gone, mine = await claim(store, 9)
    clock.advance(3.999)
    before = await renew(store, mine)
    clock.advance(0.001)
    after = await renew(store, mine)
    rescued = await store.rescue_jobs()
    at_last = await renew(store, mine)

    assert [one.is_rescue_due for one in (before, after, at_last)] == [False, True, False]
    assert [change.id for change in rescued] == [gone.id]


async def test_lease_is_live_up_to_its_last_moment(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    clock.advance(59.999)

    assert (await renew(store, job)).held == {job.id}


async def test_a_kinds_lease_length_holds_for_jobs_without_their_own(store: Store) -> None:
    for kind, own in (("quick", None), ("slow", None), ("slow", 7)):
        await add(store, kind, lease_seconds=own)

    jobs = await claim(store, 10, seconds=30, kind_seconds={"slow": 300})

    assert [_length(job) for job in jobs] == [30, 300, 7]
    assert len({job.lease_token for job in jobs}) == 3


async def test_a_kinds_lease_length_holds_when_claimed_with_a_finish(store: Store) -> None:
    await add_many(store, 2, kind="slow")
    wanted = wish(1, seconds=30, kind_seconds={"slow": 300})
    [first] = await store.claim_jobs(wanted)

    finished = await store.finish_jobs([completion(first)], claim=wanted)

    assert [_length(job) for job in finished.claimed] == [300]


async def test_a_kinds_lease_length_holds_in_a_queue_that_is_only_found_by_a_second_look(
    store: Store,
) -> None:
    """The first look of a claim that comes with a finish is at the queues that had work before."""
    wanted = wish(10, seconds=30, kind_seconds={"slow": 300})
    await add_many(store, 11, kind="slow", queue="first")
    [first, *_] = await store.claim_jobs(wanted)
    await add(store, "slow", queue="second")

    finished = await store.finish_jobs([completion(first)], claim=wanted)

    assert {job.queue for job in finished.claimed} == {"first", "second"}
    assert [_length(job) for job in finished.claimed] == [300, 300]


def _length(job: Job) -> float:
    assert job.lease_expires_at is not None
    assert job.started_at is not None
    return (job.lease_expires_at - job.started_at).total_seconds()
