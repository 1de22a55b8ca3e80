"""How outcomes become what a store is told to do."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from windrow.errors import LeaseLost
from windrow.queue.checks import SizeLimits
from windrow.queue.job import Job, JobState, NewJob
from windrow.queue.lease import describe, to_finish
from windrow.queue.outcome import Cancel, Done, Fail, Retry, Snooze

LIMITS = SizeLimits()
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def running(attempts: int = 0, max_attempts: int = 5) -> Job:
    return Job(
        id="0190a0b0-0000-7000-8000-000000000000",
        seq=1,
        queue="default",
        kind="work",
        state=JobState.ACTIVE,
        priority=5,
        attempts=attempts,
        crashes=0,
        runs=1,
        max_attempts=max_attempts,
        max_crashes=5,
        created_at=NOON,
        run_at=NOON,
        lease_token="6f9619ff-8b86-4011-b42d-00cf4fc964ff",
    )


def test_done_carries_its_result_and_follow_ups() -> None:
    finish = to_finish(running(), Done({"n": 1}, [NewJob("next")]), LIMITS)
    assert (finish.state, finish.result) == (JobState.COMPLETED, b'{"n":1}')
    assert [row.kind for row in finish.then] == ["next"]


def test_u7_retry_uses_an_attempt_until_the_last_one_fails() -> None:
    again = to_finish(running(attempts=3), Retry("boom", after=7), LIMITS)
    assert (again.state, again.delay, again.uses_attempt) == (JobState.READY, 7, True)
    last = to_finish(running(attempts=4), Retry("boom", after=7), LIMITS)
    assert (last.state, last.uses_attempt) == (JobState.FAILED, True)


def test_retry_without_a_time_asks_the_default_policy() -> None:
    finish = to_finish(running(), Retry("boom"), LIMITS)
    assert 1.8 <= finish.delay <= 2.2


def test_snooze_uses_no_attempt() -> None:
    finish = to_finish(running(attempts=4), Snooze(30), LIMITS)
    assert (finish.state, finish.delay, finish.uses_attempt) == (JobState.READY, 30, False)


def test_fail_and_cancel_are_final() -> None:
    assert to_finish(running(), Fail("no"), LIMITS).state == JobState.FAILED
    cancelled = to_finish(running(), Cancel("changed\x00mind"), LIMITS)
    assert cancelled.state == JobState.CANCELLED
    assert cancelled.error is not None
    assert cancelled.error.message == "changed�mind"


def test_an_exception_is_kept_with_its_type_and_traceback() -> None:
    empty: dict[str, int] = {}
    with pytest.raises(KeyError) as caught:
        empty["missing \ud800"]
    described = describe(caught.value)
    assert described.type == "KeyError"
    assert described.traceback is not None
    assert "test_outcomes.py" in described.traceback
    assert "\ud800" not in described.message + described.traceback


def test_an_error_without_words_still_says_something() -> None:
    assert describe(ValueError()).message == "no message"
    assert describe("").message == "failed without a message"


def test_a_job_that_was_never_claimed_cannot_be_finished() -> None:
    job = running()
    job.lease_token = None
    with pytest.raises(LeaseLost):
        to_finish(job, Done(), LIMITS)
