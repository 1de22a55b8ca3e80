"""The parts of a worker that fail: they are restarted, reported, and stop the worker in the end."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from windrow import Fail, Job, NewJob, Queue, Retry, Snooze, Worker, handler
from windrow.errors import StoreUnavailable, WorkerBroken
from windrow.queue.job import JobState
from windrow.queue.store import Store
from windrow.services.examination import BROKEN, find_trouble
from windrow.worker import heartbeat, runs
from windrow.worker.service import Service

PATIENCE = 30.0


class Failing(Service):
    """Fails so many times, then works."""

    give_up_seconds = 0.5

    def __init__(self, error: BaseException, times: int = 10**6) -> None:
        super().__init__()
        self.error = error
        self.left = times

    async def run_once(self) -> float:
        if not self.left:
            self.stop()
            return 0.0
        self.left -= 1
        raise self.error


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3), asyncio.CancelledError()])
async def test_service_that_keeps_failing_gives_up(error: BaseException) -> None:
    failing = Failing(error)
    with pytest.raises(WorkerBroken, match="its failing keeps failing"):
        await asyncio.wait_for(failing.run(), PATIENCE)
    assert failing.trouble.report is not None


async def test_service_that_works_again_has_nothing_to_report() -> None:
    failing = Failing(KeyError("x"), times=3)
    await asyncio.wait_for(failing.run(), PATIENCE)
    assert failing.trouble.report is None


class Seldom(Failing):
    """Has something to do every other time."""

    async def run_once(self) -> float:
        self.has_worked = not self.has_worked
        return await super().run_once() if self.has_worked else 0.0


async def test_service_with_nothing_to_do_in_between_gives_up() -> None:
    with pytest.raises(WorkerBroken):
        await asyncio.wait_for(Seldom(KeyError("x")).run(), PATIENCE)


async def test_service_does_not_give_up_while_the_database_is_away() -> None:
    failing = Failing(StoreUnavailable())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(failing.run(), 3 * failing.give_up_seconds)
    assert failing.trouble.report is None


async def test_worker_with_a_broken_part_says_so_and_stops_with_an_error(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def extend_leases(*args: Any) -> Any:
        raise KeyError("no such column")

    @handler("wait", lease=1)
    async def wait(job: Job) -> None:
        await asyncio.sleep(PATIENCE)

    monkeypatch.setattr(type(queue.store), "extend_leases", extend_leases)
    monkeypatch.setattr(Service, "give_up_seconds", 2.0)
    monkeypatch.setattr(heartbeat, "SAY_SECONDS", 0.1)
    await queue.enqueue("wait")
    running = asyncio.create_task(Worker(queue, [wait], grace=0).run())
    async with asyncio.timeout(PATIENCE):
        while await find_trouble(queue) != BROKEN:
            await asyncio.sleep(0.05)
        [worker] = await queue.workers()
        assert worker.trouble is not None
        assert "heartbeat failed" in worker.trouble
        with pytest.raises(WorkerBroken, match="heartbeat"):
            await running
    assert any(record.levelno == logging.CRITICAL for record in caplog.records)


async def test_end_that_the_store_refuses_fails_its_job_and_no_other(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the store raises: the end becomes a failure, and that one in plain text."""
    finish_jobs = type(queue.store).finish_jobs

    async def refuse(self: Store, finishes: Any, **options: Any) -> Any:
        for finish in finishes:
            if finish.result == b'"refused"' or (
                finish.error and finish.error.type == "ValueError"
            ):
                raise ValueError("cannot be stored")
        return await finish_jobs(self, finishes, **options)

    @handler("work")
    async def work(job: Job, payload: str) -> str:
        return payload

    monkeypatch.setattr(type(queue.store), "finish_jobs", refuse)
    jobs = await queue.enqueue_many([NewJob("work", p) for p in ["good", "refused"] * 20])
    await asyncio.wait_for(Worker(queue, [work]).run(until_idle=True), PATIENCE)
    found = await queue.get_many([job.id for job in jobs])
    for job in found.values():
        if job.payload == "good":
            assert (job.state, job.crashes) == (JobState.COMPLETED, 0)
        else:
            assert (job.state, job.crashes) == (JobState.FAILED, 0)
            assert job.error is not None
            assert "cannot be stored" in job.error


async def test_ends_that_are_refused_one_at_a_time_are_reported(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A completer that has nothing to write in between does not work again."""
    begun = 0

    async def refuse(*args: Any, **options: Any) -> Any:
        raise ValueError("no end can be stored")

    @handler("work")
    async def work(job: Job) -> None:
        nonlocal begun
        begun += 1

    monkeypatch.setattr(type(queue.store), "finish_jobs", refuse)
    worker = Worker(queue, [work])
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(PATIENCE):
        for count in range(1, 4):
            await queue.enqueue("work")
            while begun < count or len(worker._runs) or worker._completer.has_worked:
                await asyncio.sleep(0.01)
        while worker._find_trouble() is None:
            await asyncio.sleep(0.01)
    assert "completer failed 3 times" in str(worker._find_trouble())
    worker.stop(now=True)
    await running


async def test_lease_of_an_end_that_cannot_be_written_lapses(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish_jobs = type(queue.store).finish_jobs
    unlucky: list[str] = []

    async def refuse(self: Store, finishes: Any, **options: Any) -> Any:
        if any(finish.id in unlucky for finish in finishes):
            raise StoreUnavailable("for this one job only")
        return await finish_jobs(self, finishes, **options)

    @handler("work", lease=1)
    async def work(job: Job) -> None:
        if job.runs == 1:
            unlucky.append(job.id)
        else:
            unlucky.clear()

    monkeypatch.setattr(type(queue.store), "finish_jobs", refuse)
    monkeypatch.setattr(runs, "UNWRITTEN_SECONDS", 1.0)
    job = await queue.enqueue("work")
    worker = Worker(queue, [work])
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(PATIENCE):
            ended = await queue.wait(job.id)
    finally:
        worker.stop()
        await running
    assert (ended.state, ended.runs, ended.crashes) == (JobState.COMPLETED, 2, 1)


async def test_snooze_of_nothing_does_not_spin(queue: Queue) -> None:
    count = 0

    @handler("work")
    async def work(job: Job) -> Snooze:
        nonlocal count
        count += 1
        return Snooze(None)  # type: ignore[arg-type]

    job = await queue.enqueue("work")
    await asyncio.wait_for(Worker(queue, [work]).run(until_idle=True), PATIENCE)
    assert (count, (await queue.get(job.id)).state) == (1, JobState.FAILED)


@pytest.mark.parametrize("backoff", [lambda n: None, lambda n: "soon", lambda n: 1 / 0, lambda: 1])
@pytest.mark.parametrize("batch", [None, 3])
async def test_broken_back_off_fails_the_job(queue: Queue, backoff: Any, batch: int | None) -> None:
    @handler("work", backoff=backoff, batch=batch)
    async def work(jobs: Any) -> Any:
        return [Retry("again")] if batch else Retry("again")

    @handler("raise", backoff=backoff, batch=batch)
    async def throw(jobs: Any) -> Any:
        raise ValueError("again")

    jobs = [await queue.enqueue("work"), await queue.enqueue("raise")]
    await asyncio.wait_for(Worker(queue, [work, throw]).run(until_idle=True), PATIENCE)
    for job in jobs:
        found = await queue.get(job.id)
        assert found.state is JobState.FAILED
        assert "back-off" in found.errors[-1].message


class Halt(BaseException): ...


def halt(job: Job, why: str) -> Any:
    raise Halt


@pytest.mark.parametrize(
    "on_failure",
    [
        *(lambda job, why: 5, lambda job, why: NewJob("x"), lambda job, why: ["x"], halt),
        *(lambda job, why: exit(2), lambda job: [], lambda job, why: [NewJob("")]),
    ],
)
async def test_on_failure_that_returns_or_raises_anything_does_not_stop_the_worker(
    queue: Queue, on_failure: Any
) -> None:
    @handler("bad", on_failure=on_failure)
    async def bad(job: Job) -> Fail:
        await job.tx.execute("select 1")
        return Fail("bad")

    @handler("good")
    async def good(job: Job) -> None: ...

    jobs = await queue.enqueue_many([NewJob("bad"), *[NewJob("good")] * 5])
    await asyncio.wait_for(Worker(queue, [bad, good]).run(until_idle=True), PATIENCE)
    found = await queue.get_many([job.id for job in jobs])
    states = [found[job.id].state for job in jobs]
    assert states == [JobState.FAILED, *[JobState.COMPLETED] * 5]
    assert found[jobs[0].id].error == "bad"


async def test_on_failure_may_return_nothing(queue: Queue, run_sql: Any) -> None:
    @handler("bad", on_failure=lambda job, why: None)  # type: ignore[arg-type,return-value]
    async def bad(job: Job) -> Fail:
        return Fail("bad")

    job = await queue.enqueue("bad")
    await asyncio.wait_for(Worker(queue, [bad]).run(until_idle=True), PATIENCE)
    assert (await queue.get(job.id)).error == "bad"


async def test_handler_that_changes_its_job_harms_no_other(queue: Queue) -> None:
    @handler("bad", lease=2)
    async def bad(job: Job) -> None:
        job.id, job.lease_token, job.lease_seconds = 5, 7, "x"  # type: ignore[assignment]
        job.attempts = job.max_attempts = None  # type: ignore[assignment]

    @handler("good")
    async def good(job: Job) -> None: ...

    jobs = await queue.enqueue_many([NewJob("bad", max_crashes=1), *[NewJob("good")] * 20])
    worker = Worker(queue, [bad, good])
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(PATIENCE):
            ended = [await queue.wait(job.id) for job in jobs]
    finally:
        worker.stop()
        await running
    assert ended[0].state is JobState.FAILED
    assert {(job.state, job.crashes) for job in ended[1:]} == {(JobState.COMPLETED, 0)}


async def test_retries_that_a_run_caused_are_waited_for(queue: Queue) -> None:
    @handler("retry", backoff=0.3)
    async def retry(job: Job) -> Any:
        return None if job.runs == 3 else Retry("not yet")

    @handler("snooze")
    async def snooze(job: Job) -> Any:
        return None if job.runs == 3 else Snooze(0.3)

    jobs = [await queue.enqueue("retry"), await queue.enqueue("snooze")]
    later = await queue.enqueue("retry", delay=3600)
    await asyncio.wait_for(Worker(queue, [retry, snooze]).run(until_idle=True), PATIENCE)
    assert [(await queue.get(job.id)).state for job in jobs] == [JobState.COMPLETED] * 2
    assert (await queue.get(later.id)).state is JobState.SCHEDULED


async def test_retries_are_waited_for_so_long_in_sum_and_no_longer(queue: Queue) -> None:
    @handler("for ever")
    async def for_ever(job: Job) -> Snooze:
        return Snooze(0.4)  # on a busy machine some come due during a look, and none waits for them

    @handler("late")
    async def late(job: Job) -> Snooze:
        return Snooze(3600)

    jobs = [await queue.enqueue("for ever"), await queue.enqueue("late")]
    run = Worker(queue, [for_ever, late]).run(until_idle=True, wait_for_retries=1)
    await asyncio.wait_for(run, PATIENCE)
    found = [await queue.get(job.id) for job in jobs]
    assert [job.state for job in found] == [JobState.SCHEDULED] * 2
    assert 2 <= found[0].runs <= 6
    assert found[1].runs == 1


async def test_retry_that_comes_due_during_the_last_look_is_not_left(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = queue.counts

    async def slow_counts() -> Any:
        found = await counts()
        await asyncio.sleep(0.6)
        return found

    @handler("retry", backoff=0.3)
    async def retry(job: Job) -> Any:
        return None if job.runs == 3 else Retry("not yet")

    job = await queue.enqueue("retry")
    monkeypatch.setattr(queue, "counts", slow_counts)
    worker = Worker(queue, [retry], maintain=False)
    await asyncio.wait_for(worker.run(until_idle=True), PATIENCE)
    assert (await queue.get(job.id)).state is JobState.COMPLETED


async def test_held_jobs_that_others_let_go_now_and_then_are_waited_for(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tend_nothing() -> int:
        return 0

    @handler("held", limits=["key"])
    async def held(job: Job) -> None: ...

    await queue.set_limit("key", per_second=1.5, burst=1)
    jobs = await queue.enqueue_many([NewJob("held") for _ in range(6)])
    worker = Worker(queue, [held])
    # As on a busy machine: what is held is let go by the worker's promoter, or another process.
    monkeypatch.setattr(queue, "tend", tend_nothing)
    await asyncio.wait_for(worker.run(until_idle=True), PATIENCE)
    assert {(await queue.get(job.id)).state for job in jobs} == {JobState.COMPLETED}


async def test_signal_says_what_still_runs(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    begun = asyncio.Event()

    @handler("wait")
    async def wait(job: Job) -> None:
        begun.set()
        await asyncio.sleep(PATIENCE)

    await queue.enqueue("wait")
    worker = Worker(queue, [wait], grace=PATIENCE)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        worker.stop_by_signal()
        worker.stop_by_signal()
        await running
    said = [record.getMessage() for record in caplog.records if "stopping" in record.getMessage()]
    assert said == [
        "stopping: 1 job may run for up to 30 s (wait); a second Ctrl-C hands back what still runs",
        "stopping at once: 1 job handed back, to be run again",
    ]
