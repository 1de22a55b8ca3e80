"""BullMQ's Python port on Redis: many jobs at once in one worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import redis_server
from bench.contestant import StoreName, payload
from bench.record import note

QUEUE = "bench"
CONCURRENCY = 50


@dataclass
class BullmqProducer:
    queue: Any

    async def one(self, number: int) -> None:
        await self.queue.add("noop", payload(number), {})

    async def many(self, numbers: Sequence[int]) -> None:
        await self.queue.addBulk(
            [{"name": "noop", "data": payload(number), "opts": {}} for number in numbers]
        )


@dataclass
class Bullmq:
    name: str = "bullmq"
    store: StoreName = "redis"
    packages: Sequence[str] = ("bullmq", "redis")
    settings: str = f"concurrency {CONCURRENCY} (default 1)"
    has_bulk: bool = True
    most_jobs: int = 2_000

    async def setup(self, url: str) -> None:
        """Redis needs none."""

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[BullmqProducer]:
        from bullmq import Queue

        queue = Queue(QUEUE, {"connection": url})
        try:
            yield BullmqProducer(queue)
        finally:
            await queue.close()

    def work(self, url: str) -> None:
        asyncio.run(run_worker(url))

    def left(self, url: str) -> int:
        waiting = redis_server.ask_number(url, "LLEN", f"bull:{QUEUE}:wait")
        return waiting + redis_server.ask_number(url, "LLEN", f"bull:{QUEUE}:active")


async def run_worker(url: str) -> None:
    from bullmq import Worker

    async def noop(job: Any, token: str) -> None:
        note(job.data["n"])

    worker = Worker(QUEUE, noop, {"connection": url, "concurrency": CONCURRENCY, "autorun": False})
    await worker.run()


CONTESTANTS = [Bullmq()]
