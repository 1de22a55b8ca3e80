"""PgQueuer and Procrastinate as programs that faults are done to, each as it recommends.

Both find the jobs of dead workers by heartbeats: PgQueuer's workers do that by themselves,
Procrastinate documents a periodic task for it. The times are those of a Windrow lease of 2 s. All
handlers write down when they began and when they came to their end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg

from tests.trust.history import History
from tests.trust.programs import live_until_told
from windrow import NewJob, Queue
from windrow.queue.job import LIVE

STALE_SECONDS = 2
CONCURRENCY = 10
HANDLER_SECONDS = 0.1
TASK = "work"


async def run_handler(history: History, job: str) -> None:
    history.write("started", job)
    await asyncio.sleep(HANDLER_SECONDS)
    history.write("effect", job)


@dataclass(frozen=True)
class Contestant:
    """A queue that faults are done to."""

    name: str
    packages: Sequence[str]
    configuration: str
    program: str
    options: dict[str, Any]
    setup: Callable[[str], Awaitable[None]]
    enqueue: Callable[[str, Sequence[int]], Awaitable[list[str]]]  # what each job is called
    left: Callable[[str], Awaitable[int]]


async def set_up_windrow(url: str) -> None:
    async with Queue.open(url, migrate=True):
        return


async def enqueue_windrow(url: str, numbers: Sequence[int]) -> list[str]:
    async with Queue.open(url) as queue:
        new = [NewJob("work", max_crashes=20) for _ in numbers]
        return [made.id for made in await queue.enqueue_many(new)]


async def left_windrow(url: str) -> int:
    async with Queue.open(url) as queue:
        counts = await queue.counts()
        return sum(counts[state] for state in LIVE)


async def set_up_pgqueuer(url: str) -> None:
    from bench.peers.pgqueuer import opened

    async with opened(url) as queries:
        await queries.install()


async def enqueue_pgqueuer(url: str, numbers: Sequence[int]) -> list[str]:
    from bench.peers.pgqueuer import opened

    async with opened(url) as queries:
        payloads = [str(number).encode() for number in numbers]
        await queries.enqueue([TASK] * len(numbers), payloads, [0] * len(numbers))
    return list(map(str, numbers))


async def left_pgqueuer(url: str) -> int:
    return count(url, "SELECT count(*) FROM pgqueuer")


async def work_pgqueuer(url: str, history: History, told: asyncio.Event) -> None:
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.models import Job

    application = PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))

    @application.entrypoint(TASK)
    async def work(job: Job) -> None:
        await run_handler(history, (job.payload or b"").decode())

    running = application.run(
        batch_size=CONCURRENCY,
        max_concurrent_tasks=2 * CONCURRENCY,
        dequeue_timeout=timedelta(seconds=1),
        heartbeat_timeout=timedelta(seconds=STALE_SECONDS),
        shutdown_on_listener_failure=True,
    )
    await live_until_told(running, told)


def procrastinate_app(url: str, history: History | None = None) -> tuple[Any, Any]:
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=url, min_size=2, max_size=CONCURRENCY))

    @app.task(name=TASK, queue="trust")
    async def work(n: int) -> None:
        assert history is not None
        await run_handler(history, str(n))

    # As its documentation has it, at shorter times, and before everything that waits.
    @app.periodic(cron="* * * * * *")
    @app.task(
        name="retry_stalled", queue="stalled", queueing_lock="retry_stalled", pass_context=True
    )
    async def retry_stalled(context: Any, timestamp: int) -> None:
        stalled = await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALE_SECONDS)
        for job in stalled:
            await app.job_manager.retry_job(job)

    return app, work


async def set_up_procrastinate(url: str) -> None:
    app, _ = procrastinate_app(url)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def enqueue_procrastinate(url: str, numbers: Sequence[int]) -> list[str]:
    app, work = procrastinate_app(url)
    async with app.open_async():
        await work.batch_defer_async(*({"n": number} for number in numbers))
    return list(map(str, numbers))


async def left_procrastinate(url: str) -> int:
    return count(
        url,
        "SELECT count(*) FROM procrastinate_jobs "
        f"WHERE task_name = '{TASK}' AND status NOT IN ('succeeded', 'failed')",
    )


async def work_procrastinate(url: str, history: History, told: asyncio.Event) -> None:
    app, _ = procrastinate_app(url, history)

    async def run() -> None:
        # A worker of its own for the periodic task, which would wait behind all other jobs.
        await asyncio.gather(worker("trust", CONCURRENCY), worker("stalled", 1))

    def worker(queue: str, concurrency: int) -> Awaitable[None]:
        running: Awaitable[None] = app.run_worker_async(
            queues=[queue],
            concurrency=concurrency,
            update_heartbeat_interval=STALE_SECONDS / 4,
            stalled_worker_timeout=float(STALE_SECONDS),
            install_signal_handlers=False,
        )
        return running

    async with app.open_async():
        await live_until_told(run(), told)


def count(url: str, sql: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(sql.encode()).fetchone()
        assert row is not None
        found: int = row[0]
        return found


CONTESTANTS = (
    Contestant(
        "windrow",
        (),
        f"lease {STALE_SECONDS} s",
        "work",
        {"lease": STALE_SECONDS, "concurrency": CONCURRENCY, "seconds": HANDLER_SECONDS},
        set_up_windrow,
        enqueue_windrow,
        left_windrow,
    ),
    Contestant(
        "PgQueuer",
        ("pgqueuer",),
        f"heartbeat_timeout {STALE_SECONDS} s, shutdown_on_listener_failure",
        "tests.trust.peers:work_pgqueuer",
        {},
        set_up_pgqueuer,
        enqueue_pgqueuer,
        left_pgqueuer,
    ),
    Contestant(
        "Procrastinate",
        ("procrastinate",),
        f"heartbeats, stalled after {STALE_SECONDS} s, retried by a periodic task every second",
        "tests.trust.peers:work_procrastinate",
        {},
        set_up_procrastinate,
        enqueue_procrastinate,
        left_procrastinate,
    ),
)
