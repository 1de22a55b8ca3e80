"""awa: a Rust engine with Python handlers; COPY in, many workers on one queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import counting
from bench.contestant import StoreName, payload
from bench.record import note

QUEUE = "bench"
WORKERS = 100
LEFT = "SELECT count(*) FROM awa.jobs WHERE state::text <> 'completed'"


@dataclass
class Noop:
    n: int
    url: str
    text: str


@dataclass
class AwaProducer:
    client: Any

    async def one(self, number: int) -> None:
        await self.client.insert(Noop(**payload(number)), queue=QUEUE)

    async def many(self, numbers: Sequence[int]) -> None:
        await self.client.enqueue_many_copy([Noop(**payload(n)) for n in numbers], queue=QUEUE)


@dataclass
class Awa:
    name: str = "awa"
    store: StoreName = "postgres"
    packages: Sequence[str] = ("awa-pg",)
    settings: str = f"queue storage, enqueue_many_copy, {WORKERS} workers on the queue"
    has_bulk: bool = True

    async def setup(self, url: str) -> None:
        from awa import AsyncClient

        client = AsyncClient(url)
        await client.migrate()
        await client.install_queue_storage()

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[AwaProducer]:
        from awa import AsyncClient

        async with AsyncClient(url) as client:
            yield AwaProducer(client)

    def work(self, url: str) -> None:
        asyncio.run(run_worker(url))

    def left(self, url: str) -> int:
        return counting.in_postgres(url, LEFT)


async def run_worker(url: str) -> None:
    from awa import AsyncClient

    client = AsyncClient(url, max_connections=20)

    @client.task(Noop, queue=QUEUE)
    async def noop(job: Any) -> None:
        note(job.args.n)

    await client.start([(QUEUE, WORKERS)])
    await asyncio.Event().wait()


CONTESTANTS = [Awa()]
