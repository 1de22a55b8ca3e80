"""DBOS: workflows from a queue, enqueued by its client."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import counting
from bench.contestant import StoreName, payload
from bench.record import note

QUEUE = "bench"
WORKFLOW = "noop"
CONCURRENCY = 100
POLL = 0.1
LEFT = "SELECT count(*) FROM dbos.workflow_status WHERE status <> 'SUCCESS'"


def config(url: str) -> dict[str, Any]:
    return {"name": "bench", "system_database_url": url, "run_admin_server": False}


def make_workflow() -> None:
    from dbos import DBOS

    @DBOS.workflow(name=WORKFLOW)
    def noop(given: dict[str, Any]) -> None:
        note(given["n"])


@dataclass
class DbosProducer:
    client: Any

    async def one(self, number: int) -> None:
        options = {"queue_name": QUEUE, "workflow_name": WORKFLOW}
        await self.client.enqueue_async(options, payload(number))

    async def many(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            await self.one(number)


@dataclass
class Dbos:
    name: str = "dbos"
    store: StoreName = "postgres"
    packages: Sequence[str] = ("dbos", "psycopg")
    settings: str = f"worker_concurrency {CONCURRENCY}, polls every {POLL} s (default 1)"
    has_bulk: bool = False
    most_jobs: int = 800

    async def setup(self, url: str) -> None:
        from dbos import DBOS

        DBOS(config=config(url))
        DBOS.launch()
        DBOS.destroy()

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[DbosProducer]:
        from dbos import DBOSClient

        client = DBOSClient(system_database_url=url)
        try:
            yield DbosProducer(client)
        finally:
            client.destroy()

    def work(self, url: str) -> None:
        from dbos import DBOS

        DBOS(config=config(url))
        make_workflow()
        DBOS.launch()
        DBOS.register_queue(QUEUE, worker_concurrency=CONCURRENCY, polling_interval_sec=POLL)
        threading.Event().wait()

    def left(self, url: str) -> int:
        return counting.in_postgres(url, LEFT)


CONTESTANTS = [Dbos()]
