"""The floor on Postgres: a three-column table, claimed by UPDATE and finished by UPDATE, over one
connection; 100 at a time (the "UPDATE floor") and one at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from bench import counting
from bench.contestant import StoreName, payload_text
from bench.record import note_many

SCHEMA = """
CREATE TABLE floor (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text, payload jsonb);
CREATE INDEX floor_ready ON floor (id) WHERE state = 'ready';
"""
INSERT = "INSERT INTO floor (state, payload) VALUES ('ready', $1)"
CLAIM = """
UPDATE floor SET state = 'active'
WHERE id = ANY (ARRAY (
    SELECT id FROM floor WHERE state = 'ready' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id, payload
"""
FINISH = "UPDATE floor SET state = 'completed' WHERE id = ANY ($1::bigint[])"
LEFT = "SELECT count(*) FROM floor WHERE state <> 'completed'"
OCCUPY = """
UPDATE floor SET state = 'active'
WHERE id IN (SELECT id FROM floor WHERE state = 'ready' ORDER BY id DESC LIMIT $1)
"""
IDLE = 0.002  # seconds between two looks at an empty table


@dataclass
class FloorProducer:
    connection: asyncpg.Connection

    async def one(self, number: int) -> None:
        await self.connection.execute(INSERT, payload_text(number))

    async def many(self, numbers: Sequence[int]) -> None:
        rows = [("ready", payload_text(number)) for number in numbers]
        await self.connection.copy_records_to_table(
            "floor", records=rows, columns=("state", "payload")
        )


@dataclass
class Floor:
    name: str
    batch: int
    store: StoreName = "postgres"
    packages: Sequence[str] = ("asyncpg",)
    has_bulk: bool = True
    most_jobs: int = 10**9
    drains_only: bool = False

    @property
    def settings(self) -> str:
        return f"COPY in; claim {self.batch} + UPDATE {self.batch}, one connection"

    async def setup(self, url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(SCHEMA)
        await connection.close()

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[FloorProducer]:
        connection = await asyncpg.connect(url)
        try:
            yield FloorProducer(connection)
        finally:
            await connection.close()

    def work(self, url: str) -> None:
        asyncio.run(self._drain(url))

    async def _drain(self, url: str) -> None:
        connection = await asyncpg.connect(url)
        claim, finish = await connection.prepare(CLAIM), await connection.prepare(FINISH)
        while True:
            rows = await claim.fetch(self.batch)
            if not rows:
                await asyncio.sleep(IDLE)
                continue
            note_many([json.loads(row["payload"])["n"] for row in rows])
            await finish.fetch([row["id"] for row in rows])

    def left(self, url: str) -> int:
        return counting.in_postgres(url, LEFT)

    async def occupy(self, url: str, jobs: int) -> None:
        """Take so many of the last jobs into work, and leave them there."""
        connection = await asyncpg.connect(url)
        await connection.execute(OCCUPY, jobs)
        await connection.close()


CONTESTANTS = [
    Floor("floor postgres", 100),
    Floor("floor postgres, one at a time", 1, most_jobs=2_000, drains_only=True),
]
