"""A newer Windrow brings its tables up to date while older workers run."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.conformance.conftest import run_sql
from tests.migrations import ADDITIONS, later_migrations
from windrow import Job, NewJob, Queue, Worker, handler
from windrow.clock import Clock
from windrow.errors import SchemaTooNew
from windrow.queue.job import JobState
from windrow.queue.opening import open_store
from windrow.queue.store import Store

__all__ = ["run_sql"]  # a fixture

# Waits until somebody else has locked all of the jobs' table against everybody.
HAS_THE_WHOLE = """
    DO $$ BEGIN
        WHILE NOT EXISTS (SELECT FROM pg_locks
                           WHERE relation = 'windrow.job'::regclass
                             AND mode = 'AccessExclusiveLock' AND granted)
        LOOP
            PERFORM pg_sleep(0.01);
        END LOOP;
    END $$
"""


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_running_workers_go_on_while_columns_are_added(
    store: Store, store_url: str, store_name: str
) -> None:
    queue = Queue(store)
    done = 0
    reached = asyncio.Event()
    added = asyncio.Event()

    @handler("work")
    async def work(job: Job) -> None:
        nonlocal done
        done += 1
        if done == 200:
            reached.set()
        await asyncio.sleep(0.001)

    @handler("stay")
    async def stay(job: Job) -> None:
        """Keeps the worker from being idle, and gone, while the columns are added."""
        await added.wait()

    await queue.enqueue_many([NewJob("stay"), *(NewJob("work") for _ in range(600))])
    task = asyncio.create_task(Worker(queue, [work, stay], concurrency=20).run(until_idle=True))
    await reached.wait()
    with later_migrations(store_name, ADDITIONS[store_name]) as names:
        newer = await open_store(store_url)
        assert await newer.migrate() == names
        await newer.close()
    group = await queue.create_group()
    await queue.enqueue_many([NewJob("work", group=group.id) for _ in range(200)])
    added.set()
    await task

    assert (await queue.counts())[JobState.COMPLETED] == 801
    assert (await queue.group(group.id)).state == "completed"


@pytest.mark.only_on("postgres")
async def test_migration_that_meets_a_worker_in_a_deadlock_is_done_again(
    store: Store, store_url: str
) -> None:
    """A worker's transaction locks a part of a table and then reads the whole; a new column locks
    the whole and then its parts."""
    async with await psycopg.AsyncConnection.connect(store_url) as worker:
        await worker.execute("SET deadlock_timeout = '1min'")  # so that the migration is given up
        await worker.execute("LOCK TABLE windrow.job_live IN ROW EXCLUSIVE MODE")
        with later_migrations("postgres", ADDITIONS["postgres"][:1]) as names:
            migration = asyncio.create_task(store.migrate())
            await worker.execute(HAS_THE_WHOLE)
            await worker.execute("LOCK TABLE windrow.job IN ACCESS SHARE MODE")
            await worker.commit()

            assert await migration == names


async def test_worker_that_is_too_old_for_the_tables_is_refused(
    store_url: str, store: Store, store_name: str, run_sql
) -> None:
    version = "INSERT INTO windrow.migration (version, name{}) VALUES (9999, 'from the future'{})"
    at = (", applied_at", ", 0") if store_name == "sqlite" else ("", "")
    run_sql(version.format(*at))

    with pytest.raises(SchemaTooNew, match="upgrade Windrow"):
        await Queue.open(store_url)
