"""What a job costs Postgres in write-ahead log, from its enqueue to its end: a budget, in bytes.

Bytes do not depend on how busy the machine is, so this can guard what a benchmark would only show.
The server is a private one, since the log is that of a whole server.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres_server import TEST_SETTINGS, PostgresServer, create_database
from windrow import Job, NewJob, Queue, Worker, handler
from windrow.queue.job import JobState

BUDGET = 1600
JOBS = 4000
PAYLOAD = {"url": "https://example.org/page", "text": "x" * 158}  # 200 bytes of JSON
# Full pages as in production; no vacuum of its own, which would write when it likes.
SETTINGS = {**TEST_SETTINGS, "full_page_writes": "on"}


@pytest.fixture
def private_url() -> Iterator[str]:
    server = PostgresServer(settings=SETTINGS)
    server.start()
    try:
        yield create_database(server.url())
    finally:
        server.stop()


def written(url: str) -> int:
    """Bytes of log so far."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert row is not None
    return int(row[0])


async def test_a_job_writes_no_more_log_than_its_budget(private_url: str) -> None:
    ran = 0

    @handler("budget")
    async def run(job: Job) -> None:
        nonlocal ran
        ran += 1

    async with Queue.open(private_url, migrate=True) as queue:
        before = written(private_url)
        for _ in range(JOBS // 1000):
            await queue.enqueue_many([NewJob("budget", PAYLOAD)] * 1000)
        enqueued = written(private_url)
        await Worker(queue, [run]).run(until_idle=True)
        after = written(private_url)
        assert (await queue.counts())[JobState.COMPLETED] == ran == JOBS
    of_enqueue, of_run = (enqueued - before) / JOBS, (after - enqueued) / JOBS
    assert of_enqueue + of_run <= BUDGET, f"{of_enqueue:.0f} + {of_run:.0f} bytes for a job"
    # A budget that counted nothing would always be kept.
    assert of_enqueue > 200
    assert of_run > 200


async def test_a_group_key_costs_log_only_to_those_who_have_one(private_url: str) -> None:
    """Jobs of a group that has a cap and keys, and of one that has neither."""
    costs = {}
    async with Queue.open(private_url, migrate=True) as queue:
        for name, max_jobs in (("plain", None), ("capped", 10 * JOBS)):
            group = await queue.create_group(max_jobs=max_jobs)
            await queue.keep_group_keys(group.id, ["warm"], job=group.id)
            before = written(private_url)
            for _ in range(JOBS // 1000):
                await queue.enqueue_many([NewJob("budget", PAYLOAD, group=group.id)] * 1000)
            costs[name] = (written(private_url) - before) / JOBS
    assert costs["capped"] == pytest.approx(costs["plain"], rel=0.1)
