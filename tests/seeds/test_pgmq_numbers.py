"""P3: the numbers of messages, counted in each queue for itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from tests.builders import add, add_many, claim, complete, fail, snooze
from tests.seeds.messages import create, read, send
from windrow.queue.store import Store

DIALECT = "pgmq"


async def test_p3_messages_are_numbered_queue_by_queue(db: Any, store: Store) -> None:
    """1, 2, 3 … in each, as with PGMQ: whatever is sent elsewhere, and whoever enqueues."""
    await create(db, "jobs", "other")
    assert [await send(db, "jobs"), await send(db, "other"), await send(db, "other")] == [1, 1, 2]
    await add(store, "elsewhere", queue="mail")
    await add(store, "work", queue="jobs")
    await add_many(store, 1500, queue="jobs")  # by one statement
    sent = await db.fetch("SELECT * FROM pgmq.send_batch('jobs', ARRAY['1', '2']::jsonb[])")
    assert [row[0] for row in sent] == [1503, 1504]
    assert len(await db.fetch("SELECT DISTINCT msg_id FROM pgmq.q_jobs")) == 1504
    assert [row["msg_id"] for row in await read(db, "jobs", qty=3)] == [1, 2, 3]
    assert [row["msg_id"] for row in await read(db, "other", qty=3)] == [1, 2]
    assert (await db.fetchrow("SELECT * FROM pgmq.metrics('jobs')"))["total_messages"] == 1504
    assert await db.fetchval("SELECT count(*) FROM windrow.job WHERE number IS NULL") == 1


async def test_p3_a_number_stays_with_its_message(db: Any, store: Store) -> None:
    """Through completion and failure by Windrow, and when it is retried."""
    await create(db, "jobs")
    for n in range(4):
        await send(db, "jobs", n)
    done, failed, archived, released = await claim(store, 4, "jobs")
    await complete(store, done)
    await fail(store, failed)
    await store.finish_jobs([snooze(released)])
    assert await db.fetchval("SELECT pgmq.archive('jobs', 3::bigint)")
    assert [row["msg_id"] for row in await read(db, "jobs", qty=9)] == [4]
    found = await db.fetch("SELECT msg_id FROM pgmq.a_jobs ORDER BY msg_id")
    assert [row["msg_id"] for row in found] == [1, 2, 3]
    [letter] = await db.fetch("SELECT * FROM pgmq.dead_letters('jobs')")
    assert letter["msg_id"] == 2
    await store.retry_jobs([failed.id])
    assert [row["msg_id"] for row in await read(db, "jobs", qty=9)] == [2]
    assert archived.id in await store.get_jobs([archived.id])


async def test_jobs_from_before_the_queue_was_made_are_numbered(db: Any, store: Store) -> None:
    await add(store, "kept", 0, queue="jobs", retention_seconds=-1)
    [job] = await claim(store, 1, "jobs")
    await complete(store, job)
    for n in (1, 2, 3):
        await add(store, "work", n, queue="jobs")
    await create(db, "jobs")
    found = await db.fetch("SELECT msg_id, message FROM pgmq.q_jobs ORDER BY msg_id")
    assert [tuple(row) for row in found] == [(2, "1"), (3, "2"), (4, "3")]
    assert await db.fetchval("SELECT msg_id FROM pgmq.a_jobs") == 1
    assert await send(db, "jobs") == 5


async def test_numbers_go_on_where_the_dialect_comes_again(db: Any, store: Store) -> None:
    await create(db, "jobs")
    await send(db, "jobs")
    await store.remove_dialect("pgmq")
    job_id = await add(store, "work", queue="jobs")
    await store.install_dialect("pgmq")
    await create(db, "jobs")
    assert await send(db, "jobs") == 3
    assert [row["msg_id"] for row in await read(db, "jobs", qty=9)] == [1, 2, 3]
    assert job_id in await store.get_jobs([job_id])


async def test_a_queue_that_is_made_again_counts_from_one(db: Any, store: Store) -> None:
    await create(db, "jobs")
    await db.execute("SELECT pgmq.set_max_reads('jobs', 1)")
    await send(db, "jobs")
    await read(db, "jobs", vt=0)
    assert await read(db, "jobs") == []
    [letter] = await db.fetch("SELECT * FROM pgmq.dead_letters('jobs')")
    await db.execute("SELECT pgmq.drop_queue('jobs')")
    await create(db, "jobs")
    assert await send(db, "jobs") == 1
    await store.retry_jobs([str(letter["job_id"])])
    assert sorted(row["msg_id"] for row in await read(db, "jobs", qty=9)) == [1, 2]


async def test_p3_a_queue_is_moved_in_with_its_numbers(db: Any, store: Store) -> None:
    await create(db, "jobs")
    move = "INSERT INTO pgmq.q_jobs (msg_id, vt, message, enqueued_at) VALUES ($1, now(), '1', $2)"
    at = datetime(2024, 5, 6, tzinfo=UTC)
    for number in (1, 2, 7):
        await db.execute(move, number, at)
    assert await send(db, "jobs") == 8
    for taken in (7, 8, 3):
        with pytest.raises(asyncpg.UniqueViolationError, match="have been given"):
            await db.execute(move, taken, at)
    found = await read(db, "jobs", qty=9)
    assert [row["msg_id"] for row in found] == [1, 2, 7, 8]
    assert found[0]["enqueued_at"] == at
