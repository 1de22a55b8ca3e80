"""Pausing jobs and queues (A4): a job is set aside, a queue gets a flag."""

from __future__ import annotations

import pytest

from tests.builders import (
    UNKNOWN_ID,
    accept,
    add,
    add_and_claim,
    add_completed,
    add_many,
    attempt,
    claim,
    claim_one,
    complete,
    completion,
    get,
    ids,
    queue,
    snooze,
    state,
    states,
    wish,
)
from windrow.clock import FakeClock
from windrow.queue.job import JobState
from windrow.queue.records import Change
from windrow.queue.store import Store


@pytest.mark.requires("edits")
async def test_paused_job_waits_for_a_person(store: Store) -> None:
    """A4"""
    job_id = await add(store)
    changes = await store.pause_jobs([job_id])

    assert changes == {job_id: Change(job_id, JobState.READY, JobState.PAUSED)}
    assert await state(store, job_id) == JobState.PAUSED
    assert await claim(store, 9) == []


@pytest.mark.requires("edits")
async def test_resumed_job_is_ready_in_its_old_place(store: Store) -> None:
    first, second = await add_many(store, 2)
    await store.pause_jobs([first])
    changes = await store.resume_jobs([first])

    assert changes == {first: Change(first, JobState.PAUSED, JobState.READY)}
    assert ids(await claim(store, 9)) == [first, second]


async def test_resumed_job_that_is_not_due_is_scheduled(store: Store, clock: FakeClock) -> None:
    job_id = await add(store, delay=60)
    await store.pause_jobs([job_id])
    clock.advance(59)
    changes = await store.resume_jobs([job_id])

    assert changes[job_id].after == JobState.SCHEDULED


async def test_resumed_job_that_became_due_is_ready(store: Store, clock: FakeClock) -> None:
    job_id = await add(store, delay=60)
    await store.pause_jobs([job_id])
    clock.advance(60)

    assert (await store.resume_jobs([job_id]))[job_id].after == JobState.READY


@pytest.mark.requires("edits")
async def test_paused_job_survives_a_restart(store: Store, open_another) -> None:
    """A4: a paused one survives a restart."""
    job_id = await add(store)
    await store.pause_jobs([job_id])
    again = await open_another()

    assert await state(again, job_id) == JobState.PAUSED
    assert await claim(again, 9) == []


@pytest.mark.requires("edits")
async def test_running_job_is_told_to_pause(store: Store) -> None:
    job = await add_and_claim(store)
    changes = await store.pause_jobs([job.id])
    told = await get(store, job.id)

    assert (changes[job.id].before, changes[job.id].is_refused) == (JobState.ACTIVE, False)
    assert (told.state, told.stop_as) == (JobState.ACTIVE, JobState.PAUSED)
    assert told.lease_token == job.lease_token


@pytest.mark.requires("edits")
@pytest.mark.parametrize("back", [attempt, snooze])
async def test_job_told_to_pause_is_paused_when_its_run_ends(store: Store, back) -> None:
    """A4: pause and resume."""
    job = await add_and_claim(store)
    await store.pause_jobs([job.id])
    await accept(store, back(job))
    assert await state(store, job.id) == JobState.PAUSED

    await store.resume_jobs([job.id])
    again = await claim_one(store)
    assert (again.id, again.stop_as) == (job.id, None)
    await accept(store, snooze(again))
    assert await state(store, job.id) == JobState.READY


@pytest.mark.requires("edits")
async def test_running_job_may_be_told_to_go_on(store: Store) -> None:
    job = await add_and_claim(store)
    await store.pause_jobs([job.id])
    await store.resume_jobs([job.id])
    await accept(store, snooze(job))

    assert await state(store, job.id) == JobState.READY


@pytest.mark.requires("edits")
async def test_resuming_does_not_take_back_a_cancellation(store: Store) -> None:
    """A4: a cancelled job is not revived."""
    job = await add_and_claim(store)
    await store.cancel_jobs([job.id], "enough")
    await store.resume_jobs([job.id])
    await accept(store, snooze(job))

    assert await state(store, job.id) == JobState.CANCELLED


@pytest.mark.requires("edits")
async def test_pausing_does_not_take_back_a_cancellation(store: Store) -> None:
    """A4: a cancelled job is not revived."""
    job = await add_and_claim(store)
    await store.cancel_jobs([job.id], "enough")
    await store.pause_jobs([job.id])
    await accept(store, snooze(job))

    assert await state(store, job.id) == JobState.CANCELLED


@pytest.mark.requires("edits")
async def test_finished_job_can_be_neither_paused_nor_resumed(store: Store) -> None:
    job_id = await add_completed(store)
    refused = Change(job_id, JobState.COMPLETED, JobState.COMPLETED, is_refused=True)

    assert await store.pause_jobs([job_id]) == {job_id: refused}
    assert await store.resume_jobs([job_id]) == {job_id: refused}


@pytest.mark.requires("edits")
async def test_ready_job_cannot_be_resumed(store: Store) -> None:
    job_id = await add(store)

    assert (await store.resume_jobs([job_id]))[job_id].is_refused
    assert await state(store, job_id) == JobState.READY


@pytest.mark.requires("edits")
@pytest.mark.parametrize("unknown", [UNKNOWN_ID, "no uuid", ""])
async def test_unknown_job_is_told_as_not_there(store: Store, unknown: str) -> None:
    for verb in (store.pause_jobs, store.resume_jobs):
        changes = await verb([unknown])
        assert (changes[unknown].before, changes[unknown].after) == (None, None)


@pytest.mark.requires("edits")
async def test_many_jobs_in_one_call(store: Store) -> None:
    job_ids = await add_many(store, 100)
    await store.pause_jobs(job_ids[::2])
    assert ids(await claim(store, 999)) == job_ids[1::2]

    await store.resume_jobs(job_ids[::2])
    assert set(await states(store, job_ids[::2])) == {JobState.READY}


async def test_pausing_a_queue_is_a_flag(store: Store) -> None:
    """A4: no job is touched."""
    job_id = await add(store)
    await store.pause_queue("default")

    assert (await queue(store)).is_paused
    assert await state(store, job_id) == JobState.READY
    assert await claim(store, 9) == []


async def test_resumed_queue_is_claimed_again(store: Store) -> None:
    job_id = await add(store)
    await store.pause_queue("default")
    await store.resume_queue("default")

    assert not (await queue(store)).is_paused
    assert ids(await claim(store, 9)) == [job_id]


async def test_paused_queue_survives_a_restart(store: Store, open_another) -> None:
    """A4"""
    await add(store)
    await store.pause_queue("default")

    assert await claim(await open_another(), 9) == []


async def test_queue_may_be_paused_before_it_has_jobs(store: Store) -> None:
    await store.pause_queue("later")
    await add(store, queue="later")

    assert await claim(store, 9) == []
    assert (await queue(store, "later")).is_paused


async def test_running_jobs_of_a_paused_queue_may_finish(store: Store) -> None:
    job = await add_and_claim(store)
    await store.pause_queue("default")
    await complete(store, job)

    assert await state(store, job.id) == JobState.COMPLETED


async def test_pausing_and_resuming_a_queue_twice_is_no_error(store: Store) -> None:
    for _ in range(2):
        await store.pause_queue("default")
    for _ in range(2):
        await store.resume_queue("default")

    assert [info for info in await store.list_queues() if info.is_paused] == []


async def test_resuming_an_unknown_queue_leaves_no_trace(store: Store) -> None:
    await store.resume_queue("never seen")

    assert await store.list_queues() == []


async def test_claim_made_with_a_finish_passes_over_a_paused_queue(store: Store) -> None:
    job = await add_and_claim(store)
    await add_many(store, 2)
    await store.pause_queue("default")
    finished = await store.finish_jobs([completion(job)], claim=wish(9))

    assert finished.claimed == ()
