"""What holds for every dialect of Postgres (N11, U1, P3, A1, J1): a late writer changes nothing,
names that are no UUIDs break no view, views see with the eyes of their reader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.builders import add, claim, complete
from tests.seeds.conftest import Connect, until_waiting
from windrow.queue.store import Store

STALE, NEW = str(uuid4()), str(uuid4())


@dataclass(frozen=True)
class Writes:
    """A dialect's statements: $1 is the key of a row, $2 who has it."""

    relation: str
    insert: str
    take: str
    finish: str
    delete: str
    queue: str
    kind: str


DIALECTS = {
    "nuq": Writes(
        "nuq.queue_scrape",
        "INSERT INTO nuq.queue_scrape (data) VALUES ('{}') RETURNING id",
        "UPDATE nuq.queue_scrape SET status = 'active', lock = $2::text::uuid, locked_at = now() "
        "WHERE id = $1",
        "UPDATE nuq.queue_scrape SET status = 'completed', lock = NULL, locked_at = NULL, "
        "finished_at = now() WHERE id = $1 AND lock = $2::text::uuid",
        "DELETE FROM nuq.queue_scrape WHERE id = $1 AND lock = $2::text::uuid",
        *("nuq.queue_scrape", "nuq.queue_scrape"),
    ),
    "crawl_jobs": Writes(
        "crawl_jobs",
        "INSERT INTO crawl_jobs (payload) VALUES ('{}') RETURNING id",
        "UPDATE crawl_jobs SET status = 'processing', worker_id = $2::text::uuid, "
        "last_heartbeat = now() WHERE id = $1",
        "UPDATE crawl_jobs SET status = 'completed', completed_at = now() "
        "WHERE id = $1 AND worker_id = $2::text::uuid",
        "DELETE FROM crawl_jobs WHERE id = $1 AND worker_id = $2::text::uuid",
        *("crawl_jobs", "crawl"),
    ),
    "processing_jobs": Writes(
        "processing_jobs",
        "INSERT INTO processing_jobs (org_id, call_id, stage, status, payload) VALUES "
        "(gen_random_uuid(), gen_random_uuid(), 'analyze', 'queued', '{}') RETURNING id",
        "UPDATE processing_jobs SET status = 'processing', locked_by = $2, locked_at = now() "
        "WHERE id = $1",
        "UPDATE processing_jobs SET status = 'done' WHERE id = $1 AND locked_by = $2",
        "DELETE FROM processing_jobs WHERE id = $1 AND locked_by = $2",
        *("processing_jobs", "analyze"),
    ),
    "unified_queue": Writes(
        "unified_queue",
        "INSERT INTO unified_queue (queue_id, item_type, op, tenant_id, collection, priority, "
        "idempotency_key, payload_json) VALUES (gen_random_uuid(), 'file', 'ingest', 't', 'c', 5, "
        "'k', '{}') RETURNING queue_id",
        "UPDATE unified_queue SET status = 'in_progress', lease_until = "
        "to_char(now() AT TIME ZONE 'UTC' + interval '1 h', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), "
        "worker_id = $2 WHERE queue_id = $1",
        "UPDATE unified_queue SET status = 'done' WHERE queue_id = $1 AND worker_id = $2",
        "DELETE FROM unified_queue WHERE queue_id = $1 AND worker_id = $2",
        *("unified_queue", "file.ingest"),
    ),
    # A message knows no reader: who has it is told by how often it was read.
    "pgmq": Writes(
        "pgmq.q_jobs",
        "INSERT INTO pgmq.q_jobs (vt, message) VALUES (now(), '{}') RETURNING msg_id",
        "UPDATE pgmq.q_jobs SET vt = clock_timestamp() + interval '1 h', read_ct = read_ct + 1 "
        "WHERE msg_id = $1 AND $2::text IS NOT NULL",
        f"UPDATE pgmq.q_jobs SET vt = now() "
        f"WHERE msg_id = $1 AND read_ct = CASE $2 WHEN '{STALE}' THEN 1 ELSE 2 END",
        f"DELETE FROM pgmq.q_jobs "
        f"WHERE msg_id = $1 AND read_ct = CASE $2 WHEN '{STALE}' THEN 1 ELSE 2 END",
        *("jobs", "pgmq"),
    ),
}


@pytest.fixture(params=DIALECTS)
def writes(request: pytest.FixtureRequest) -> Writes:
    return DIALECTS[request.param]


@pytest.fixture
def dialect_url(request: pytest.FixtureRequest, dialect_database: Callable[[str], str]) -> str:
    return dialect_database(request.node.callspec.params["writes"])


@pytest.fixture
async def db(db: Any, writes: Writes) -> Any:
    if writes.relation.startswith("pgmq"):
        await db.execute("SELECT pgmq.create('jobs')")
    return db


async def take_over(db: Any, writes: Writes, key: Any) -> None:
    """What somebody had is abandoned, and taken by the next one."""
    await db.execute("UPDATE windrow.lease SET expires_at = now() - interval '1 h'")
    await db.execute("SELECT windrow_dialect.rescue_job(id) FROM windrow.job_live")
    assert await db.execute(writes.take, key, NEW) == "UPDATE 1"


@pytest.mark.parametrize("verb", ["finish", "delete"])
async def test_stale_lock_changes_nothing_even_if_it_was_true_as_the_statement_began(
    db: Any, connect: Connect, writes: Writes, verb: str
) -> None:
    write = getattr(writes, verb)
    other = await connect()
    key = await db.fetchval(writes.insert)
    assert await db.execute(writes.take, key, STALE) == "UPDATE 1"
    taking = other.transaction()
    await taking.start()
    await take_over(other, writes, key)

    late = asyncio.create_task(db.execute(write, key, STALE))
    await until_waiting(other)
    await taking.commit()

    assert (await late).endswith(" 0")
    assert (await db.execute(write, key, STALE)).endswith(" 0")
    assert (await db.execute(write, key, NEW)).endswith(" 1")


async def test_names_that_are_no_uuids_break_no_view(db: Any, store: Store, writes: Writes) -> None:
    """Of tenants and of workers; while it waits, while it runs, and when it is done."""
    await add(store, writes.kind, {}, queue=writes.queue, tenant="Ada & Co.")
    for step in (claim, complete):
        [row] = await db.fetch(f"SELECT * FROM {writes.relation}")
        owners = [row.get(name) for name in ("owner_id", "user_id", "org_id")]
        assert {one.version for one in owners if isinstance(one, UUID)} <= {5}
        if step is claim:
            [job] = await claim(store, 1, writes.queue, worker="a worker")
        else:
            await complete(store, job)
    relation = writes.relation.replace(".q_", ".a_")
    assert len(await db.fetch(f"SELECT * FROM {relation}")) == 1


async def test_views_see_with_the_eyes_of_their_reader(db: Any, writes: Writes) -> None:
    views = await db.fetch(
        "SELECT oid::regclass::text AS name, 'security_invoker=true' = ANY (reloptions) AS is_so "
        "FROM pg_class WHERE relkind = 'v' AND relnamespace::regnamespace::text !~ '^(pg_|info)'"
    )
    assert writes.relation in {row["name"] for row in views}
    assert [row["name"] for row in views if not row["is_so"]] == []


# Times that Python cannot read, in each column that is written, of a row that `insert` made.
FAR_TIMES = ("infinity", "-infinity", "4713-01-01 BC", "20000-01-01")
TIMES = {
    "nuq": "created_at",
    "crawl_jobs": "created_at",
    "processing_jobs": "available_at",
    "unified_queue": "created_at",
    "pgmq": "enqueued_at",
}


@pytest.mark.parametrize("time", FAR_TIMES)
async def test_time_that_workers_cannot_read_is_refused(
    request: pytest.FixtureRequest, db: Any, store: Store, writes: Writes, time: str
) -> None:
    """One such row would be in every batch, and no worker could run what was claimed with it."""
    column = TIMES[request.node.callspec.params["writes"]]
    await db.execute(writes.insert)
    with pytest.raises(asyncpg.CheckViolationError, match="times"):
        await db.execute(f"UPDATE {writes.relation} SET {column} = '{time}'")
    [job] = await claim(store, 9, writes.queue)
    assert job.kind == writes.kind
    await complete(store, job)
