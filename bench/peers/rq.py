"""RQ on Redis: SimpleWorker, which does not fork for each job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import redis_server
from bench.contestant import StoreName, payload
from bench.record import note

QUEUE = "bench"


def noop(n: int, url: str, text: str) -> None:
    note(n)


def make_queue(url: str) -> Any:
    from redis import Redis
    from rq import Queue

    return Queue(QUEUE, connection=Redis.from_url(url))


@dataclass
class RqProducer:
    queue: Any

    async def one(self, number: int) -> None:
        self.queue.enqueue(noop, kwargs=payload(number), result_ttl=0)

    async def many(self, numbers: Sequence[int]) -> None:
        from rq import Queue

        self.queue.enqueue_many(
            [Queue.prepare_data(noop, kwargs=payload(number), result_ttl=0) for number in numbers]
        )


@dataclass
class Rq:
    name: str = "rq"
    store: StoreName = "redis"
    packages: Sequence[str] = ("rq", "redis")
    settings: str = "SimpleWorker (the default forks for each job), results not kept"
    has_bulk: bool = True
    most_jobs: int = 600

    async def setup(self, url: str) -> None:
        """Redis needs none."""

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[RqProducer]:
        yield RqProducer(make_queue(url))

    def work(self, url: str) -> None:
        from rq import SimpleWorker

        queue = make_queue(url)
        SimpleWorker([queue], connection=queue.connection).work(logging_level="WARNING")

    def left(self, url: str) -> int:
        waiting = redis_server.ask_number(url, "LLEN", f"rq:queue:{QUEUE}")
        return waiting + redis_server.ask_number(url, "ZCARD", f"rq:wip:{QUEUE}")


CONTESTANTS = [Rq()]
