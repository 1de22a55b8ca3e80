"""PgQueuer: asyncpg, batches of 100 claimed and recorded together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import counting
from bench.contestant import StoreName, payload_text
from bench.record import note_text

ENTRYPOINT = "noop"
BATCH = 100
LEFT = "SELECT count(*) FROM pgqueuer"


@dataclass
class PgQueuerProducer:
    queries: Any

    async def one(self, number: int) -> None:
        await self.queries.enqueue(ENTRYPOINT, payload_text(number).encode(), 0)

    async def many(self, numbers: Sequence[int]) -> None:
        payloads = [payload_text(number).encode() for number in numbers]
        await self.queries.enqueue([ENTRYPOINT] * len(numbers), payloads, [0] * len(numbers))


@dataclass
class PgQueuer:
    name: str = "pgqueuer"
    store: StoreName = "postgres"
    packages: Sequence[str] = ("pgqueuer", "asyncpg")
    settings: str = f"asyncpg driver, batch_size {BATCH} (default 10)"
    has_bulk: bool = True

    async def setup(self, url: str) -> None:
        async with opened(url) as queries:
            await queries.install()

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[PgQueuerProducer]:
        async with opened(url) as queries:
            yield PgQueuerProducer(queries)

    def work(self, url: str) -> None:
        asyncio.run(run_worker(url))

    def left(self, url: str) -> int:
        """A finished job leaves the table for the log."""
        return counting.in_postgres(url, LEFT)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Any]:
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    connection = await asyncpg.connect(url)
    try:
        yield Queries(AsyncpgDriver(connection))
    finally:
        await connection.close()


async def run_worker(url: str) -> None:
    import asyncpg
    from pgqueuer import PgQueuer as Application
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.models import Job

    application = Application(AsyncpgDriver(await asyncpg.connect(url)))

    @application.entrypoint(ENTRYPOINT)
    async def noop(job: Job) -> None:
        note_text(job.payload or b"")

    await application.run(batch_size=BATCH)


CONTESTANTS = [PgQueuer()]
