"""Jobs move to BullMQ and back, with equal counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import boom
from tests.conftest import CopyDatabase
from windrow import NewJob, Queue
from windrow.queue.job import Job, JobState
from windrow.services.copying import copy_database


@pytest.fixture
def postgres(copy_database: CopyDatabase, postgres_template: str) -> Callable[[], str]:
    return lambda: copy_database(postgres_template)


async def _fill(queue: Queue) -> None:
    """Jobs as they wait and as they ended, with what they have behind them."""
    await queue.enqueue_many(
        [NewJob("page", {"n": n, "ü": [1.50]}, queue="web") for n in range(30)]
    )
    await queue.enqueue("late", {"x": 1}, delay=3600, tags=["a"], headers={"h": 1}, priority=9)
    await queue.enqueue("only", unique="key", tenant="acme", max_attempts=7, lease=40)
    await queue.enqueue("done", queue="ends")
    lease = await queue.claim(["ends"])
    await lease.complete(lease.jobs[0], {"ok": True})
    await queue.enqueue("bad", queue="ends", max_attempts=1)
    lease = await queue.claim(["ends"])
    await lease.fail(lease.jobs[0], boom("it broke").message)
    await queue.enqueue("tried", queue="ends")
    lease = await queue.claim(["ends"])
    await lease.jobs[0].step("paid", lambda: {"spent": 5})
    await lease.fail(lease.jobs[0], "once more", retry_in=3600)
    await queue.cancel((await queue.enqueue("unwanted", queue="ends")).id, reason="no need")


async def _look(url: str) -> tuple[dict[JobState, int], dict[str, Job], dict[str, object]]:
    async with Queue.open(url) as queue:
        listed = await queue.list(limit=1000)
        jobs = await queue.get_many([job.id for job in listed])
        steps = {job_id: await queue.steps(job_id) for job_id, job in jobs.items() if job.runs}
        return await queue.counts(), jobs, {key: value for key, value in steps.items() if value}


KEPT = [
    "queue", "kind", "state", "priority", "attempts", "crashes", "max_attempts", "max_crashes",
    "tenant", "unique", "tags", "headers", "payload", "result", "error", "lease_seconds",
]  # fmt: skip


async def test_a_round_trip_over_all_three_stores_loses_and_doubles_nothing(
    tmp_path: Path, postgres: Callable[[], str], url: str
) -> None:
    first, there, back = f"sqlite:///{tmp_path / 'jobs.db'}", postgres(), postgres()
    async with Queue.open(first) as queue:
        await _fill(queue)
    counts, jobs, steps = await _look(first)

    for source, target in ((first, there), (there, url), (url, back)):
        report = await copy_database(source, target, wait=5)
        assert report.is_over, report.reasons
        now_counts, now_jobs, now_steps = await _look(target)
        assert now_counts == counts
        assert now_jobs.keys() == jobs.keys()
        for job_id, job in jobs.items():
            found = now_jobs[job_id]
            assert [getattr(found, name) for name in KEPT] == [getattr(job, name) for name in KEPT]
            assert [error.message for error in found.errors] == [
                error.message for error in job.errors
            ]
            assert abs((found.run_at - job.run_at).total_seconds()) < 0.002
        assert [*now_steps] == [*steps]
        assert not any((await _look(source))[0].values())


async def test_moved_jobs_run_where_they_have_come_to(tmp_path: Path, url: str) -> None:
    first = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(first) as queue:
        await queue.enqueue_many([NewJob("n", n, priority=n % 3) for n in range(12)])
    await copy_database(first, url, wait=5)

    async with Queue.open(url) as queue:
        lease = await queue.claim(limit=100)
        ran = [job.payload for job in lease.jobs]
        for job in lease.jobs:
            await lease.complete(job)

    assert ran == sorted(range(12), key=lambda n: (-(n % 3), n))


async def test_what_bullmq_has_no_place_for_stays_behind_with_a_reason(
    tmp_path: Path, url: str
) -> None:
    first = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(first) as queue:
        limited = await queue.enqueue("limited", limits=["host"])
        await queue.enqueue("plain")
    report = await copy_database(first, url, wait=0)

    assert "limits" in report.reasons[limited.id]
    assert report.moved == {"ready": 1}
    assert report.in_transit == 1


async def test_copies_while_jobs_are_claimed_take_no_job_that_runs(
    tmp_path: Path, url: str
) -> None:
    target = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(url) as queue:
        await queue.enqueue_many([NewJob("n", n) for n in range(60)])
        ran: list[int] = []

        async def work() -> None:
            while lease := await queue.claim(limit=3):
                for job in lease.jobs:
                    await asyncio.sleep(0)
                    await lease.complete(job)
                    ran.append(job.payload)

        await asyncio.gather(work(), copy_database(url, target, wait=10))

    async with Queue.open(target) as moved:
        jobs = await moved.list(limit=1000)
    waiting = [job.payload for job in jobs if job.state is JobState.READY]
    assert sorted(ran + waiting) == list(range(60))
    assert len(jobs) == 60
