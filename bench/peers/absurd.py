"""Absurd: claims of 100 at once. Its SQL comes with its command, absurdctl, not with its SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from bench import counting
from bench.contestant import StoreName, payload
from bench.record import note

QUEUE = "bench"
CONCURRENCY = 100
LEFT = f"SELECT count(*) FROM absurd.t_{QUEUE} WHERE state <> 'completed'"  # noqa: S608 - a constant


@dataclass
class AbsurdProducer:
    client: Any

    async def one(self, number: int) -> None:
        await self.client.spawn("noop", payload(number))

    async def many(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            await self.one(number)


@dataclass
class Absurd:
    name: str = "absurd"
    store: StoreName = "postgres"
    packages: Sequence[str] = ("absurd-sdk", "absurdctl", "psycopg")
    settings: str = f"async, concurrency and claims of {CONCURRENCY}, polls every 10 ms"
    has_bulk: bool = False
    most_jobs: int = 1_000

    async def setup(self, url: str) -> None:
        self._install(url)

    def _install(self, url: str) -> None:
        from absurdctl import BUNDLED_SCHEMA_SQL

        with psycopg.connect(url) as connection:
            connection.execute(BUNDLED_SCHEMA_SQL.encode())
            connection.execute("SELECT absurd.create_queue(%s)", [QUEUE])

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[AbsurdProducer]:
        client = make_client(url)
        try:
            yield AbsurdProducer(client)
        finally:
            await client.close()

    def work(self, url: str) -> None:
        asyncio.run(run_worker(url))

    def left(self, url: str) -> int:
        return counting.in_postgres(url, LEFT)


def make_client(url: str) -> Any:
    from absurd_sdk import AsyncAbsurd

    client = AsyncAbsurd(url, queue_name=QUEUE)

    @client.register_task(name="noop")
    async def noop(params: dict[str, Any], context: Any) -> None:
        note(params["n"])

    return client


async def run_worker(url: str) -> None:
    await make_client(url).start_worker(
        concurrency=CONCURRENCY, batch_size=CONCURRENCY, poll_interval=0.01
    )


CONTESTANTS = [Absurd()]
