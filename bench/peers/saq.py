"""SAQ on Postgres and on Redis: many jobs at once in one worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import counting, redis_server
from bench.contestant import StoreName, payload
from bench.record import note

CONCURRENCY = 50  # its pool has no more connections on Redis
POOL = 20
LEFT = "SELECT count(*) FROM saq_jobs WHERE status <> 'complete'"


async def noop(context: Any, *, n: int, url: str, text: str) -> None:
    note(n)


def make_queue(url: str) -> Any:
    from saq import Queue

    if url.startswith("redis"):
        return Queue.from_url(url, name="bench")
    return Queue.from_url(url, name="bench", max_size=POOL)


@dataclass
class SaqProducer:
    queue: Any

    async def one(self, number: int) -> None:
        await self.queue.enqueue("noop", **payload(number))

    async def many(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            await self.one(number)


@dataclass
class Saq:
    name: str
    store: StoreName
    packages: Sequence[str]
    settings: str = f"concurrency {CONCURRENCY} (default 10)"
    has_bulk: bool = False
    most_jobs: int = 1_000

    async def setup(self, url: str) -> None:
        queue = make_queue(url)
        await queue.connect()
        await queue.disconnect()

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[SaqProducer]:
        queue = make_queue(url)
        await queue.connect()
        try:
            yield SaqProducer(queue)
        finally:
            await queue.disconnect()

    def work(self, url: str) -> None:
        asyncio.run(run_worker(url))

    def left(self, url: str) -> int:
        if self.store == "redis":
            return redis_server.ask_number(url, "ZCARD", "saq:bench:incomplete")
        return counting.in_postgres(url, LEFT)


async def run_worker(url: str) -> None:
    from saq import Worker

    queue = make_queue(url)
    await queue.connect()
    await Worker(queue, functions=[noop], concurrency=CONCURRENCY).start()


CONTESTANTS = [
    Saq("saq postgres", "postgres", ("saq", "psycopg")),
    Saq("saq redis", "redis", ("saq", "redis")),
]
