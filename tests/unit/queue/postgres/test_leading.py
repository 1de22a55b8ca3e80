"""Who does not lead only reads: however many workers ask for the role, its row is locked by none of
them but its holder."""

from __future__ import annotations

import asyncio

import psycopg

from windrow.queue.postgres.store import PostgresStore


async def test_those_who_are_refused_neither_wait_nor_lock(store: PostgresStore, url: str) -> None:
    """Found with 200 workers: each of them locked the row, every 1.5 s, one after the other."""
    assert await store.elect_leader("maintenance", "a", 10)
    with psycopg.connect(url) as other:
        other.execute("SELECT FROM windrow.leader FOR UPDATE")  # as the holder that renews
        async with asyncio.timeout(10):
            assert not await store.elect_leader("maintenance", "b", 10)
    with psycopg.connect(url) as other:
        before = other.execute("SELECT xmin, xmax, ctid FROM windrow.leader").fetchall()
        assert not await store.elect_leader("maintenance", "c", 10)
        assert other.execute("SELECT xmin, xmax, ctid FROM windrow.leader").fetchall() == before
