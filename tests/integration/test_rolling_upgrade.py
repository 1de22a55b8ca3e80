"""A newer Windrow brings its tables up to date while older workers run."""

from __future__ import annotations

import asyncio

import pytest

from tests.conformance.conftest import run_sql
from windrow import Job, NewJob, Queue, Worker, handler
from windrow.clock import Clock
from windrow.errors import SchemaTooNew
from windrow.queue.job import JobState
from windrow.queue.store import Store

__all__ = ["run_sql"]  # a fixture

ADDITIONS = {
    "postgres": [
        "ALTER TABLE windrow.job ADD COLUMN later_idea integer",
        "ALTER TABLE windrow.job_payload ADD COLUMN later_idea text DEFAULT 'x'",
        "ALTER TABLE windrow.lease ADD COLUMN later_idea text",
        "ALTER TABLE windrow.job_group ADD COLUMN later_idea text",
    ],
    "sqlite": [
        "ALTER TABLE windrow_job_live ADD COLUMN later_idea integer",
        "ALTER TABLE windrow_job_payload ADD COLUMN later_idea text DEFAULT 'x'",
        "ALTER TABLE windrow_lease ADD COLUMN later_idea text",
    ],
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_running_workers_go_on_while_columns_are_added(
    store: Store, store_name: str, run_sql
) -> None:
    queue = Queue(store)
    done = 0
    reached = asyncio.Event()

    @handler("work")
    async def work(job: Job) -> None:
        nonlocal done
        done += 1
        if done == 200:
            reached.set()
        await asyncio.sleep(0.001)

    await queue.enqueue_many([NewJob("work") for _ in range(600)])
    task = asyncio.create_task(Worker(queue, [work], concurrency=20).run(until_idle=True))
    await reached.wait()
    for statement in ADDITIONS[store_name]:
        await _change(store_name, run_sql, statement)
    group = await queue.create_group()
    await queue.enqueue_many([NewJob("work", group=group.id) for _ in range(200)])
    await task

    assert (await queue.counts())[JobState.COMPLETED] == 800
    assert (await queue.group(group.id)).state == "completed"


async def test_worker_that_is_too_old_for_the_tables_is_refused(
    store_url: str, store: Store, store_name: str, run_sql
) -> None:
    version = "INSERT INTO windrow.migration (version, name{}) VALUES (9999, 'from the future'{})"
    at = (", applied_at", ", 0") if store_name == "sqlite" else ("", "")
    await _change(store_name, run_sql, version.format(*at))

    with pytest.raises(SchemaTooNew, match="upgrade Windrow"):
        await Queue.open(store_url)


async def _change(store_name: str, run_sql, statement: str) -> None:
    """Postgres may wait for the worker's transactions, which need the loop; SQLite's connection
    belongs to this thread, and its writer to another."""
    if store_name == "sqlite":
        run_sql(statement)
    else:
        await asyncio.to_thread(run_sql, statement)
