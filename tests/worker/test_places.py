"""Workers share a limit with jobs that cannot run."""

from __future__ import annotations

import asyncio

import pytest

from windrow import Job, Queue, Worker, handler
from windrow.queue.job import JobState
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("limits")


@pytest.mark.parametrize("stuck", ["paused", "unknown kind"])
async def test_worker_gets_the_places_of_jobs_that_cannot_run(store: Store, stuck: str) -> None:
    queue = Queue(store)
    done: list[str] = []
    all_done = asyncio.Event()

    @handler("mail")
    async def mail(job: Job) -> None:
        done.append(job.id)
        if len(done) == 3:
            all_done.set()

    await queue.set_limit("tenant:acme", active=2)
    if stuck == "paused":
        await queue.pause("reports")
        blocked = [
            await queue.enqueue("mail", queue="reports", limits=["tenant:acme"]) for _ in range(2)
        ]
    else:
        blocked = [
            await queue.enqueue("report", queue="reports", limits=["tenant:acme"]) for _ in range(2)
        ]
    for _ in range(3):
        await queue.enqueue("mail", limits=["tenant:acme"])
    worker = Worker(queue, [mail], concurrency=4)
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(20):
            await all_done.wait()
    finally:
        worker.stop()
        await running
    for job in blocked:
        assert (await queue.get(job.id)).state in (JobState.READY, JobState.HELD)
