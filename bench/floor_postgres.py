"""The floor on Postgres: a three-column table, claim 100 by UPDATE, finish 100 by UPDATE."""

from __future__ import annotations

import time

import asyncpg

SCHEMA = """
DROP TABLE IF EXISTS floor;
CREATE TABLE floor (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text, payload jsonb);
CREATE INDEX floor_ready ON floor (id) WHERE state = 'ready';
"""
CLAIM = """
UPDATE floor SET state = 'active'
WHERE id = ANY (ARRAY (
    SELECT id FROM floor WHERE state = 'ready' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id, payload
"""
FINISH = "UPDATE floor SET state = 'completed' WHERE id = ANY ($1::bigint[])"


async def fill(connection: asyncpg.Connection, jobs: int, payload: str) -> float:
    """Insert by COPY; seconds."""
    await connection.execute(SCHEMA)
    began = time.perf_counter()
    rows = [("ready", payload)] * jobs
    await connection.copy_records_to_table("floor", records=rows, columns=("state", "payload"))
    took = time.perf_counter() - began
    await connection.execute("ANALYZE floor")
    return took


async def drain(connection: asyncpg.Connection, batch: int) -> float:
    """Claim and finish until nothing is ready; seconds."""
    claim, finish = await connection.prepare(CLAIM), await connection.prepare(FINISH)
    began = time.perf_counter()
    while rows := await claim.fetch(batch):
        await finish.fetch([row["id"] for row in rows])
    return time.perf_counter() - began
