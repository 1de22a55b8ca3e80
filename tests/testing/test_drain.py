"""`drain`: everything that can run has run when it returns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import OpenAnother
from windrow import Done, Fail, Job, NewJob, Queue, Snooze, handler
from windrow.clock import Clock, FakeClock
from windrow.queue.job import JobState
from windrow.testing import drain


@handler("split")
async def split(job: Job, payload: Any) -> Done:
    return Done(then=[NewJob("count", {"word": word}) for word in payload["text"].split()])


@handler("count")
def count(job: Job, payload: Any) -> int:
    return len(payload["word"])


@handler("flaky", backoff=[30, 60])
async def flaky(job: Job) -> str:
    if job.attempts < 2:
        raise ConnectionError("not yet")
    return "at last"


@handler("broken", max_attempts=2, backoff=10)
async def broken(job: Job) -> None:
    raise ValueError("no good")


@handler("refused")
async def refused(job: Job) -> Fail:
    return Fail("will not do")


@handler("restless")
async def restless(job: Job) -> Snooze:
    return Snooze(0)


async def test_drain_runs_what_is_ready_and_what_that_enqueues(queue: Queue) -> None:
    first = await queue.enqueue("split", {"text": "a windrow of hay"})

    ran = await drain(queue, [split, count])

    assert ran[0].id == first.id
    assert [(job.kind, job.result) for job in ran[1:]] == [
        ("count", 1),
        ("count", 7),
        ("count", 2),
        ("count", 3),
    ]
    assert {job.state for job in ran} == {JobState.COMPLETED}
    assert await drain(queue, [split, count]) == []


async def test_drain_leaves_what_it_was_not_given(queue: Queue) -> None:
    other = await queue.enqueue("split", {"text": "later"}, queue="elsewhere")
    unknown = await queue.enqueue("mystery")

    assert await drain(queue, [split], queues="default") == []

    assert (await queue.get(other.id)).state == JobState.READY
    assert (await queue.get(unknown.id)).state == JobState.READY


async def test_jobs_that_wait_for_their_time_are_left_unless_asked_for(
    queue: Queue, clock: FakeClock
) -> None:
    later = await queue.enqueue("count", {"word": "later"}, delay=3600)
    sooner = await queue.enqueue("count", {"word": "soon"}, delay=60)
    began_at = clock.now()

    assert await drain(queue, [count]) == []
    ran = await drain(queue, [count], scheduled=True)

    assert [job.id for job in ran] == [sooner.id, later.id]
    assert (clock.now() - began_at).total_seconds() == 3600


async def test_retries_are_run_to_their_end(queue: Queue, clock: FakeClock) -> None:
    await queue.enqueue("flaky")
    await queue.enqueue("broken")
    began_at = clock.now()

    ran = await drain(queue, [flaky, broken], scheduled=True)

    assert [(job.state, job.result, job.attempts) for job in ran] == [
        (JobState.COMPLETED, "at last", 2),
        (JobState.FAILED, None, 2),
    ]
    assert len(ran[1].errors) == 2
    assert (clock.now() - began_at).total_seconds() == 90


async def test_with_the_real_time_scheduled_jobs_are_brought_forward(
    open_another: OpenAnother,
) -> None:
    queue = Queue(await open_another(Clock()))
    await queue.enqueue("flaky", delay=86_400)

    [job] = await drain(queue, [flaky], scheduled=True)

    assert (job.state, job.attempts) == (JobState.COMPLETED, 2)


async def test_errors_of_handlers_are_raised_when_asked_for(queue: Queue) -> None:
    await queue.enqueue("broken")
    with pytest.raises(ValueError, match="no good"):
        await drain(queue, [broken], raise_errors=True)
    await queue.enqueue("refused")
    [job] = await drain(queue, [refused], raise_errors=True)
    assert (job.state, job.error) == (JobState.FAILED, "will not do")


async def test_a_job_that_never_ends_is_told_of(queue: Queue) -> None:
    await queue.enqueue("restless")
    with pytest.raises(AssertionError, match=r"stopped after 20 runs of 1 jobs \(restless\)"):
        await drain(queue, [restless], most=20)
