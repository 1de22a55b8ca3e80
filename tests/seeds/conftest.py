"""Fixtures of the seeds' tests. A module says `DIALECT = "processing_jobs"` and gets a database of
Postgres that has it. After each test the tally must be exact, and no lease left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from tests.builders import counted, tallied
from tests.seeds.documents import ABSENT, Reading, find_document, read_statements
from windrow.queue.opening import open_store
from windrow.queue.store import Store

Connect = Callable[[], Awaitable[Any]]


@pytest.fixture
def dialect_url(request: pytest.FixtureRequest, dialect_database: Callable[[str], str]) -> str:
    return dialect_database(request.module.DIALECT)


@pytest.fixture
async def store(dialect_url: str) -> AsyncIterator[Store]:
    """Windrow's own store beside the dialect, by the clock of the database."""
    store = await open_store(dialect_url)
    try:
        yield store
        assert await tallied(store) == await counted(store)
        await require_true_leases(dialect_url)
    finally:
        await store.close()


@pytest.fixture
async def connect(dialect_url: str, store: Store) -> AsyncIterator[Connect]:
    """Call it for one more connection that knows nothing but the dialect."""
    async with AsyncExitStack() as stack:

        async def open_it() -> Any:
            connection = await asyncpg.connect(dialect_url)
            stack.push_async_callback(connection.close)
            return connection

        yield open_it


@pytest.fixture
async def db(connect: Connect) -> Any:
    """A connection that knows nothing but the dialect."""
    return await connect()


@pytest.fixture
def reading(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Iterator[Reading]:
    """The statements of the module's SEED, all of which the test must do."""
    document = find_document(request.module.SEED)
    if document is None:
        pytest.skip(ABSENT)
    reading = Reading(request.module.SEED, read_statements(document))
    yield reading
    total = len(reading.statements)
    compared = len(reading.done) - reading.ran
    record_property("seed", (reading.seed, reading.ran, compared, total))
    assert reading.left() == []


async def until_waiting(db: Any) -> None:
    """Until somebody waits for a lock of ours."""
    async with asyncio.timeout(10):
        while not await db.fetchval(
            "select exists (select from pg_stat_activity where wait_event_type = 'Lock' "
            "and datname = current_database())"
        ):
            await asyncio.sleep(0.01)


async def require_true_leases(url: str) -> None:
    """Every active job has a lease, and every lease an active job."""
    connection = await asyncpg.connect(url)
    try:
        assert await connection.fetch(_STRAY_JOBS) == []
        assert await connection.fetch(_STRAY_LEASES) == []
    finally:
        await connection.close()


_STRAY_JOBS = """
    SELECT id FROM windrow.job_live AS job
     WHERE state = 'active'
       AND NOT EXISTS (SELECT FROM windrow.lease
                        WHERE token = job.lease AND job.id = ANY (job_ids))
"""
# Of jobs that a worker claimed together and ended by two transactions at once, each sees the other
# still run: such a lease stays until it runs out. Those of the dialects do not.
_STRAY_LEASES = """
    SELECT token FROM windrow.lease
     WHERE (cardinality(job_ids) = 1 OR worker = 'pgmq')
       AND NOT EXISTS (SELECT FROM windrow.job_live AS job
                        WHERE state = 'active' AND job.lease = token)
"""
