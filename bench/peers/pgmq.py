"""PGMQ, installed by its client's SQL: a loop of one's own that reads 100 and archives 100."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
import psycopg

from bench import counting
from bench.contestant import StoreName, payload_text
from bench.record import note_many

QUEUE = "bench"
BATCH = 100
VISIBILITY = 60  # seconds
IDLE = 0.002
SEND = "SELECT pgmq.send($1, $2::jsonb)"
SEND_BATCH = "SELECT pgmq.send_batch($1, $2::jsonb[])"
READ = "SELECT msg_id, message FROM pgmq.read($1, $2, $3)"
ARCHIVE = "SELECT pgmq.archive($1, $2::bigint[])"
LEFT = f"SELECT count(*) FROM pgmq.q_{QUEUE}"  # noqa: S608 - a constant


@dataclass
class PgmqProducer:
    connection: asyncpg.Connection

    async def one(self, number: int) -> None:
        await self.connection.execute(SEND, QUEUE, payload_text(number))

    async def many(self, numbers: Sequence[int]) -> None:
        await self.connection.execute(SEND_BATCH, QUEUE, [payload_text(n) for n in numbers])


@dataclass
class Pgmq:
    name: str = "pgmq"
    store: StoreName = "postgres"
    packages: Sequence[str] = ("pgmq", "asyncpg")
    settings: str = f"SQL functions over asyncpg, prepared; read {BATCH} + archive {BATCH}"
    has_bulk: bool = True

    async def setup(self, url: str) -> None:
        from pgmq import install_pgmq_from_sql

        install_pgmq_from_sql(dsn=url)
        with psycopg.connect(url) as connection:
            connection.execute("SELECT pgmq.create(%s)", [QUEUE])

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[PgmqProducer]:
        connection = await asyncpg.connect(url)
        try:
            yield PgmqProducer(connection)
        finally:
            await connection.close()

    def work(self, url: str) -> None:
        asyncio.run(drain(url))

    def left(self, url: str) -> int:
        return counting.in_postgres(url, LEFT)


async def drain(url: str) -> None:
    connection = await asyncpg.connect(url)
    read, archive = await connection.prepare(READ), await connection.prepare(ARCHIVE)
    while True:
        rows = await read.fetch(QUEUE, VISIBILITY, BATCH)
        if not rows:
            await asyncio.sleep(IDLE)
            continue
        note_many([json.loads(row["message"])["n"] for row in rows])
        await archive.fetch(QUEUE, [row["msg_id"] for row in rows])


CONTESTANTS = [Pgmq()]
