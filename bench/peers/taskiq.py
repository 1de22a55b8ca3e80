"""taskiq on Redis: streams, whose messages are acknowledged after the run."""

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
GROUP = "bench"
AT_ONCE = 100
# What the group has not seen yet, and what it has seen and not acknowledged.
LEFT = f"""
local group = redis.call('XINFO', 'GROUPS', '{QUEUE}')[1]
local lag, pending = 0, 0
for i = 1, #group, 2 do
  if group[i] == 'lag' then lag = group[i + 1] or 0 end
  if group[i] == 'pending' then pending = group[i + 1] end
end
return lag + pending
"""


def make_task(url: str) -> tuple[Any, Any]:
    from taskiq_redis import RedisStreamBroker

    broker = RedisStreamBroker(url, queue_name=QUEUE, consumer_group_name=GROUP, consumer_id="0")

    @broker.task(task_name="noop")
    async def noop(n: int, url: str, text: str) -> None:
        note(n)

    return broker, noop


@dataclass
class TaskiqProducer:
    task: Any

    async def one(self, number: int) -> None:
        await self.task.kiq(**payload(number))

    async def many(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            await self.one(number)


@dataclass
class Taskiq:
    name: str = "taskiq"
    store: StoreName = "redis"
    packages: Sequence[str] = ("taskiq", "taskiq-redis", "redis")
    settings: str = f"RedisStreamBroker, {AT_ONCE} tasks at once, results not kept"
    has_bulk: bool = False
    most_jobs: int = 3_000

    async def setup(self, url: str) -> None:
        broker, _ = make_task(url)
        await broker.startup()
        await broker.shutdown()

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[TaskiqProducer]:
        broker, task = make_task(url)
        await broker.startup()
        try:
            yield TaskiqProducer(task)
        finally:
            await broker.shutdown()

    def work(self, url: str) -> None:
        asyncio.run(run_worker(url))

    def left(self, url: str) -> int:
        return redis_server.ask_number(url, "EVAL", LEFT, "0")


async def run_worker(url: str) -> None:
    from taskiq.api import run_receiver_task

    broker, _ = make_task(url)
    broker.is_worker_process = True
    await run_receiver_task(broker, max_async_tasks=AT_ONCE, run_startup=True)


CONTESTANTS = [Taskiq()]
