"""`JobQueue` (J2, J3): a worker loop by job id, with the leases remembered for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import closing

import pytest

from tests.faults import FaultyStore
from windrow import Job, NewJob, Queue
from windrow.clock import FakeClock
from windrow.errors import DuplicateJob, LeaseLost, StoreUnavailable
from windrow.queue import insisting, jobqueue
from windrow.queue.job import JobState
from windrow.queue.jobqueue import JobQueue, LeasingJobQueue
from windrow.queue.store import Store

STAGES = ("extract_audio", "transcribe_start", "transcribe_poll", "analyze")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insisting, "RETRY_WAITS", (0.0, 0.0, 0.0))


@pytest.fixture
async def jobs(queue: Queue) -> AsyncIterator[LeasingJobQueue]:
    async with queue.job_queue() as opened:
        yield opened


async def claim_one(jobs: JobQueue, worker: str = "w") -> Job:
    job = await jobs.claim(worker)
    assert job is not None
    return job


async def work(jobs: JobQueue, worker: str, run_stage: Callable[[Job], None]) -> None:
    """The loop of the document, which would sleep for a second where this one ends."""
    while (job := await jobs.claim(worker)) is not None:
        try:
            run_stage(job)
            await jobs.complete(job.id)
        except ValueError as error:
            await jobs.fail(job.id, str(error), min(600, 30 * 2**job.attempts))


async def test_the_loop_of_the_document_runs_every_stage(
    queue: Queue, jobs: LeasingJobQueue
) -> None:
    """J2: the worker loop as described."""
    for stage in STAGES:
        await jobs.enqueue(NewJob(stage, {"call_id": 7}, tenant="org-1"))
    seen: list[tuple[str, str | None]] = []
    await work(jobs, "worker-1", lambda job: seen.append((job.kind, job.tenant)))
    assert seen == [(stage, "org-1") for stage in STAGES]
    assert (await queue.counts())[JobState.COMPLETED] == len(STAGES)
    assert jobs.held == frozenset()


async def test_a_job_that_keeps_failing_is_tried_five_times_and_then_failed(
    queue: Queue, jobs: LeasingJobQueue, clock: FakeClock
) -> None:
    """J3: min(600, 30 · 2^attempts) seconds between the runs; the fifth is the last."""
    job_id = await jobs.enqueue(NewJob("analyze"))

    def broken(job: Job) -> None:
        raise ValueError(f"attempt {job.attempts}")

    for wait in (30, 60, 120, 240):
        await work(jobs, "worker-1", broken)
        job = await queue.get(job_id)
        assert (job.state, (job.run_at - clock.now()).total_seconds()) == ("scheduled", wait)
        clock.advance(wait)
    await work(jobs, "worker-1", broken)
    job = await queue.get(job_id)
    assert (job.state, job.runs, job.attempts, job.error) == ("failed", 5, 5, "attempt 4")


async def test_the_back_off_of_the_document_is_the_usual_one(
    queue: Queue, jobs: LeasingJobQueue, clock: FakeClock
) -> None:
    """J3, without the loop's own arithmetic; at 600 s it stops growing."""
    job_id = await jobs.enqueue(NewJob("analyze", max_attempts=8))
    waits = []
    for _ in range(7):
        await jobs.fail((await claim_one(jobs)).id, "no")
        due = (await queue.get(job_id)).run_at
        waits.append((due - clock.now()).total_seconds())
        clock.advance(waits[-1])
    assert waits == [30, 60, 120, 240, 480, 600, 600]


async def test_nothing_to_claim_is_none(jobs: LeasingJobQueue) -> None:
    assert await jobs.claim("w") is None


async def test_only_what_is_held_can_be_ended(jobs: LeasingJobQueue) -> None:
    job_id = await jobs.enqueue(NewJob("work"))
    for end in (jobs.complete(job_id), jobs.fail(job_id, "no"), jobs.snooze(job_id, 1)):
        with pytest.raises(LeaseLost):
            await end
    job = await claim_one(jobs)
    assert jobs.held == {job_id}
    await jobs.complete(job.id)
    with pytest.raises(LeaseLost):
        await jobs.complete(job.id)


async def test_a_late_writer_is_refused(
    queue: Queue, jobs: LeasingJobQueue, clock: FakeClock
) -> None:
    """J3, better: completion is fenced, and a crash counts."""
    await jobs.enqueue(NewJob("work"))
    stale = await claim_one(jobs, "late")
    clock.advance(31)
    async with queue.job_queue() as others:
        fresh = await claim_one(others, "other")
        assert (fresh.id, fresh.crashes) == (stale.id, 1)
        with pytest.raises(LeaseLost):
            await jobs.complete(stale.id)
        assert jobs.held == frozenset()
        await others.complete(fresh.id, {"by": "other"})
    assert (await queue.get(stale.id)).result == {"by": "other"}


async def test_a_renewal_tells_what_was_lost_and_what_is_to_stop(
    queue: Queue, jobs: LeasingJobQueue, clock: FakeClock
) -> None:
    await jobs.enqueue(NewJob("lost", lease=5))
    await jobs.enqueue(NewJob("unwanted"))
    lost, unwanted = await claim_one(jobs), await claim_one(jobs)
    clock.advance(6)
    await queue.cancel(unwanted.id)
    await jobs.renew()
    assert jobs.held == {unwanted.id}
    assert (lost.stop_as, unwanted.stop_as) == (None, JobState.CANCELLED)
    with pytest.raises(LeaseLost):
        await jobs.complete(lost.id)
    await jobs.fail(unwanted.id, "stopped")
    assert (await queue.get(unwanted.id)).state == JobState.CANCELLED


async def test_what_is_held_is_renewed_in_the_background(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share of a lease is made small: renewals come at once, the clock is moved between them.
    A renewal that fails is tried again, and a new claim does not put the others off."""
    monkeypatch.setattr(jobqueue, "RENEW_AFTER", 0.0005)
    monkeypatch.setattr(jobqueue, "RENEW_AGAIN_AFTER", 0.0001)
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    async with queue.job_queue(seconds=30) as jobs:
        await jobs.enqueue(NewJob("work"))
        job = await claim_one(jobs)
        faulty.fail_before("extend_leases", call=faulty.calls("extend_leases") + 2)
        for _ in range(10):
            clock.advance(20)
            before = faulty.calls("extend_leases")
            while faulty.calls("extend_leases") < before + 3:
                assert await jobs.claim("w") is None
        assert "StoreUnavailable" in [call.outcome for call in faulty.history]
        await jobs.complete(job.id)
    assert (await queue.get(job.id)).crashes == 0


async def test_an_end_whose_reply_was_lost_is_written_once(store: Store) -> None:
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    async with queue.job_queue() as jobs:
        await jobs.enqueue(NewJob("work"))
        job = await claim_one(jobs)
        faulty.lose_reply("finish_jobs")
        await jobs.complete(job.id, 1, then=[NewJob("next")])
        assert [job.kind for job in await queue.list(state="ready")] == ["next"]


async def test_what_could_not_be_ended_is_held_on(store: Store) -> None:
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    async with queue.job_queue() as jobs:
        await jobs.enqueue(NewJob("work"))
        job = await claim_one(jobs)
        for call in range(1, 5):
            faulty.fail_before("finish_jobs", call=call)
        with pytest.raises(StoreUnavailable):
            await jobs.complete(job.id)
        assert jobs.held == {job.id}
        await jobs.complete(job.id)
    assert (await queue.get(job.id)).state == JobState.COMPLETED


async def test_what_is_still_held_at_the_end_is_handed_back(queue: Queue, clock: FakeClock) -> None:
    async with queue.job_queue() as jobs:
        ids = [await jobs.enqueue(NewJob("work")) for _ in range(2)]
        await claim_one(jobs)
        clock.advance(31)
        await queue.tend()
        await claim_one(jobs)
    found = await queue.get_many(ids)
    assert {job.state for job in found.values()} == {JobState.READY}
    assert sorted(job.crashes for job in found.values()) == [0, 1]
    assert jobs.held == frozenset()


async def test_a_poll_snoozes_without_using_attempts(
    queue: Queue, jobs: LeasingJobQueue, clock: FakeClock
) -> None:
    """J5: transcribe_poll looks again later."""
    job_id = await jobs.enqueue(NewJob("transcribe_poll"))
    for _ in range(7):
        await jobs.snooze((await claim_one(jobs)).id, 10)
        clock.advance(10)
    job = await queue.get(job_id)
    assert (job.runs, job.attempts) == (7, 0)


async def test_only_the_queues_and_kinds_that_were_named_are_claimed(queue: Queue) -> None:
    async with queue.job_queue("calls", kinds=["analyze"]) as jobs:
        await jobs.enqueue(NewJob("analyze", queue="other"))
        await jobs.enqueue(NewJob("extract_audio", queue="calls"))
        assert await jobs.claim("w") is None
        job_id = await jobs.enqueue(NewJob("analyze", queue="calls"))
        job = await claim_one(jobs, "loop-1")
        assert (job.id, job.worker) == (job_id, "loop-1")


async def test_a_taken_unique_key_is_told_as_asked(jobs: LeasingJobQueue) -> None:
    first = await jobs.enqueue(NewJob("work", unique="k"))
    assert await jobs.enqueue(NewJob("work", unique="k")) == first
    with pytest.raises(DuplicateJob):
        await jobs.enqueue(NewJob("work", unique="k", on_conflict="reject"))


async def test_claimed_jobs_take_steps_and_write_in_their_transaction(
    queue: Queue, jobs: LeasingJobQueue
) -> None:
    await jobs.enqueue(NewJob("work"))
    job = await claim_one(jobs)
    assert await job.step("a", lambda: 1) == 1
    await job.tx.execute("CREATE TABLE mine (n integer)")
    await jobs.complete(job.id)
    assert (await queue.get(job.id)).state == JobState.COMPLETED


def test_it_blocks_in_the_blocking_face(store_url: str) -> None:
    with Queue.sync(store_url) as queue, closing(queue.job_queue(seconds=5)) as jobs:
        job_id = jobs.enqueue(NewJob("work"))
        job = jobs.claim("w")
        assert job is not None
        assert (job.id, job.step("a", lambda: 1)) == (job_id, 1)
        jobs.complete(job.id, 2)
        assert queue.get(job_id).result == 2
        assert jobs.claim("w") is None
