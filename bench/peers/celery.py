"""Celery on Redis: a thread pool in one process, no results, acknowledged after the run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import redis_server
from bench.contestant import StoreName, payload
from bench.record import note

QUEUE = "bench"
THREADS = 4
PREFETCH = 100


def make_app(url: str) -> tuple[Any, Any]:
    from celery import Celery

    app = Celery("bench", broker=url)
    app.conf.update(
        task_default_queue=QUEUE,
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=PREFETCH,
        worker_send_task_events=False,
        broker_connection_retry_on_startup=True,
    )

    @app.task(name="noop")
    def noop(n: int, url: str, text: str) -> None:
        note(n)

    return app, noop


@dataclass
class CeleryProducer:
    task: Any

    async def one(self, number: int) -> None:
        self.task.apply_async(kwargs=payload(number))

    async def many(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            await self.one(number)


@dataclass
class CeleryPeer:
    name: str = "celery"
    store: StoreName = "redis"
    packages: Sequence[str] = ("celery", "redis")
    settings: str = f"{THREADS} threads, prefetch {PREFETCH} each, acks_late, no results, no events"
    has_bulk: bool = False
    most_jobs: int = 1_500

    async def setup(self, url: str) -> None:
        """Redis needs none."""

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[CeleryProducer]:
        _, task = make_app(url)
        yield CeleryProducer(task)

    def work(self, url: str) -> None:
        app, _ = make_app(url)
        app.worker_main(
            [
                *("worker", "--pool=threads", f"--concurrency={THREADS}", "--loglevel=WARNING"),
                *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            ]
        )

    def left(self, url: str) -> int:
        waiting = redis_server.ask_number(url, "LLEN", QUEUE)
        return waiting + redis_server.ask_number(url, "HLEN", "unacked")


CONTESTANTS = [CeleryPeer()]
