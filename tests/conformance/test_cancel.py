"""cancel_jobs: in any state, and for good (A4)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import (
    UNKNOWN_ID,
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
    failure,
    get,
    snooze,
    state,
    states,
)
from windrow.clock import FakeClock
from windrow.queue.job import JobState
from windrow.queue.records import Change
from windrow.queue.store import Store


async def test_waiting_job_is_cancelled_with_the_reason(store: Store, clock: FakeClock) -> None:
    """A4"""
    job_id = await add(store)
    clock.advance(4)
    changes = await store.cancel_jobs([job_id], "not wanted")
    job = await get(store, job_id)

    assert changes == {job_id: Change(job_id, JobState.READY, JobState.CANCELLED)}
    assert (job.state, job.error, job.finished_at) == (
        *(JobState.CANCELLED, "not wanted", clock.now()),
    )
    assert job.expires_at == clock.now() + timedelta(hours=24)
    assert [(error.reason, error.message) for error in job.errors] == [("cancel", "not wanted")]


@pytest.mark.requires("edits")
async def test_scheduled_and_paused_jobs_are_cancelled(store: Store) -> None:
    scheduled, paused = await add(store, delay=60), await add(store)
    await store.pause_jobs([paused])
    changes = await store.cancel_jobs([scheduled, paused], "no")

    assert changes[scheduled].before == JobState.SCHEDULED
    assert changes[paused].before == JobState.PAUSED
    assert await states(store, [scheduled, paused]) == [JobState.CANCELLED] * 2


async def test_cancelled_job_is_never_claimed(store: Store, clock: FakeClock) -> None:
    """A4: a cancelled job is not revived."""
    await store.cancel_jobs([await add(store), await add(store, delay=5)], "no")
    clock.advance(10)
    await store.stage_jobs()
    await store.rescue_jobs()

    assert await claim(store, 9) == []


@pytest.mark.requires("settable_clock")
async def test_running_job_is_told(store: Store) -> None:
    job = await add_and_claim(store)
    changes = await store.cancel_jobs([job.id], "enough")
    told = await get(store, job.id)

    assert (changes[job.id].before, changes[job.id].is_refused) == (JobState.ACTIVE, False)
    assert (told.state, told.stop_as) == (JobState.ACTIVE, JobState.CANCELLED)
    assert (told.lease_token, told.lease_expires_at) == (job.lease_token, job.lease_expires_at)


@pytest.mark.parametrize("back", [attempt, snooze])
async def test_job_told_to_end_is_cancelled_instead_of_waiting(
    store: Store, clock: FakeClock, back
) -> None:
    """A4: a cancelled job is not revived."""
    job = await add_and_claim(store)
    await store.cancel_jobs([job.id], "enough")
    await accept(store, back(job, 30))
    cancelled = await get(store, job.id)

    assert (cancelled.state, cancelled.finished_at) == (JobState.CANCELLED, clock.now())
    assert cancelled.expires_at == clock.now() + timedelta(hours=24)


@pytest.mark.parametrize("end", [completion, failure, cancellation])
async def test_job_told_to_end_may_still_say_how_it_ended(store: Store, end) -> None:
    job = await add_and_claim(store)
    await store.cancel_jobs([job.id], "enough")
    finish = end(job)
    await accept(store, finish)

    assert await state(store, job.id) == finish.state


@pytest.mark.parametrize("make", [add_completed, add_failed])
async def test_finished_job_cannot_be_cancelled(store: Store, make) -> None:
    job_id = await make(store)
    before = await get(store, job_id)
    [change] = (await store.cancel_jobs([job_id], "too late")).values()
    after = await get(store, job_id)

    assert change == Change(job_id, before.state, before.state, is_refused=True)
    assert (after.error, after.errors) == (before.error, before.errors)


async def test_cancelling_twice_keeps_the_first_reason(store: Store) -> None:
    job_id = await add(store)
    await store.cancel_jobs([job_id], "first")
    await store.cancel_jobs([job_id], "second")
    job = await get(store, job_id)

    assert (job.error, len(job.errors)) == ("first", 1)


@pytest.mark.requires("edits")
async def test_cancellation_overrides_a_pause_of_a_running_job(store: Store) -> None:
    job = await add_and_claim(store)
    await store.pause_jobs([job.id])
    await store.cancel_jobs([job.id], "enough")
    await accept(store, snooze(job))

    assert await state(store, job.id) == JobState.CANCELLED


@pytest.mark.parametrize("unknown", [UNKNOWN_ID, "no uuid", ""])
async def test_unknown_job_is_told_as_not_there(store: Store, unknown: str) -> None:
    known = await add(store)
    changes = await store.cancel_jobs([unknown, known], "no")

    assert (changes[unknown].before, changes[unknown].after) == (None, None)
    assert changes[known].after == JobState.CANCELLED


async def test_nothing_to_cancel_is_no_error(store: Store) -> None:
    assert await store.cancel_jobs([], "no") == {}


async def test_many_jobs_in_one_call(store: Store) -> None:
    job_ids = await add_many(store, 500)
    changes = await store.cancel_jobs(job_ids, "no")

    assert set(changes) == set(job_ids)
    assert await claim(store, 999) == []


async def test_own_retention_counts_for_a_cancelled_job(store: Store, clock: FakeClock) -> None:
    """N7"""
    job_id = await add(store, retention_seconds=60)
    clock.advance(30)
    await store.cancel_jobs([job_id], "no")

    assert (await get(store, job_id)).expires_at == clock.now() + timedelta(seconds=60)


async def test_ugly_reason_is_kept(store: Store) -> None:
    reason = "✋🏽 'stop'; -- \"שלום\" 漢字"
    job_id = await add(store)
    await store.cancel_jobs([job_id], reason)

    assert (await get(store, job_id)).error == reason
