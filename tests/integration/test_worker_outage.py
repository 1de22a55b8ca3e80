"""The database goes away under working workers: they keep trying, and no finished work is lost."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from tests.postgres_server import PostgresServer
from windrow import Job, NewJob, Queue, Worker, handler
from windrow.queue.job import JobState

JOBS = 10_000
PATIENCE = 120.0  # seconds; only a failing test waits for it
END_ALL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def execute(server: PostgresServer, sql: str) -> Any:
    connection = await asyncpg.connect(server.url())
    try:
        return await connection.fetch(sql)
    finally:
        await connection.close()


async def test_stopped_and_started_in_mid_run_nothing_is_lost(
    server: PostgresServer, queue: Queue
) -> None:
    """N3: 10,000 jobs, the server stopped in order and by a crash while they run: all of them end,
    and those that ran again are few: what was being done at that moment."""
    runs: Counter[str] = Counter()
    progress = asyncio.Condition()

    @handler("work", backoff="none")
    async def work(job: Job) -> int:
        runs[job.id] += 1
        async with progress:
            progress.notify_all()
        await asyncio.sleep(0.002)
        return runs[job.id]

    made = await queue.enqueue_many([NewJob("work") for _ in range(JOBS)])
    worker = Worker(queue, [work], concurrency=50, lease=5)
    task = asyncio.create_task(worker.run(until_idle=True))
    for share, how in ((0.2, signal.SIGINT), (0.5, signal.SIGQUIT)):
        async with progress:
            while len(runs) < share * JOBS:
                await progress.wait()
        await asyncio.to_thread(server.halt, how)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(server.resume)
    async with asyncio.timeout(PATIENCE):
        await task

    assert (await queue.counts())[JobState.COMPLETED] == JOBS
    assert set(runs) == {one.id for one in made}
    jobs = [job async for job in _all_jobs(queue)]
    assert {job.attempts for job in jobs} == {0}


async def test_killed_backends_are_replaced(server: PostgresServer, queue: Queue) -> None:
    done = 0
    ending = asyncio.Lock()  # the second would end the first's session, too

    @handler("work")
    async def work(job: Job) -> None:
        nonlocal done
        done += 1
        if done in (100, 500):
            async with ending:
                await execute(server, END_ALL)

    await queue.enqueue_many([NewJob("work") for _ in range(1000)])
    async with asyncio.timeout(PATIENCE):
        await Worker(queue, [work], concurrency=20, lease=5).run(until_idle=True)

    left = [(job.state, job.error) async for job in _all_jobs(queue) if job.state != "completed"]
    assert left == []


async def test_read_only_failover_is_waited_for(server: PostgresServer, queue: Queue) -> None:
    """The new primary is not one yet: outcomes wait until it can be written."""
    began = asyncio.Event()
    go_on = asyncio.Event()

    @handler("work")
    async def work(job: Job) -> str:
        began.set()
        await go_on.wait()
        return "kept"

    job = await queue.enqueue("work")
    worker = Worker(queue, [work], lease=30)
    task = asyncio.create_task(worker.run(until_idle=True))
    await began.wait()
    await execute(server, "ALTER SYSTEM SET default_transaction_read_only = on")
    await execute(server, "SELECT pg_reload_conf()")
    await _until_read_only(server, "on")
    go_on.set()
    await asyncio.sleep(0.5)
    assert (await queue.get(job.id)).state is JobState.ACTIVE
    connection = await asyncpg.connect(server.url())
    await connection.execute("SET default_transaction_read_only = off")
    await connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()
    async with asyncio.timeout(PATIENCE):
        await task

    ended = await queue.get(job.id)
    assert (ended.result, ended.runs) == ("kept", 1)


async def test_no_connection_left_is_waited_for(server: PostgresServer, queue: Queue) -> None:
    """Somebody else takes all connections for a while; the worker goes on when there is one."""

    @handler("work")
    async def work(job: Job) -> None: ...

    [[limit]] = await execute(server, "SELECT current_setting('max_connections')::int")
    await execute(server, END_ALL)
    asked = [asyncpg.connect(server.url()) for _ in range(limit + 1)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    hogs = [one for one in answers if isinstance(one, asyncpg.Connection)]
    assert len(hogs) < len(answers)
    worker = Worker(queue, [work])
    task = asyncio.create_task(worker.run())
    await asyncio.sleep(0.5)
    for hog in hogs:
        await hog.close()
    job = await queue.enqueue("work")
    ended = await queue.wait(job.id, timeout=PATIENCE)
    worker.stop()
    await task

    assert ended.state is JobState.COMPLETED


async def _all_jobs(queue: Queue) -> AsyncIterator[Job]:
    after = None
    while page := await queue.list(after=after, limit=1000):
        for job in page:
            yield job
        after = page[-1].id


async def _until_read_only(server: PostgresServer, value: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            [[now]] = await execute(server, "SHOW default_transaction_read_only")
            if now == value:
                return
            await asyncio.sleep(0.02)
