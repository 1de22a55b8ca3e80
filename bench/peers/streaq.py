"""streaQ on Redis: tasks in the worker's event loop, results not kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import redis_server
from bench.contestant import StoreName, payload
from bench.record import note

QUEUE = "bench"
CONCURRENCY = 64
TASKS = f"streaq:{QUEUE}:task:data:*"
COUNT = "return #redis.call('KEYS', ARGV[1])"


def make_worker(url: str) -> tuple[Any, Any]:
    from streaq import Worker

    worker: Any = Worker(redis_url=url, queue_name=QUEUE, concurrency=CONCURRENCY)

    @worker.task(name="noop", ttl=0)
    async def noop(n: int, url: str, text: str) -> None:
        note(n)

    return worker, noop


@dataclass
class StreaqProducer:
    worker: Any
    task: Any

    async def one(self, number: int) -> None:
        await self.task.enqueue(**payload(number))

    async def many(self, numbers: Sequence[int]) -> None:
        await self.worker.enqueue_many([self.task.enqueue(**payload(n)) for n in numbers])


@dataclass
class Streaq:
    name: str = "streaq"
    store: StoreName = "redis"
    packages: Sequence[str] = ("streaq", "coredis")
    settings: str = f"concurrency {CONCURRENCY} (default 16), results not kept"
    has_bulk: bool = True
    most_jobs: int = 5_000

    async def setup(self, url: str) -> None:
        """Redis needs none."""

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[StreaqProducer]:
        worker, task = make_worker(url)
        async with worker:
            yield StreaqProducer(worker, task)

    def work(self, url: str) -> None:
        worker, _ = make_worker(url)
        worker.run_sync()

    def left(self, url: str) -> int:
        """A task's data is there from its enqueue to its end."""
        return redis_server.ask_number(url, "EVAL", COUNT, "0", TASKS)


CONTESTANTS = [Streaq()]
