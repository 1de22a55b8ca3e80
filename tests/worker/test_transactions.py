"""Handlers that hold connections: their jobs' transactions keep nothing else from going on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.builders import add, claim
from tests.conftest import CopyDatabase
from windrow import Job, NewJob, Queue, Worker, handler
from windrow.db.postgres.connections import KEPT_BACK
from windrow.queue.job import JobState
from windrow.queue.opening import open_store
from windrow.queue.store import Store

PATIENCE = 20.0  # seconds; only a failing test waits for it, and less than for a connection


@pytest.fixture
def url(copy_database: CopyDatabase, postgres_template: str) -> str:
    return copy_database(postgres_template)


@pytest.fixture
async def small(url: str) -> AsyncIterator[Store]:
    """A store with one connection more than it keeps back."""
    store = await open_store(f"{url}?pool_size={KEPT_BACK + 1}")
    yield store
    await store.close()


async def test_transactions_of_jobs_leave_connections_for_everything_else(small: Store) -> None:
    """What holds a lease, and writes the ends that others wait for, needs one."""
    await add(small)
    first = await small.begin()
    second = asyncio.create_task(small.begin())
    async with asyncio.timeout(PATIENCE):
        assert len(await claim(small)) == 1
        assert not second.done()
        await first.rollback()
        await (await second).rollback()


@pytest.mark.parametrize("connections", [1, 3])
async def test_handlers_with_transactions_and_others_end_on_few_connections(
    url: str, connections: int
) -> None:
    """The end of a job gives its connection back; it must not wait for ends that need one."""

    @handler("plain")
    async def plain(job: Job) -> None: ...

    @handler("write")
    async def write(job: Job) -> None:
        await job.tx.execute("SELECT 1")
        await asyncio.sleep(0.001)

    async with Queue.open(f"{url}?pool_size={connections}") as queue:
        await queue.enqueue_many([NewJob(("plain", "write")[n % 2]) for n in range(60)])
        async with asyncio.timeout(PATIENCE):
            await Worker(queue, [plain, write], concurrency=10).run(until_idle=True)
        assert (await queue.counts())[JobState.COMPLETED] == 60
