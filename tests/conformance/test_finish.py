"""finish_jobs: the end of a run, accepted only under the token of its claim."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from tests.builders import (
    accept,
    add,
    add_and_claim,
    add_many,
    attempt,
    boom,
    cancellation,
    claim,
    claim_one,
    complete,
    completion,
    counts,
    fail,
    failure,
    finish_of,
    get,
    ids,
    row,
    snooze,
    state,
    states,
    wish,
)
from windrow.clock import FakeClock
from windrow.ids import new_id
from windrow.queue.job import Job, JobState
from windrow.queue.records import FOREVER, Finish, Finished, ProgressReport
from windrow.queue.store import Store

HOUR = 3600
ENDS: list[Callable[..., Finish]] = [completion, failure, cancellation, attempt, snooze]


async def test_completed_job_keeps_its_result(store: Store, clock: FakeClock) -> None:
    """N1: queued, active, completed."""
    job = await add_and_claim(store)
    clock.advance(3)
    await complete(store, job, {"pages": [1, 2]})
    done = await get(store, job.id)

    assert (done.state, done.result, done.error) == (JobState.COMPLETED, {"pages": [1, 2]}, None)
    assert (done.finished_at, done.started_at) == (clock.now(), job.started_at)
    assert (done.attempts, done.crashes, done.runs, done.errors) == (0, 0, 1, [])


async def test_completed_job_may_have_no_result(store: Store) -> None:
    job = await add_and_claim(store)
    await complete(store, job)

    assert (await get(store, job.id)).result is None


async def test_failed_job_tells_why_and_when(store: Store, clock: FakeClock) -> None:
    """N1, U7: failed with message and time."""
    job = await add_and_claim(store)
    clock.advance(3)
    error = boom("no route\nto host", type="OSError", traceback="line 1\nline 2")
    await accept(store, failure(job, error=error))
    failed = await get(store, job.id)

    assert (failed.state, failed.attempts) == (JobState.FAILED, 1)
    assert (failed.error, failed.finished_at) == ("OSError: no route", clock.now())
    [history] = failed.errors
    assert (history.reason, history.message, history.type) == (
        *("attempt", "no route\nto host", "OSError"),
    )
    assert (history.traceback, history.at) == ("line 1\nline 2", clock.now())


async def test_error_text_of_a_job_is_one_line_of_at_most_500(store: Store) -> None:
    job = await add_and_claim(store)
    await fail(store, job, "ü" * 5000 + "\nsecond line")
    failed = await get(store, job.id)

    assert failed.error == "ü" * 500
    assert failed.errors[0].message == "ü" * 5000 + "\nsecond line"


async def test_run_may_end_as_cancelled(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    await accept(store, cancellation(job, "page is gone"))
    cancelled = await get(store, job.id)

    assert (cancelled.state, cancelled.error) == (JobState.CANCELLED, "page is gone")
    assert (cancelled.finished_at, cancelled.attempts) == (clock.now(), 0)
    assert [error.reason for error in cancelled.errors] == ["cancel"]


async def test_job_given_back_is_ready_at_once(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    clock.advance(5)
    await accept(store, snooze(job))
    back = await get(store, job.id)

    assert (back.state, back.run_at, back.seq) == (JobState.READY, clock.now(), job.seq)
    assert (back.worker, back.lease_expires_at, back.finished_at) == (None, None, None)
    assert (await claim_one(store)).id == job.id


async def test_snoozed_job_is_scheduled_and_uses_no_attempt(store: Store, clock: FakeClock) -> None:
    """J3: snoozing burns nothing."""
    job = await add_and_claim(store)
    await accept(store, snooze(job, 30.5))
    back = await get(store, job.id)

    assert back.state == JobState.SCHEDULED
    assert back.run_at == clock.now() + timedelta(seconds=30.5)
    assert (back.attempts, back.crashes, back.runs, back.errors) == (0, 0, 1, [])


@pytest.mark.requires("exact_claims")
async def test_job_given_back_keeps_its_place_in_the_line(store: Store) -> None:
    first, second = await add_many(store, 2)
    await accept(store, snooze(await claim_one(store)))

    assert ids(await claim(store, 9)) == [first, second]


async def test_error_is_kept_in_the_history_whatever_the_state(store: Store) -> None:
    await add_many(store, 3)
    jobs = await claim(store, 9)
    ends = (JobState.COMPLETED, JobState.CANCELLED, JobState.READY)
    finishes = [finish_of(job, end, error=boom()) for job, end in zip(jobs, ends, strict=True)]
    await accept(store, *finishes)

    for job in (await store.get_jobs(ids(jobs))).values():
        assert [error.message for error in job.errors] == ["boom"]


@pytest.mark.parametrize("end", ENDS)
async def test_attempt_is_counted_whatever_the_state(store: Store, end) -> None:
    job = await add_and_claim(store)
    await accept(store, replace(end(job), uses_attempt=True, error=None))

    assert (await get(store, job.id)).attempts == 1


@pytest.mark.parametrize(
    ("end", "kept"),
    [(completion, 24 * HOUR), (failure, 7 * 24 * HOUR), (cancellation, 24 * HOUR)],
)
async def test_default_retention_counts_from_the_finish(
    store: Store, clock: FakeClock, end, kept: int
) -> None:
    """N7: counted from the finish."""
    job = await add_and_claim(store)
    clock.advance(50)
    await accept(store, end(job))

    assert (await get(store, job.id)).expires_at == clock.now() + timedelta(seconds=kept)


@pytest.mark.parametrize("end", [completion, failure, cancellation])
async def test_retention_of_its_own_counts_from_the_finish(
    store: Store, clock: FakeClock, end
) -> None:
    """N7: configurable."""
    job = await add_and_claim(store, retention_seconds=90)
    clock.advance(50)
    await accept(store, end(job))

    assert (await get(store, job.id)).expires_at == clock.now() + timedelta(seconds=90)


@pytest.mark.parametrize("end", [completion, failure, cancellation])
async def test_job_kept_for_ever_never_expires(store: Store, end) -> None:
    job = await add_and_claim(store, retention_seconds=FOREVER)
    await accept(store, end(job))

    assert (await get(store, job.id)).expires_at is None


async def test_many_runs_end_in_one_call(store: Store) -> None:
    await add_many(store, 5)
    jobs = await claim(store, 9)
    await accept(store, *(end(job) for end, job in zip(ENDS, jobs, strict=True)))

    assert await states(store, ids(jobs)) == [
        *(JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.READY, JobState.READY)
    ]


async def test_nothing_to_finish_is_no_error(store: Store) -> None:
    assert await store.finish_jobs([]) == Finished()


async def test_thousand_runs_end_in_one_call(store: Store) -> None:
    await add_many(store, 1000)
    jobs = await claim(store, 1000)
    await accept(store, *(completion(job, {"n": job.seq}) for job in jobs))

    assert await counts(store) == {JobState.COMPLETED: 1000}
    found = await store.get_jobs(ids(jobs))
    assert [found[job.id].result for job in jobs] == [{"n": job.seq} for job in jobs]


@pytest.mark.parametrize("end", ENDS)
async def test_stale_token_changes_nothing(store: Store, clock: FakeClock, end) -> None:
    """N1: a lost lock changes nothing."""
    stale = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    new = await claim_one(store)
    finished = await store.finish_jobs([end(stale)])
    job = await get(store, new.id)

    assert finished.lost == (stale.id,)
    assert (job.state, job.lease_token, job.runs) == (JobState.ACTIVE, new.lease_token, 2)
    assert (job.attempts, len(job.errors), job.result) == (0, 1, None)


@pytest.mark.parametrize("end", ENDS)
async def test_token_of_a_rescued_job_is_stale_even_before_the_next_claim(
    store: Store, clock: FakeClock, end
) -> None:
    """N2: the worker whose lock was lost is told."""
    job = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()

    assert (await store.finish_jobs([end(job)])).lost == (job.id,)
    assert await state(store, job.id) == JobState.READY


@pytest.mark.parametrize("end", ENDS)
async def test_unknown_and_deleted_jobs_are_lost(store: Store, end) -> None:
    job = await add_and_claim(store)
    await complete(store, job)
    await store.delete_jobs([job.id])

    assert (await store.finish_jobs([end(job)])).lost == (job.id,)


async def test_token_of_another_job_is_refused(store: Store) -> None:
    await add_many(store, 2)
    mine, other = await claim_one(store), await claim_one(store)
    assert mine.lease_token is not None
    crossed = Finish(other.id, mine.lease_token, JobState.COMPLETED)

    assert (await store.finish_jobs([crossed])).lost == (other.id,)
    assert await state(store, other.id) == JobState.ACTIVE


async def test_made_up_token_is_refused(store: Store) -> None:
    job = await add_and_claim(store)
    made_up = Finish(job.id, new_id(), JobState.COMPLETED)

    assert (await store.finish_jobs([made_up])).lost == (job.id,)
    assert await state(store, job.id) == JobState.ACTIVE


@pytest.mark.parametrize(
    "token",
    [
        "nonsense",
        "x" * 36,
        "-" * 36,
        "},{" * 12,
        "01999999-0000-7000-8000-00000000000 ",
        "019999990-000-7000-8000-000000000000",
        "٠1999999-0000-7000-8000-000000000000",
    ],
)
async def test_token_that_no_store_gives_out_is_refused(store: Store, token: str) -> None:
    await add_many(store, 2)
    job, good = await claim_one(store), await claim_one(store)
    made_up = Finish(job.id, token, JobState.COMPLETED)

    finished = await store.finish_jobs([made_up, completion(good)])

    assert finished.lost == (job.id,)
    assert await states(store, [job.id, good.id]) == [JobState.ACTIVE, JobState.COMPLETED]
    assert (await store.extend_leases([token])).held == frozenset()


async def test_good_finishes_are_accepted_beside_a_stale_one(
    store: Store, clock: FakeClock
) -> None:
    stale = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    await add_many(store, 2)
    good = await claim(store, 9, seconds=600)
    fresh = [job for job in good if job.id != stale.id]
    finished = await store.finish_jobs([completion(job) for job in (fresh[0], stale, fresh[1])])

    assert finished.lost == (stale.id,)
    assert await states(store, ids(fresh)) == [JobState.COMPLETED] * 2
    assert await state(store, stale.id) == JobState.ACTIVE


async def test_expired_lease_that_nobody_rescued_yet_may_still_finish(
    store: Store, clock: FakeClock
) -> None:
    """The job is active under the token, so the work is not thrown away."""
    job = await add_and_claim(store)
    clock.advance(61)
    await complete(store, job, "late")

    assert (await get(store, job.id)).result == "late"


@pytest.mark.parametrize("end", ENDS)
async def test_repeated_finish_is_accepted_and_changes_nothing(
    store: Store, clock: FakeClock, end
) -> None:
    job = await add_and_claim(store)
    await accept(store, end(job))
    before = await get(store, job.id)
    clock.advance(5)
    await accept(store, end(job))
    after = await get(store, job.id)

    assert (after.state, after.run_at, after.finished_at) == (
        *(before.state, before.run_at, before.finished_at),
    )
    assert (after.attempts, after.errors) == (before.attempts, before.errors)


async def test_repeated_finish_is_recognised_until_the_next_claim(store: Store) -> None:
    job = await add_and_claim(store)
    await accept(store, snooze(job))
    await accept(store, snooze(job))
    await claim_one(store)

    assert (await store.finish_jobs([snooze(job)])).lost == (job.id,)


async def test_first_end_stands_and_another_one_is_refused(store: Store) -> None:
    job = await add_and_claim(store)
    await complete(store, job, "first")
    for other in (completion(job, "second"), completion(job), failure(job), snooze(job)):
        finished = await store.finish_jobs([other])
        assert (finished.lost, finished.conflicting) == ((), (job.id,))
    done = await get(store, job.id)

    assert (done.state, done.result, done.errors) == (JobState.COMPLETED, "first", [])
    assert (await store.finish_jobs([completion(job, "first")])).conflicting == ()


@pytest.mark.parametrize("end", ENDS)
async def test_repeated_end_is_no_conflict(store: Store, end) -> None:
    job = await add_and_claim(store)
    await accept(store, end(job))

    assert (await store.finish_jobs([end(job)])).conflicting == ()


async def test_run_that_went_back_to_wait_cannot_be_completed(store: Store) -> None:
    job = await add_and_claim(store)
    await accept(store, snooze(job))

    assert (await store.finish_jobs([completion(job)])).conflicting == (job.id,)
    assert await state(store, job.id) == JobState.READY


async def test_large_results_are_compared_too(store: Store) -> None:
    job = await add_and_claim(store)
    await complete(store, job, "x" * 2_000_000)

    assert (await store.finish_jobs([completion(job, "x" * 2_000_000)])).conflicting == ()
    other = completion(job, "y" * 2_000_000)
    assert (await store.finish_jobs([other])).conflicting == (job.id,)


async def test_result_with_its_keys_in_another_order_is_no_conflict(store: Store) -> None:
    job = await add_and_claim(store)
    await complete(store, job, {"a": 1, "b": [2]})

    assert (await store.finish_jobs([completion(job, {"b": [2], "a": 1})])).conflicting == ()
    other = completion(job, {"b": [2], "a": 1.0})
    assert (await store.finish_jobs([other])).conflicting == (job.id,)


async def test_follow_ups_of_another_end_are_not_inserted(store: Store) -> None:
    job = await add_and_claim(store)
    await complete(store, job, "first")
    other = replace(completion(job, "second"), then=(row("next"),))
    finished = await store.finish_jobs([other])

    assert (finished.then, finished.conflicting) == ((), (job.id,))
    assert await counts(store) == {JobState.COMPLETED: 1}


async def test_retried_job_forgets_the_token(store: Store) -> None:
    job = await add_and_claim(store)
    await fail(store, job)
    await store.retry_jobs([job.id])

    assert (await store.finish_jobs([completion(job)])).lost == (job.id,)
    assert await state(store, job.id) == JobState.READY


async def test_next_jobs_are_claimed_in_the_same_call(store: Store, clock: FakeClock) -> None:
    first, second, third = await add_many(store, 3)
    job = await claim_one(store)
    finished = await store.finish_jobs([completion(job)], claim=wish(1, worker="worker-2"))
    [claimed] = finished.claimed

    assert (job.id, claimed.id, finished.lost) == (first, second, ())
    assert (claimed.state, claimed.worker, claimed.runs) == (JobState.ACTIVE, "worker-2", 1)
    assert claimed.lease_expires_at == clock.now() + timedelta(seconds=60)
    assert await states(store, [first, second, third]) == [
        *(JobState.COMPLETED, JobState.ACTIVE, JobState.READY)
    ]
    await complete(store, claimed)


async def test_claim_is_made_even_when_the_finish_is_refused(
    store: Store, clock: FakeClock
) -> None:
    stale = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    finished = await store.finish_jobs([completion(stale)], claim=wish(1))

    assert finished.lost == (stale.id,)
    assert ids(finished.claimed) == [stale.id]


async def test_claim_alone_through_finish(store: Store) -> None:
    job_id = await add(store)

    assert ids((await store.finish_jobs([], claim=wish(5))).claimed) == [job_id]


@pytest.mark.requires("edits")
async def test_run_that_completes_though_told_to_stop_is_completed(store: Store) -> None:
    await add_many(store, 2)
    cancelled, paused = await claim(store, 2)
    await store.cancel_jobs([cancelled.id], "too late")
    await store.pause_jobs([paused.id])
    await accept(store, completion(cancelled, "a"), completion(paused, "b"))

    assert await states(store, [cancelled.id, paused.id]) == [JobState.COMPLETED] * 2


async def test_progress_is_kept_after_the_end(store: Store) -> None:
    job = await add_and_claim(store)
    assert job.lease_token is not None
    await store.report_progress([ProgressReport(job.id, job.lease_token, 70, "almost")])
    await complete(store, job)
    progress = (await get(store, job.id)).progress

    assert progress is not None
    assert (progress.percent, progress.message) == (70, "almost")


async def test_finish_is_seen_by_everybody(store: Store, open_another) -> None:
    job: Job = await add_and_claim(store)
    await complete(store, job, row().id)

    assert await state(await open_another(), job.id) == JobState.COMPLETED
