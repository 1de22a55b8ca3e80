"""A worker's life: what it takes, how many at once, how it stops, and what it does when a job was
lost, stopped, or keeps crashing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.conftest import OpenAnother
from windrow import Done, Job, NewJob, Queue, Worker, handler
from windrow.errors import ConfigError
from windrow.queue.job import JobState
from windrow.queue.retaining import MAINTENANCE
from windrow.queue.store import Store
from windrow.worker.registry import Handler


@asynccontextmanager
async def working(worker: Worker) -> AsyncIterator[Worker]:
    """The worker at work; told to stop at the end."""
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop(now=True)
        await task


def heard_of_soon(one: Handler) -> Handler:
    """A handler whose worker soon hears that a job is lost or is to stop, as by a lease of a
    second, and that loses none because the machine stood still for one. The lease is short all the
    same: who renews a long one is not told of those of others."""
    return replace(one, lease=9, heartbeat=0.2)


async def test_no_more_handlers_run_at_once_than_allowed(queue: Queue) -> None:
    running, most = 0, 0
    all_run = asyncio.Event()

    @handler("work")
    async def work(job: Job) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 7:
            all_run.set()
        await all_run.wait()
        await asyncio.sleep(0.005)
        running -= 1

    await queue.enqueue_many([NewJob("work") for _ in range(60)])
    async with asyncio.timeout(60):
        await Worker(queue, [work], concurrency=7).run(until_idle=True)

    assert most == 7
    assert (await queue.counts())[JobState.COMPLETED] == 60


async def test_kinds_nobody_knows_here_stay_ready(queue: Queue) -> None:
    """A rolling deploy: the new kind waits for a worker that knows it."""

    @handler("old")
    async def old(job: Job) -> None: ...

    await queue.enqueue_many([NewJob("new"), NewJob("old"), NewJob("new")])
    await Worker(queue, [old]).run(until_idle=True)

    assert [job.state for job in await queue.list(kind="new")] == [JobState.READY] * 2
    assert [job.state for job in await queue.list(kind="old")] == [JobState.COMPLETED]


async def test_worker_takes_only_the_queues_it_is_given(queue: Queue) -> None:
    @handler("work")
    async def work(job: Job) -> None: ...

    await queue.enqueue_many([NewJob("work", queue="mine"), NewJob("work", queue="yours")])
    await Worker(queue, [work], queues=["mine"]).run(until_idle=True)

    assert (await queue.counts("mine"))[JobState.COMPLETED] == 1
    assert (await queue.counts("yours"))[JobState.READY] == 1


async def test_idle_worker_takes_a_new_job(queue: Queue) -> None:
    @handler("work")
    async def work(job: Job) -> str:
        return "done"

    async with working(Worker(queue, [work])):
        for _ in range(3):
            job = await queue.enqueue("work")
            assert (await queue.wait(job.id, timeout=10)).result == "done"


async def test_scheduled_job_runs_when_it_is_due(queue: Queue) -> None:
    @handler("work")
    async def work(job: Job) -> None: ...

    async with working(Worker(queue, [work])):
        job = await queue.enqueue("work", delay=0.2)
        ended = await queue.wait(job.id, timeout=10)

    assert ended.started_at is not None
    assert ended.started_at >= ended.run_at


async def test_cancelled_job_stops_its_handler(queue: Queue) -> None:
    """A4: a running job that is cancelled ends, and is not revived."""
    began, stopped = asyncio.Event(), asyncio.Event()

    @handler("work")
    async def work(job: Job) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert job.stop_as is JobState.CANCELLED
            stopped.set()

    async with working(Worker(queue, [heard_of_soon(work)])):
        job = await queue.enqueue("work")
        await began.wait()
        await queue.cancel(job.id, reason="changed my mind")
        ended = await queue.wait(job.id, timeout=10)

    assert stopped.is_set()
    assert (ended.state, ended.error) == (JobState.CANCELLED, "changed my mind")


async def test_paused_job_goes_on_when_it_is_resumed(queue: Queue) -> None:
    began: list[str] = []

    @handler("work")
    async def work(job: Job) -> str:
        began.append(job.id)
        if len(began) == 1:
            await asyncio.Event().wait()
        return "after the pause"

    async with working(Worker(queue, [heard_of_soon(work)])):
        job = await queue.enqueue("work")
        await _until(lambda: began)
        await queue.pause_job(job.id)
        await _until_state(queue, job.id, JobState.PAUSED)
        await queue.resume_job(job.id)
        ended = await queue.wait(job.id, timeout=10)

    assert (ended.result, ended.attempts) == ("after the pause", 0)


async def test_lost_lease_stops_the_handler_and_its_end_is_refused(
    queue: Queue, open_another: OpenAnother
) -> None:
    """N2: the worker whose lock was lost is told and stops."""
    stopped = asyncio.Event()
    began: list[int] = []

    @handler("work")
    async def work(job: Job) -> str:
        began.append(job.runs)
        if job.runs == 1:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
        return f"run {job.runs}"

    async with working(Worker(queue, [heard_of_soon(work)])):
        job = await queue.enqueue("work")
        await _until(lambda: began)
        await _lose_lease(await open_another(), job.id)
        ended = await queue.wait(job.id, timeout=15)

    assert stopped.is_set()
    assert (ended.result, ended.crashes) == ("run 2", 1)


async def test_jobs_own_short_lease_is_renewed_in_time(queue: Queue) -> None:
    """The worker's leases are long; this job brought a short one, which is renewed twice while the
    worker would not renew its own once. Not so short that a machine which stands still ends it."""
    renewed_at: list[datetime] = []

    @handler("work")
    async def work(job: Job) -> str:
        while len(renewed_at) < 3:
            expires_at = (await queue.get(job.id)).lease_expires_at
            assert expires_at is not None
            if expires_at not in renewed_at:
                renewed_at.append(expires_at)
            await asyncio.sleep(0.01)
        return "in one run"

    async with working(Worker(queue, [work], lease=600)):
        job = await queue.enqueue("work", lease=5)
        ended = await queue.wait(job.id, timeout=60)

    assert (ended.result, ended.runs, ended.crashes) == ("in one run", 1, 0)
    assert renewed_at == sorted(renewed_at)


async def test_stopping_worker_lets_running_handlers_end(queue: Queue) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    @handler("work")
    async def work(job: Job) -> str:
        began.set()
        await go_on.wait()
        return "ended in time"

    job = await queue.enqueue("work")
    worker = Worker(queue, [work], grace=30)
    task = asyncio.create_task(worker.run())
    await began.wait()
    worker.stop()
    later = await queue.enqueue("work")
    go_on.set()
    await task

    assert (await queue.get(job.id)).result == "ended in time"
    assert (await queue.get(later.id)).state is JobState.READY


async def test_handler_that_outlives_the_grace_period_is_handed_back(queue: Queue) -> None:
    """No attempt and no crash is counted, and the next worker can have it at once."""
    began = asyncio.Event()

    @handler("work")
    async def work(job: Job) -> None:
        began.set()
        await asyncio.Event().wait()

    await queue.enqueue_many([NewJob("work") for _ in range(3)])
    worker = Worker(queue, [work], concurrency=2, grace=0.05)
    task = asyncio.create_task(worker.run())
    await began.wait()
    worker.stop()
    await task

    jobs = await queue.list()
    assert {job.state for job in jobs} == {JobState.READY}
    assert {(job.attempts, job.crashes) for job in jobs} == {(0, 0)}


async def test_claim_that_is_on_its_way_when_the_worker_stops_is_handed_back(store: Store) -> None:
    """Its jobs are ready at once, and no crash is counted."""
    held, go_on = asyncio.Event(), asyncio.Event()

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def claim_jobs(self, claim: Any) -> Any:
            jobs = await store.claim_jobs(claim)
            held.set()
            await go_on.wait()
            return jobs

    @handler("work")
    async def work(job: Job) -> None:
        raise AssertionError("the worker was told to stop")

    slow: Any = Slow()
    queue = Queue(slow)
    job = await queue.enqueue("work")
    worker = Worker(queue, [work])
    task = asyncio.create_task(worker.run())
    await held.wait()
    worker.stop()
    go_on.set()
    await task

    left = await queue.get(job.id)
    assert (left.state, left.runs, left.attempts, left.crashes) == (JobState.READY, 1, 0, 0)


async def test_second_stop_does_not_wait_for_the_grace_period(queue: Queue) -> None:
    began = asyncio.Event()

    @handler("work")
    async def work(job: Job) -> None:
        began.set()
        await asyncio.Event().wait()

    job = await queue.enqueue("work")
    worker = Worker(queue, [work], grace=3600)
    task = asyncio.create_task(worker.run())
    await began.wait()
    worker.stop()
    worker.stop()
    async with asyncio.timeout(30):
        await task

    assert (await queue.get(job.id)).state is JobState.READY


@pytest.mark.parametrize("was_stopped", [False, True])
async def test_cancelled_worker_hands_back_what_runs(queue: Queue, was_stopped: bool) -> None:
    """As by Ctrl-C in `asyncio.run`, or by a timeout around `run`, within the grace period too."""
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @handler("work")
    async def work(job: Job) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    running, waiting = await queue.enqueue_many([NewJob("work")] * 2)
    worker = Worker(queue, [work], concurrency=1)
    task = asyncio.create_task(worker.run())
    async with asyncio.timeout(60):
        await begun.wait()
        if was_stopped:
            worker.stop()
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert cancelled.is_set()
    for job in (await queue.get_many([running.id, waiting.id])).values():
        assert (job.state, job.attempts, job.crashes) == (JobState.READY, 0, 0)
    assert await queue.workers() == []


async def test_job_that_almost_crashed_too_often_runs_alone(queue: Queue, store: Store) -> None:
    """Whatever it takes down with it, nobody else's crash is counted."""
    suspect = await queue.enqueue("work", max_crashes=3)
    await _crash(queue, store, suspect.id)
    together: dict[str, int] = {}

    @handler("work")
    async def work(job: Job) -> None:
        await asyncio.sleep(0.01)
        together[job.id] = len(await queue.list(state="active"))

    await queue.enqueue_many([NewJob("work") for _ in range(10)])
    await Worker(queue, [work], concurrency=5).run(until_idle=True)

    assert together.pop(suspect.id) == 1
    assert max(together.values()) > 1
    assert (await queue.counts())[JobState.COMPLETED] == 11


async def test_job_of_a_batch_that_almost_crashed_too_often_is_a_batch_of_its_own(
    queue: Queue, store: Store
) -> None:
    suspect = await queue.enqueue("work", {"n": 0}, max_crashes=3)
    await _crash(queue, store, suspect.id)
    batches: list[list[int]] = []

    @handler("work", batch=10)
    async def work(jobs: list[Job], payloads: list[dict[str, int]]) -> list[int]:
        batches.append([payload["n"] for payload in payloads])
        return [payload["n"] for payload in payloads]

    await queue.enqueue_many([NewJob("work", {"n": n}) for n in range(1, 4)])
    await Worker(queue, [work]).run(until_idle=True)

    assert sorted(batches, key=len) == [[0], [1, 2, 3]]
    assert (await queue.get(suspect.id)).result == 0


async def test_worker_is_listed_while_it_lives(queue: Queue) -> None:
    @handler("work")
    async def work(job: Job) -> None: ...

    worker = Worker(queue, [work], concurrency=3, name="mine")
    async with working(worker):
        while not (found := await queue.workers()):
            await asyncio.sleep(0.01)

    [one] = found
    assert (one.id, one.name, one.kinds, one.concurrency) == (worker.id, "mine", ("work",), 3)
    assert await queue.workers() == []


async def test_two_workers_share_the_work_and_nothing_runs_twice(
    queue: Queue, open_another: OpenAnother
) -> None:
    seen: list[str] = []

    @handler("work")
    async def work(job: Job) -> None:
        seen.append(job.id)
        await asyncio.sleep(0)

    other = Queue(await open_another())
    made = await queue.enqueue_many([NewJob("work") for _ in range(500)])
    await asyncio.gather(
        Worker(queue, [work], concurrency=20).run(until_idle=True),
        Worker(other, [work], concurrency=20).run(until_idle=True),
    )

    assert sorted(seen) == sorted(one.id for one in made)


async def test_group_of_a_fan_out_ends_with_its_finish_job(queue: Queue) -> None:
    @handler("crawl")
    async def crawl(job: Job) -> Done:
        group = await queue.create_group(root=job, then=NewJob("finish"))
        pages = [NewJob("page", {"n": n}, group=group.id) for n in range(20)]
        return Done("kicked off", then=pages)

    @handler("page")
    async def page(job: Job, payload: Any) -> int:
        return payload["n"]

    @handler("finish")
    async def finish(job: Job) -> str:
        return "all pages are there"

    root = await queue.enqueue("crawl")
    await Worker(queue, [crawl, page, finish]).run(until_idle=True)

    assert (await queue.get(root.id)).state is JobState.COMPLETED
    [last] = await queue.list(kind="finish")
    assert (await queue.get(last.id)).result == "all pages are there"


@pytest.mark.requires("settable_clock")
async def test_busy_worker_takes_back_the_jobs_of_the_dead_though_it_does_not_lead(
    queue: Queue, store: Store
) -> None:
    """N2: a leader that was killed has its term to the end; nobody else is elected before."""
    began = asyncio.Event()

    @handler("long")
    async def long(job: Job) -> None:
        began.set()
        await asyncio.Event().wait()

    @handler("short")
    async def short(job: Job) -> int:
        return job.crashes

    assert await store.elect_leader(MAINTENANCE, "dead", 3600)
    left = await queue.enqueue("short")
    lease = await queue.claim(seconds=60)
    await queue.enqueue("long")
    async with working(Worker(queue, [heard_of_soon(long), short], concurrency=2)):
        await began.wait()
        await store.extend_leases([lease.jobs[0].lease_token or ""], 0)
        assert (await queue.wait(left.id, timeout=20)).result == 1


def test_two_handlers_of_a_kind_are_refused() -> None:
    @handler("work")
    async def one(job: Job) -> None: ...

    @handler("work")
    async def other(job: Job) -> None: ...

    with pytest.raises(ConfigError, match="two handlers for the kind 'work'"):
        Worker(None, [one, other])  # type: ignore[arg-type]


async def test_threads_run_beside_each_other(queue: Queue) -> None:
    meet = threading.Barrier(3)

    @handler("work", max_attempts=1)
    def work(job: Job) -> int:
        return meet.wait(timeout=10)

    await queue.enqueue_many([NewJob("work") for _ in range(3)])
    await Worker(queue, [work], concurrency=3).run(until_idle=True)

    assert (await queue.counts())[JobState.COMPLETED] == 3


async def _until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def _until_state(queue: Queue, job_id: str, state: JobState) -> None:
    async with asyncio.timeout(20):
        while (await queue.get(job_id)).state is not state:
            await asyncio.sleep(0.02)


async def _lose_lease(store: Store, job_id: str) -> None:
    """As if the worker had been silent for too long: its lease is over, and the job is rescued."""
    job = (await store.get_jobs([job_id]))[job_id]
    await store.extend_leases([job.lease_token or ""], 0)
    await store.rescue_jobs()


async def _crash(queue: Queue, store: Store, job_id: str) -> None:
    lease = await queue.claim(seconds=60)
    await store.extend_leases([lease.jobs[0].lease_token or ""], 0)
    assert [change.id for change in await store.rescue_jobs()] == [job_id]
