"""Seed N: NuQ's clients and Windrow's workers on one queue, all at once (N1)."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.builders import claim, completion
from tests.seeds import nuq
from tests.seeds.conftest import Connect
from tests.seeds.workers import run_worker
from windrow import Job
from windrow.queue.store import Store

DIALECT = "nuq"
QUEUE = "nuq.queue_scrape"
JOBS = 500
CONNECTIONS = 8
GROUPS = 10
MINUTE = timedelta(minutes=1)


@pytest.mark.long
async def test_each_of_500_jobs_is_finished_once_by_either_side_n1(
    db: Any, store: Store, connect: Connect, dialect_url: str
) -> None:
    groups = [await nuq.add_group(db, nuq.OWNER) for _ in range(GROUPS)]
    await db.executemany(
        nuq.ADD,
        [
            (None, "{}", n % 5, None, None, groups[n // 4 % GROUPS] if n % 4 == 0 else None)
            for n in range(JOBS)
        ],
    )
    runs: Counter[str] = Counter()
    finished: Counter[str] = Counter()
    stale = 0

    async def work_as_nuq(connection: Any) -> None:
        nonlocal stale
        while (job := await nuq.take(connection)) is not None:
            runs[str(job["id"])] += 1
            if runs[str(job["id"])] == 1 and job["id"].int % 10 == 0:  # it dies, and is reaped
                await nuq.age(connection, job["id"], "locked_at", "2 minutes")
                await connection.execute(nuq.REQUEUE_STALLED)
                assert not await nuq.finish(connection, job)
                stale += 1
            else:
                finished[str(job["id"])] += await nuq.finish(connection, job, {"by": "nuq"})

    def note(job: Job) -> None:
        runs[job.id] += 1
        finished[job.id] += 1

    connections = [await connect() for _ in range(CONNECTIONS)]
    worker = asyncio.create_task(run_worker(dialect_url, QUEUE, [QUEUE], note, {"by": "windrow"}))
    await asyncio.gather(*map(work_as_nuq, connections), worker)

    assert len(finished) == JOBS
    assert set(finished.values()) == {1}
    assert stale > 0
    assert sum(runs.values()) == JOBS + stale
    by = await db.fetch(
        "SELECT returnvalue->>'by' AS who, count(*) AS n FROM nuq.queue_scrape "
        "WHERE status = 'completed' GROUP BY 1"
    )
    counts = {row["who"]: row["n"] for row in by}
    assert counts.keys() == {"nuq", "windrow"}
    assert counts["windrow"] == worker.result()
    assert sum(counts.values()) == JOBS
    ended = await db.fetch("SELECT status::text FROM nuq.group_crawl")
    assert [row["status"] for row in ended] == ["completed"] * GROUPS
    left = await db.fetch("SELECT group_id FROM nuq.queue_crawl_finished")
    assert {row["group_id"] for row in left} == set(groups)
    assert len(left) == GROUPS


@pytest.mark.long
async def test_crawls_come_and_go_while_the_cron_jobs_run_n5(
    db: Any, store: Store, connect: Connect
) -> None:
    """Groups that expire when they end, some cancelled, some deleted, with held jobs: whatever
    meets, nobody fails, and nothing is left."""
    crawls = 40
    is_over = asyncio.Event()

    async def crawl(connection: Any, number: int) -> None:
        async with connection.transaction():  # else the cron jobs could find the group empty
            group = await nuq.add_group(connection, nuq.OWNER, ttl=0)
            for n in range(5):
                await nuq.add(connection, group=group, priority=n)
            held = await connection.fetchval(
                nuq.ADD_TO_BACKLOG, "{}", 0, nuq.OWNER, group, datetime.now(UTC) + MINUTE
            )
        if number % 4 == 0:
            await connection.execute(
                "UPDATE nuq.group_crawl SET status = 'cancelled' WHERE id = $1", group
            )
        elif number % 4 == 1:
            await connection.execute("DELETE FROM nuq.group_crawl WHERE id = $1", group)
        else:
            await connection.fetch(nuq.PROMOTE, held)

    async def add_crawls(connection: Any, numbers: range) -> None:
        for number in numbers:
            await crawl(connection, number)

    async def work_as_nuq(connection: Any) -> None:
        while True:
            job = await nuq.take(connection)
            if job is not None:
                await nuq.finish(connection, job, {})
            elif is_over.is_set():
                return

    async def work_as_windrow() -> None:
        while not is_over.is_set():
            if jobs := await claim(store, 5, QUEUE):
                await store.finish_jobs([completion(job) for job in jobs])
            await store.prune_jobs()
            await asyncio.sleep(0.01)

    async def run_cron(connection: Any) -> None:
        while not is_over.is_set():
            for body in nuq.CRON.values():
                await connection.execute(body)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(work_as_nuq(await connect()))
            tasks.create_task(run_cron(await connect()))
        tasks.create_task(work_as_windrow())
        async with asyncio.TaskGroup() as adding:
            for first in range(3):
                adding.create_task(add_crawls(await connect(), range(first, crawls, 3)))
        is_over.set()

    await db.execute(
        "UPDATE nuq.group_crawl SET expires_at = now() - interval '1 s' WHERE status = 'completed'"
    )
    await db.execute(nuq.CLEAN_GROUPS)
    left = await db.fetch("SELECT status::text, id FROM nuq.group_crawl")
    assert {row["status"] for row in left} <= {"cancelled"}
    jobs = await db.fetch("SELECT status::text, group_id FROM nuq.queue_scrape")
    assert {row["group_id"] for row in jobs} <= {row["id"] for row in left}
    assert {row["status"] for row in jobs} <= {"failed", "completed"}
    assert await db.fetchval("SELECT count(*) FROM nuq.queue_scrape_backlog") == 0
    pending = "SELECT id FROM windrow.job_group WHERE pending <> 0 OR state = 'active'"
    assert await db.fetch(pending) == []
