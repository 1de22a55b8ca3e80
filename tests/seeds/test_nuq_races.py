"""Seed N: NuQ's clients and Windrow's workers on one queue, all at once (N1)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.builders import claim, completion
from tests.seeds import nuq
from tests.seeds.conftest import Connect
from windrow.queue.store import Store

DIALECT = "nuq"
QUEUE = "nuq.queue_scrape"
JOBS = 2000
CONNECTIONS = 8
GROUPS = 10


@pytest.mark.long
async def test_each_of_2000_jobs_is_finished_once_by_either_side_n1(
    db: Any, store: Store, connect: Connect
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
            if runs[str(job["id"])] == 1 and job["id"].int % 40 == 0:  # it dies, and is reaped
                await nuq.age(connection, job["id"], "locked_at", "2 minutes")
                await connection.execute(nuq.REQUEUE_STALLED)
                assert not await nuq.finish(connection, job)
                stale += 1
            else:
                finished[str(job["id"])] += await nuq.finish(connection, job, {"by": "nuq"})

    async def work_as_windrow() -> None:
        while jobs := await claim(store, 10, QUEUE):
            runs.update(job.id for job in jobs)
            ended = await store.finish_jobs([completion(job, {"by": "windrow"}) for job in jobs])
            assert ended.lost == ()
            finished.update(job.id for job in jobs)
            await asyncio.sleep(0.02)  # else it would leave nothing to the others

    connections = [await connect() for _ in range(CONNECTIONS)]
    await asyncio.gather(*map(work_as_nuq, connections), work_as_windrow(), work_as_windrow())

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
    assert sum(counts.values()) == JOBS
    ended = await db.fetch("SELECT status::text FROM nuq.group_crawl")
    assert [row["status"] for row in ended] == ["completed"] * GROUPS
    left = await db.fetch("SELECT group_id FROM nuq.queue_crawl_finished")
    assert {row["group_id"] for row in left} == set(groups)
    assert len(left) == GROUPS
