"""Procrastinate: its psycopg connector, many jobs at once in one worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import counting
from bench.contestant import StoreName, payload
from bench.record import note

CONCURRENCY = 20
LEFT = "SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'"


def make_app(url: str) -> tuple[Any, Any]:
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=url, min_size=4, max_size=CONCURRENCY))

    @app.task(name="noop", queue="bench")
    async def noop(n: int, url: str, text: str) -> None:
        note(n)

    return app, noop


@dataclass
class ProcrastinateProducer:
    task: Any

    async def one(self, number: int) -> None:
        await self.task.defer_async(**payload(number))

    async def many(self, numbers: Sequence[int]) -> None:
        await self.task.batch_defer_async(*map(payload, numbers))


@dataclass
class Procrastinate:
    name: str = "procrastinate"
    store: StoreName = "postgres"
    packages: Sequence[str] = ("procrastinate", "psycopg")
    settings: str = f"concurrency {CONCURRENCY} (default 1), as many connections"
    has_bulk: bool = True
    most_jobs: int = 1_000

    async def setup(self, url: str) -> None:
        app, _ = make_app(url)
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[ProcrastinateProducer]:
        app, task = make_app(url)
        async with app.open_async():
            yield ProcrastinateProducer(task)

    def work(self, url: str) -> None:
        asyncio.run(run_worker(url))

    def left(self, url: str) -> int:
        return counting.in_postgres(url, LEFT)


async def run_worker(url: str) -> None:
    app, _ = make_app(url)
    async with app.open_async():
        await app.run_worker_async(concurrency=CONCURRENCY, queues=["bench"])


CONTESTANTS = [Procrastinate()]
