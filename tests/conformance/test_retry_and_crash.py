"""Attempts and crashes: counted apart, both bounded, the history kept (U7, J3, N2)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import (
    accept,
    add_and_claim,
    attempt,
    claim,
    claim_one,
    complete,
    counts,
    get,
    snooze,
    state,
)
from windrow.clock import FakeClock
from windrow.queue.checks import SizeLimits
from windrow.queue.job import JobState
from windrow.queue.lease import Lease, to_finish
from windrow.queue.outcome import Fail, Retry
from windrow.queue.policy import backoff
from windrow.queue.store import Store


async def crash(store: Store, clock: FakeClock) -> JobState | None:
    """Let the lease of the one running job run out."""
    clock.advance(61)
    [change] = await store.rescue_jobs()
    return change.after


async def test_failed_attempt_waits_for_its_back_off(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    await accept(store, attempt(job, 30))
    back = await get(store, job.id)

    assert (back.state, back.attempts, back.error) == (JobState.SCHEDULED, 1, "boom")
    assert back.run_at == clock.now() + timedelta(seconds=30)
    assert await claim(store, 9) == []

    clock.advance(30)
    await store.stage_jobs()
    assert (await claim_one(store)).attempts == 1


async def test_attempts_add_up_with_their_history(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    for n in range(3):
        await accept(store, attempt(job, 0, f"failure {n}"))
        clock.advance(1)
        job = await claim_one(store)
    found = await get(store, job.id)

    assert (found.attempts, found.crashes, found.runs) == (3, 0, 4)
    assert [error.message for error in found.errors] == ["failure 0", "failure 1", "failure 2"]
    times = [error.at for error in found.errors if error.at]
    assert times == sorted(set(times))


async def test_crashes_and_attempts_are_counted_apart(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    await accept(store, attempt(job))
    await claim_one(store)
    await crash(store, clock)
    found = await get(store, job.id)

    assert (found.attempts, found.crashes, found.runs) == (1, 1, 2)
    assert [error.reason for error in found.errors] == ["attempt", "crash"]


async def test_snoozes_use_up_nothing(store: Store) -> None:
    job = await add_and_claim(store, max_attempts=2, max_crashes=2)
    for _ in range(10):
        await accept(store, snooze(job))
        job = await claim_one(store)
    found = await get(store, job.id)

    assert (found.attempts, found.crashes, found.runs) == (0, 0, 11)


async def test_job_crashed_too_often_is_failed_with_its_reason(
    store: Store, clock: FakeClock
) -> None:
    """N2: such a failure has a reason and a finish time."""
    job = await add_and_claim(store, max_crashes=3)
    ends = [await crash(store, clock)]
    for _ in range(2):
        await claim_one(store)
        ends.append(await crash(store, clock))
    failed = await get(store, job.id)

    assert ends == [JobState.READY, JobState.READY, JobState.FAILED]
    assert (failed.state, failed.crashes, failed.attempts) == (JobState.FAILED, 3, 0)
    assert failed.error == "crashed 3 times: the lease ran out"
    assert failed.finished_at == clock.now()
    assert failed.expires_at == clock.now() + timedelta(days=7)


async def test_each_crash_is_written_to_the_history(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    await crash(store, clock)
    [error] = (await get(store, job.id)).errors

    assert (error.reason, error.at) == ("crash", clock.now())
    assert error.message == "the lease ran out (worker worker-1)"


async def test_nine_stalls_are_allowed_as_the_original_does(store: Store, clock: FakeClock) -> None:
    """N2: re-queued while stalls < 9, then failed."""
    job = await add_and_claim(store, max_crashes=9)
    for _ in range(8):
        assert await crash(store, clock) == JobState.READY
        await claim_one(store)

    assert await crash(store, clock) == JobState.FAILED
    assert (await get(store, job.id)).runs == 9


@pytest.mark.parametrize(("max_attempts", "point"), [(4, "U7"), (5, "J3")])
async def test_retries_are_bounded_by_max_attempts(
    store: Store, clock: FakeClock, max_attempts: int, point: str
) -> None:
    """U7: max_retries 3, so four runs; J3: max_attempts 5, so five runs; then failed."""
    job = await add_and_claim(store, max_attempts=max_attempts)
    for _ in range(max_attempts):
        await accept(store, to_finish(job, Retry("no luck", after=10), SizeLimits()))
        clock.advance(10)
        await store.stage_jobs()
        job = next(iter(await claim(store)), job)
    failed = await get(store, job.id)

    assert (failed.state, failed.attempts, failed.runs) == (JobState.FAILED, *[max_attempts] * 2)
    assert (failed.error, len(failed.errors)) == ("no luck", max_attempts)
    assert failed.finished_at is not None


async def test_back_off_doubles_from_thirty_seconds_to_ten_minutes(
    store: Store, clock: FakeClock
) -> None:
    """J3: min(600, 30·2^attempts) seconds."""
    job, waits = await add_and_claim(store, max_attempts=9), []
    for _ in range(7):
        await Lease(store, [job], SizeLimits()).fail(job, "busy", retry_in=backoff("processing"))
        waits.append(((await get(store, job.id)).run_at - clock.now()).total_seconds())
        clock.advance(600)
        await store.stage_jobs()
        job = await claim_one(store)

    assert waits == [30, 60, 120, 240, 480, 600, 600]


async def test_failure_without_retry_uses_one_attempt(store: Store) -> None:
    job = await add_and_claim(store)
    await accept(store, to_finish(job, Fail("hopeless"), SizeLimits()))
    failed = await get(store, job.id)

    assert (failed.state, failed.attempts, failed.runs) == (JobState.FAILED, 1, 1)


async def test_job_may_succeed_after_failures_and_crashes(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    await accept(store, attempt(job))
    await claim_one(store)
    await crash(store, clock)
    await complete(store, await claim_one(store), "at last")
    done = await get(store, job.id)

    assert (done.state, done.result, done.runs) == (JobState.COMPLETED, "at last", 3)
    assert [error.reason for error in done.errors] == ["attempt", "crash"]


async def test_crashes_do_not_use_up_attempts(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store, max_attempts=1, max_crashes=9)
    for _ in range(5):
        assert await crash(store, clock) == JobState.READY
        await claim_one(store)

    assert await state(store, job.id) == JobState.ACTIVE
    assert await counts(store) == {JobState.ACTIVE: 1}
