"""What a handler returns or raises decides what becomes of its job."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pytest

from windrow import Cancel, Done, Fail, Job, NewJob, Queue, Retry, Snooze, Worker, handler
from windrow.errors import ConfigError, RateLimited, StoreUnavailable
from windrow.queue.job import JobState
from windrow.worker.registry import Handler


async def run(queue: Queue, one: Handler, payload: Any = None, **options: Any) -> Job:
    """Enqueue a job for the handler, work until idle, and look at the job."""
    job = await queue.enqueue(one.kind, payload, **options)
    await Worker(queue, [one]).run(until_idle=True)
    return await queue.get(job.id)


async def test_returned_value_is_the_result(queue: Queue) -> None:
    @handler("work")
    async def work(job: Job, payload: dict[str, int]) -> dict[str, int]:
        return {"doubled": 2 * payload["n"]}

    job = await run(queue, work, {"n": 21})

    assert (job.state, job.result) == (JobState.COMPLETED, {"doubled": 42})


async def test_function_that_blocks_runs_in_a_thread(queue: Queue) -> None:
    @handler("work")
    def work(job: Job) -> str:
        time.sleep(0.01)
        return "done"

    assert (await run(queue, work)).result == "done"


async def test_what_follows_from_a_failure_is_committed_with_it(queue: Queue) -> None:
    def tell(job: Job, why: str) -> list[NewJob]:
        return [NewJob("tell", {"job": job.id, "why": why}, queue="later")]

    @handler("work", max_attempts=2, backoff=0, on_failure=tell)
    async def work(job: Job) -> None:
        raise ValueError("broken")

    job = await run(queue, work)

    assert (job.state, job.attempts) == (JobState.FAILED, 2)
    [told] = await queue.list(kind="tell")
    assert told.payload == {"job": job.id, "why": "broken"}


async def test_a_failure_is_written_even_if_nothing_can_follow_from_it(queue: Queue) -> None:
    def tell(job: Job, why: str) -> list[NewJob]:
        raise RuntimeError("cannot tell")

    @handler("work", on_failure=tell)
    async def work(job: Job) -> Fail:
        return Fail("broken")

    assert (await run(queue, work)).state is JobState.FAILED


async def test_done_hands_on_to_the_next_stage(queue: Queue) -> None:
    @handler("first")
    async def first(job: Job) -> Done:
        return Done("one", then=[NewJob("second", {"from": job.id})])

    @handler("second", queue="later")
    async def second(job: Job, payload: Any) -> Any:
        return payload["from"]

    job = await queue.enqueue("first")
    await Worker(queue, [first, second]).run(until_idle=True)

    [next_one] = await queue.list(kind="second")
    assert next_one.queue == "later"
    assert (await queue.get(next_one.id)).result == job.id


async def test_unknown_error_is_tried_again_as_the_back_off_says(queue: Queue) -> None:
    """U7, J3: retried with back-off until the attempts are used up, then failed with its error."""
    waits = []

    def backoff(attempts: int) -> float:
        waits.append(attempts)
        return 0.0

    @handler("work", max_attempts=3, backoff=backoff)
    async def work(job: Job) -> None:
        raise KeyError("nobody knows")

    job = await run(queue, work)

    assert (job.state, job.attempts) == (JobState.FAILED, 3)
    assert waits == [0, 1, 2]
    assert job.error == "KeyError: 'nobody knows'"
    assert [error.type for error in job.errors] == ["KeyError"] * 3


async def test_handlers_attempts_hold_for_jobs_enqueued_elsewhere(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await queue.enqueue("work")  # where nobody knows the handler

    @handler("work", max_attempts=2, backoff="none")
    async def work(job: Job) -> None:
        raise ValueError

    await Worker(queue, [work]).run(until_idle=True)

    assert (await queue.get(job.id)).attempts == 2


async def test_transient_error_waits_as_long_as_it_asks(queue: Queue) -> None:
    class Busy(StoreUnavailable):
        retry_after = 3600.0

    @handler("work", backoff="none")
    async def work(job: Job) -> None:
        raise Busy

    job = await run(queue, work)

    assert (job.state, job.attempts) == (JobState.SCHEDULED, 1)
    assert (job.run_at - job.created_at).total_seconds() > 3500


async def test_permanent_error_fails_at_once(queue: Queue) -> None:
    @handler("work", backoff="none")
    async def work(job: Job) -> None:
        raise ConfigError("no such model")

    job = await run(queue, work)

    assert (job.state, job.attempts) == (JobState.FAILED, 1)
    assert job.error == "ConfigError: no such model"


async def test_rate_limit_parks_the_key_and_uses_no_attempt(queue: Queue) -> None:
    """N6: the whole key waits, and nobody's attempts are burnt."""
    calls = []

    @handler("work", limits=["api:x"])
    async def work(job: Job) -> None:
        calls.append(job.id)
        raise RateLimited("api:x", retry_after=3600)

    await queue.enqueue_many([NewJob("work") for _ in range(20)])
    await Worker(queue, [work], concurrency=1).run(until_idle=True)

    [limit] = await queue.limits()
    assert limit.parked_until is not None
    assert len(calls) <= 2  # those that were claimed before the key was parked
    jobs = await queue.list(kind="work")
    assert {job.state for job in jobs} <= {JobState.HELD, JobState.READY}
    assert {job.attempts for job in jobs} == {0}


async def test_rate_limit_of_another_key_snoozes_the_job(queue: Queue) -> None:
    @handler("work")
    async def work(job: Job) -> None:
        raise RateLimited("api:y", retry_after=3600)

    job = await run(queue, work)

    assert (job.state, job.attempts) == (JobState.SCHEDULED, 0)


@pytest.mark.parametrize(
    ("outcome", "state", "attempts"),
    [
        (Fail("never"), JobState.FAILED, 1),
        (Cancel("not wanted"), JobState.CANCELLED, 0),
        (Snooze(3600), JobState.SCHEDULED, 0),
        (Retry("later", after=3600), JobState.SCHEDULED, 1),
    ],
)
async def test_returned_outcome_is_taken_as_it_is(
    queue: Queue, outcome: Any, state: JobState, attempts: int
) -> None:
    @handler("work")
    async def work(job: Job) -> Any:
        return outcome

    job = await run(queue, work)

    assert (job.state, job.attempts) == (state, attempts)


async def test_result_that_cannot_be_stored_fails_the_job(queue: Queue) -> None:
    @handler("work")
    async def work(job: Job) -> object:
        return object()

    job = await run(queue, work)

    assert job.state is JobState.FAILED
    assert "result" in (job.error or "")


async def test_handler_that_takes_too_long_is_stopped(queue: Queue) -> None:
    stopped = []

    @handler("work", timeout=0.05, max_attempts=1)
    async def work(job: Job) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append(job.id)
            raise

    job = await run(queue, work)

    assert job.state is JobState.FAILED
    assert job.error == "HandlerTimeout: stopped after 0.05 seconds, the handler's timeout"
    assert stopped == [job.id]


async def test_thread_that_takes_too_long_is_interrupted(queue: Queue) -> None:
    ended = threading.Event()

    @handler("work", timeout=0.5, max_attempts=1)  # time enough for a thread to begin
    def work(job: Job) -> None:
        try:
            while True:
                time.sleep(0.001)
        finally:
            ended.set()

    job = await run(queue, work)

    assert "HandlerTimeout" in (job.error or "")
    assert await asyncio.to_thread(ended.wait, 30)  # the worker does not wait for the thread


async def test_handler_that_exits_fails_its_job_only(queue: Queue) -> None:
    @handler("work", max_attempts=1)
    async def work(job: Job) -> None:
        raise SystemExit(3)

    assert (await run(queue, work)).error == "SystemExit: 3"


@dataclass
class Point:
    x: int
    y: int = 0


class Image(msgspec.Struct):
    url: str
    width: int


class Note(TypedDict):
    text: str


@pytest.mark.parametrize(
    ("wanted", "payload", "seen"),
    [
        (Point, {"x": 1}, "Point(x=1, y=0)"),
        (Image, {"url": "a", "width": 3}, "Image(url='a', width=3)"),
        (Note, {"text": "grüß dich 你好"}, "{'text': 'grüß dich 你好'}"),
    ],
)
async def test_payload_comes_as_the_type_the_handler_names(
    queue: Queue, wanted: Any, payload: Any, seen: str
) -> None:
    @handler("work")
    async def work(job: Job, payload: wanted) -> str:
        return repr(payload)

    assert (await run(queue, work, payload)).result == seen


async def test_payload_that_does_not_fit_fails_at_once_and_names_the_field(queue: Queue) -> None:
    @handler("work")
    async def work(job: Job, payload: Image) -> None:
        raise AssertionError("never called")

    job = await run(queue, work, {"url": "a", "width": "wide"})

    assert (job.state, job.attempts) == (JobState.FAILED, 1)
    assert "Image" in (job.error or "")
    assert "$.width" in (job.error or "")


@pytest.mark.parametrize(
    ("payload", "notes"),
    [
        ({"url": "a", "width": 1}, [("begun",), ("no such call",)]),
        ({"width": 1}, [("the payload of this 'work' job is not a valid Image",)]),
    ],
)
async def test_a_failure_is_committed_with_what_is_written_of_it(
    queue: Queue, run_sql, payload: Any, notes: list[tuple[str]]
) -> None:
    """Of a run that fails, and of one that never begins because its payload does not fit. What the
    run has saved stays, what it has not saved goes."""
    run_sql("create table effect (note varchar(90) not null)")

    async def note(job: Job, why: str) -> list[NewJob]:
        await job.tx.execute("insert into effect values ($1)", why.split(":")[0])
        return [NewJob("tell", queue="later")]

    @handler("work", on_failure=note)
    async def work(job: Job, payload: Image) -> Fail:
        await job.tx.execute("insert into effect values ($1)", "begun")
        await job.tx.save()
        await job.tx.execute("insert into effect values ($1)", "half done")
        return Fail("no such call")

    job = await run(queue, work, payload)

    assert job.state is JobState.FAILED
    assert run_sql("select note from effect") == notes
    assert len(await queue.list(kind="tell")) == 1


async def test_a_failure_is_written_even_if_what_is_to_be_written_of_it_cannot_be(
    queue: Queue,
) -> None:
    async def note(job: Job, why: str) -> list[NewJob]:
        await job.tx.execute("insert into nowhere values (1)")
        return []

    @handler("work", on_failure=note)
    async def work(job: Job) -> Fail:
        return Fail("no such call")

    job = await run(queue, work)
    assert (job.state, job.error) == (JobState.FAILED, "no such call")


async def test_effect_in_the_jobs_transaction_is_there_exactly_once(queue: Queue, run_sql) -> None:
    """A run that fails leaves nothing; the one that is done leaves its row."""
    run_sql("create table effect (note varchar(20) not null)")

    @handler("work", backoff="none")
    async def work(job: Job) -> None:
        await job.tx.execute(f"insert into effect values ('run {job.attempts}')")
        if job.attempts < 2:
            raise ValueError("not yet")

    job = await run(queue, work)

    assert job.state is JobState.COMPLETED
    assert run_sql("select note from effect") == [("run 2",)]
