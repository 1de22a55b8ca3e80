"""Dramatiq on Redis: threads in one process."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import redis_server
from bench.contestant import StoreName, payload
from bench.record import note

QUEUE = "bench"
THREADS = 8


def make_actor(url: str) -> tuple[Any, Any]:
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    broker = RedisBroker(url=url)
    dramatiq.set_broker(broker)

    @dramatiq.actor(queue_name=QUEUE, actor_name="noop", broker=broker)
    def noop(n: int, url: str, text: str) -> None:
        note(n)

    return broker, noop


@dataclass
class DramatiqProducer:
    actor: Any

    async def one(self, number: int) -> None:
        self.actor.send(**payload(number))

    async def many(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            await self.one(number)


@dataclass
class Dramatiq:
    name: str = "dramatiq"
    store: StoreName = "redis"
    packages: Sequence[str] = ("dramatiq", "redis")
    settings: str = f"one process, {THREADS} threads (the default), no results"
    has_bulk: bool = False
    most_jobs: int = 5_000

    async def setup(self, url: str) -> None:
        """Redis needs none."""

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[DramatiqProducer]:
        _, actor = make_actor(url)
        yield DramatiqProducer(actor)

    def work(self, url: str) -> None:
        import dramatiq

        broker, _ = make_actor(url)
        worker = dramatiq.Worker(broker, worker_threads=THREADS)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # before there are threads
        worker.start()
        signal.sigwait([signal.SIGTERM])
        worker.stop()

    def left(self, url: str) -> int:
        """A message is in the hash from its enqueue to its acknowledgement."""
        return redis_server.ask_number(url, "HLEN", f"dramatiq:{QUEUE}.msgs")


CONTESTANTS = [Dramatiq()]
