"""Chancy: jobs in the worker's own event loop, and the next fetched as soon as one is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import counting
from bench.contestant import StoreName, payload
from bench.record import note

CONCURRENCY = 100
LEFT = "SELECT count(*) FROM chancy_jobs WHERE state <> 'succeeded'"


async def noop(*, n: int, url: str, text: str) -> None:
    note(n)


def new_job(number: int) -> Any:
    from chancy import Job

    return Job.from_func(noop, queue="bench", kwargs=payload(number))


@dataclass
class ChancyProducer:
    chancy: Any

    async def one(self, number: int) -> None:
        await self.chancy.push(new_job(number))

    async def many(self, numbers: Sequence[int]) -> None:
        async for _ in self.chancy.push_many([new_job(number) for number in numbers]):
            pass


@dataclass
class ChancyPeer:
    name: str = "chancy"
    store: StoreName = "postgres"
    packages: Sequence[str] = ("chancy", "psycopg")
    settings: str = f"AsyncExecutor, concurrency {CONCURRENCY}, eager polling, polls every second"
    has_bulk: bool = True
    most_jobs: int = 5_000

    async def setup(self, url: str) -> None:
        from chancy import Chancy, Queue

        async with Chancy(url) as chancy:
            await chancy.migrate()
            await chancy.declare(
                Queue(
                    "bench",
                    concurrency=CONCURRENCY,
                    executor=Chancy.Executor.Async,
                    polling_interval=1,
                    eager_polling=True,
                )
            )

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[ChancyProducer]:
        from chancy import Chancy

        async with Chancy(url) as chancy:
            yield ChancyProducer(chancy)

    def work(self, url: str) -> None:
        asyncio.run(run_worker(url))

    def left(self, url: str) -> int:
        return counting.in_postgres(url, LEFT)


async def run_worker(url: str) -> None:
    from chancy import Chancy, Worker

    async with Chancy(url) as chancy, Worker(chancy) as worker:
        await worker.wait_for_shutdown()


CONTESTANTS = [ChancyPeer()]
