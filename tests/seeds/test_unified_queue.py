"""Seed 001 (U1, U4–U7): the unified ingestion queue, in its own SQL. On Postgres it is a view, on
SQLite a table; the statements are the same."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import shutil
import sqlite3
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import pytest

from tests.builders import (
    add,
    add_and_claim,
    attempt,
    claim,
    complete,
    completion,
    counted,
    counts,
    exists,
    failure,
    get,
    get_group,
    insert,
    make_group,
    snooze,
    state,
    tallied,
)
from tests.seeds.conftest import require_true_leases, until_waiting
from tests.seeds.documents import Reading
from tests.seeds.workers import run_worker
from windrow.queue.job import Job, JobState
from windrow.queue.opening import open_store
from windrow.queue.records import EventFilter
from windrow.queue.store import Store

DIALECT = "unified_queue"
SEED = "001"
JOBS = 500
CONNECTIONS = 8

PAIRS = {
    "content": ("ingest", "update", "delete"),
    "file": ("ingest", "update", "delete"),
    "folder": ("ingest", "delete", "scan"),
    "project": ("ingest", "delete", "scan"),
    "library": ("ingest", "update", "delete"),
    "delete_tenant": ("delete",),
    "delete_document": ("delete",),
    "rename": ("update",),
}
DEQUEUE = """
    SELECT queue_id FROM unified_queue WHERE status = 'pending'
    ORDER BY priority DESC, created_at ASC LIMIT ?
"""
LEASE = """
    UPDATE unified_queue SET status = 'in_progress', lease_until = ?, worker_id = ?
    WHERE queue_id = ? AND status = 'pending' RETURNING *
"""
CLAIM = """
    UPDATE unified_queue SET status = 'in_progress', lease_until = ?, worker_id = ?
    WHERE queue_id IN (
        SELECT queue_id FROM unified_queue WHERE status = 'pending'
        ORDER BY priority DESC, created_at ASC LIMIT 1 {locking})
    RETURNING *
"""
RENEW = "UPDATE unified_queue SET lease_until = ? WHERE queue_id = ? AND worker_id = ? RETURNING *"
DONE = "UPDATE unified_queue SET status = 'done' WHERE queue_id = ? AND worker_id = ? RETURNING *"
RETRY = """
    UPDATE unified_queue
    SET retry_count = retry_count + 1, status = 'pending', lease_until = ?, worker_id = NULL,
        error_message = ?, last_error_at = ?
    WHERE queue_id = ? AND retry_count < max_retries RETURNING *
"""
FAIL = """
    UPDATE unified_queue SET status = 'failed', error_message = ?, last_error_at = ?
    WHERE queue_id = ? AND retry_count >= max_retries RETURNING *
"""
STALE = "SELECT queue_id FROM unified_queue WHERE status = 'in_progress' AND lease_until < ?"
REQUEUE = """
    UPDATE unified_queue SET status = 'pending', lease_until = NULL, worker_id = NULL
    WHERE status = 'in_progress' AND lease_until < ? RETURNING *
"""


class Db(Protocol):
    async def run(self, sql: str, *values: Any) -> list[dict[str, Any]]: ...


class PostgresDb:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def run(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        numbers = iter(range(1, 100))
        text = re.sub(r"\?", lambda _: f"${next(numbers)}", sql)
        return [dict(row) for row in await self._connection.fetch(text, *values)]


class SqliteDb:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.row_factory = sqlite3.Row

    async def run(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        def do() -> list[dict[str, Any]]:
            return [dict(row) for row in self._connection.execute(sql, values).fetchall()]

        return await asyncio.to_thread(do)


Connect = Callable[[], Awaitable[Db]]
REFUSED = (asyncpg.PostgresError, sqlite3.IntegrityError)


@pytest.fixture(params=["postgres", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def dialect_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if kind == "postgres":
        make: Callable[[str], str] = request.getfixturevalue("dialect_database")
        return make(DIALECT)
    path = tmp_path / "jobs.db"
    shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
    store = await open_store(f"sqlite:///{path}")
    assert await store.install_dialect(DIALECT)
    await store.close()
    return f"sqlite:///{path}"


@pytest.fixture
async def store(kind: str, dialect_url: str) -> AsyncIterator[Store]:
    """Windrow's own store beside the dialect. Afterwards the tally is exact, both sides agree."""
    store = await open_store(dialect_url)
    try:
        yield store
        assert await tallied(store) == await counted(store)
        if kind == "postgres":
            await require_true_leases(dialect_url)
        else:
            require_same_rows(dialect_url)
    finally:
        await store.close()


@pytest.fixture
async def connect(kind: str, dialect_url: str, store: Store) -> AsyncIterator[Connect]:
    async with AsyncExitStack() as stack:

        async def open_it() -> Db:
            if kind == "postgres":
                connection = await asyncpg.connect(dialect_url)
                stack.push_async_callback(connection.close)
                return PostgresDb(connection)
            path = dialect_url.removeprefix("sqlite:///")
            opened = sqlite3.connect(
                path, isolation_level=None, timeout=60, check_same_thread=False
            )
            stack.callback(opened.close)
            return SqliteDb(opened)

        yield open_it


@pytest.fixture
async def db(connect: Connect) -> Db:
    return await connect()


COMPARED = (
    *("item_type", "op", "tenant_id", "collection", "priority", "status", "worker_id"),
    *("payload_json", "retry_count", "max_retries", "error_message", "branch", "metadata"),
)


def require_same_rows(url: str) -> None:
    """Table and jobs tell the same; every active job has a lease, and every lease an active job."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    try:
        assert connection.execute("SELECT * FROM windrow_unified_busy").fetchall() == []
        shown, told = [
            {row[0]: dict(zip(COMPARED, row[1:], strict=True)) for row in connection.execute(sql)}
            for sql in (
                f"SELECT queue_id, {', '.join(COMPARED)} FROM unified_queue",
                f"""SELECT queue_id, {", ".join(COMPARED)}
                    FROM windrow_unified_row AS r LEFT JOIN windrow_unified_job USING (seq)""",
            )
        ]
        assert shown.keys() == told.keys()
        for queue_id, row in shown.items():
            if row["status"] != "in_progress":  # what was written there, or a lease left behind
                row["worker_id"] = told[queue_id]["worker_id"]
            assert row == told[queue_id]
        stray = connection.execute("""
            SELECT j.id, l.token FROM (SELECT * FROM windrow_job_live WHERE state = 'active') AS j
            FULL JOIN windrow_lease AS l ON l.token = j.lease
            WHERE j.id IS NULL OR l.token IS NULL
        """)
        assert stray.fetchall() == []
    finally:
        connection.close()


def at(seconds: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def enqueue(db: Db, item_type: str = "file", op: str = "ingest", **columns: Any) -> str:
    row = {
        "queue_id": str(uuid.uuid4()),
        "item_type": item_type,
        "op": op,
        "tenant_id": "tenant",
        "collection": "projects",
        "priority": 5,
        "status": "pending",
        "created_at": at(0),
        "updated_at": at(0),
        "idempotency_key": uuid.uuid4().hex,
        "payload_json": '{"file_path": "/x"}',
    } | columns
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    await db.run(f"INSERT INTO unified_queue ({names}) VALUES ({marks})", *row.values())
    return str(row["queue_id"])


async def look(db: Db, queue_id: str) -> dict[str, Any]:
    [row] = await db.run("SELECT * FROM unified_queue WHERE queue_id = ?", queue_id)
    return row


async def take(db: Db, worker: str = "w1", seconds: float = 300) -> dict[str, Any] | None:
    for found in await db.run(DEQUEUE, 10):
        leased = await db.run(LEASE, at(seconds), worker, found["queue_id"])
        if leased:
            return leased[0]
    return None


# U1: the table


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
async def test_columns_are_those_of_the_document_on_postgres(db: Db) -> None:
    found = await db.run("""
        SELECT column_name, data_type FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name = 'unified_queue' ORDER BY ordinal_position
    """)
    assert [(row["column_name"], row["data_type"]) for row in found] == [
        (name, "integer" if type == "INTEGER" else "text") for name, type in COLUMNS
    ]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
async def test_columns_and_indexes_are_those_of_the_document_on_sqlite(db: Db) -> None:
    found = await db.run("SELECT name, type FROM pragma_table_info('unified_queue')")
    assert [(row["name"], row["type"]) for row in found] == COLUMNS
    indexes = await db.run("SELECT name FROM pragma_index_list('unified_queue') WHERE origin = 'c'")
    assert {row["name"] for row in indexes} == {
        f"idx_unified_queue_{name}"
        for name in (
            *("dequeue", "idempotency", "lease_expiry", "collection_tenant"),
            *("item_type", "failed", "worker"),
        )
    }


COLUMNS = [
    *((name, "TEXT") for name in ("queue_id", "item_type", "op", "tenant_id", "collection")),
    ("priority", "INTEGER"),
    *((name, "TEXT") for name in ("status", "created_at", "updated_at", "lease_until")),
    *((name, "TEXT") for name in ("worker_id", "idempotency_key", "payload_json")),
    ("retry_count", "INTEGER"),
    ("max_retries", "INTEGER"),
    *((name, "TEXT") for name in ("error_message", "last_error_at", "branch", "metadata")),
]


async def test_every_pair_of_type_and_operation_is_checked(db: Db, store: Store) -> None:
    for item_type in PAIRS:
        for op in ("ingest", "update", "delete", "scan"):
            if op in PAIRS[item_type]:
                await enqueue(db, item_type, op)
            else:
                with pytest.raises(REFUSED):
                    await enqueue(db, item_type, op)
    assert await counts(store, DIALECT) == {JobState.READY: 18}


@pytest.mark.parametrize(
    "columns",
    [
        {"priority": 11},
        {"priority": -1},
        {"item_type": "website"},
        {"op": "add"},
        {"status": "queued"},
        {"tenant_id": None},
        {"collection": None},
        {"payload_json": None},
        {"idempotency_key": None},
        {"queue_id": None},
        {"created_at": None},
        {"updated_at": None},
        {"tenant_id": ""},
        {"collection": ""},
        {"payload_json": "{not json"},
    ],
)
async def test_raw_insert_that_breaks_a_check_is_refused(
    db: Db, store: Store, columns: dict[str, Any]
) -> None:
    with pytest.raises(REFUSED):
        await enqueue(db, **columns)
    assert await counts(store, DIALECT) == {}


async def test_update_that_breaks_a_check_is_refused(db: Db) -> None:
    queue_id = await enqueue(db)
    for change in ("priority = 11", "op = 'scan'", "status = 'gone'"):
        with pytest.raises(REFUSED):
            await db.run(f"UPDATE unified_queue SET {change} WHERE queue_id = ?", queue_id)


async def test_enqueued_row_has_the_defaults_and_is_a_job(db: Db, store: Store) -> None:
    queue_id = await enqueue(db, priority=8)

    row = await look(db, queue_id)
    assert (row["status"], row["priority"], row["branch"], row["metadata"]) == (
        *("pending", 8),
        *("main", "{}"),
    )
    assert (row["retry_count"], row["max_retries"]) == (0, 3)
    assert row["lease_until"] is row["worker_id"] is row["error_message"] is None
    job = await get(store, queue_id)
    assert (job.kind, job.tenant, job.priority) == ("file.ingest", "tenant", 8)
    assert (job.payload_json, job.unique) == ('{"file_path": "/x"}', row["idempotency_key"])
    assert job.headers == {"collection": "projects", "branch": "main", "metadata": "{}"}


# U4: duplicates


KEY = "file:projects:0123456789abcdef"


async def test_same_key_is_refused_while_its_row_is_not_finished(db: Db) -> None:
    await enqueue(db, idempotency_key=KEY)
    for _ in range(2):
        with pytest.raises(REFUSED):
            await enqueue(db, idempotency_key=KEY)
        await take(db)


@pytest.mark.parametrize("status", ["done", "failed"])
async def test_key_of_a_finished_row_can_be_used_again(db: Db, store: Store, status: str) -> None:
    first = await enqueue(db, idempotency_key=KEY)
    await take(db)
    await db.run("UPDATE unified_queue SET status = ? WHERE queue_id = ?", status, first)

    second = await enqueue(db, idempotency_key=KEY)
    waiting = "SELECT queue_id FROM unified_queue WHERE idempotency_key = ? AND status = 'pending'"
    assert [row["queue_id"] for row in await db.run(waiting, KEY)] == [second]
    assert (await look(db, first))["status"] == status
    with pytest.raises(REFUSED):
        await enqueue(db, idempotency_key=KEY)
    # The first cannot run beside the second.
    again = "UPDATE unified_queue SET status = 'pending' WHERE queue_id = ? RETURNING queue_id"
    assert await db.run(again, first) == []
    assert (await take(db) or {})["queue_id"] == second
    assert len(await db.run(DONE, second, "w1")) == 1
    assert len(await db.run(again, first)) == 1


@pytest.mark.parametrize("by", ["statement", "windrow"])
async def test_row_that_is_retried_has_its_key_again(db: Db, store: Store, by: str) -> None:
    first, second = [await enqueue(db, idempotency_key=KEY, status="failed") for _ in range(2)]
    if by == "statement":
        again = "UPDATE unified_queue SET status = 'pending' WHERE queue_id = ?"
        await db.run(again, first)
    else:
        await store.retry_jobs([first])

    waiting = "SELECT queue_id FROM unified_queue WHERE idempotency_key = ? AND status = 'pending'"
    assert [row["queue_id"] for row in await db.run(waiting, KEY)] == [first]
    for tenant in ("tenant", "another"):
        with pytest.raises(REFUSED, match="idempotency_key"):
            await enqueue(db, idempotency_key=KEY, tenant_id=tenant)
    assert (await take(db) or {})["queue_id"] == first
    await db.run(DONE, first, "w1")
    assert (await look(db, second))["status"] == "failed"
    await enqueue(db, idempotency_key=KEY)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
async def test_key_that_windrow_used_again_is_that_of_the_new_row_on_sqlite(
    db: Db, store: Store
) -> None:
    first = await enqueue(db, idempotency_key=KEY)
    await take(db)
    await db.run(DONE, first, "w1")
    job_id = await add(store, "file.ingest", queue=DIALECT, tenant="tenant", unique=KEY)
    assert (await look(db, job_id))["idempotency_key"] == KEY
    sql = """
        INSERT INTO unified_queue (queue_id, item_type, op, tenant_id, collection, priority, status,
                                   created_at, updated_at, idempotency_key, payload_json)
        VALUES ('x', 'file', 'ingest', 't', 'c', 5, 'pending', '2026-01-01', '2026-01-01', ?, '{}')
        ON CONFLICT (idempotency_key) DO NOTHING RETURNING queue_id
    """
    assert await db.run(sql, KEY) == []


async def test_same_key_is_found_instead_of_inserted(db: Db) -> None:
    """The form that works on both: insert unless it is there, then look."""
    sql = """
        INSERT INTO unified_queue (queue_id, item_type, op, tenant_id, collection, priority, status,
                                   created_at, updated_at, idempotency_key, payload_json)
        SELECT ?, 'file', 'ingest', 't', 'c', 5, 'pending', ?, ?, 'key', '{}'
        WHERE NOT EXISTS (SELECT 1 FROM unified_queue WHERE idempotency_key = 'key')
        RETURNING queue_id
    """
    first, second = [await db.run(sql, str(uuid.uuid4()), at(0), at(0)) for _ in range(2)]
    found = await db.run("SELECT queue_id FROM unified_queue WHERE idempotency_key = 'key'")
    assert first == found
    assert second == []


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
async def test_upsert_returns_the_row_that_is_there_on_sqlite(db: Db, store: Store) -> None:
    sql = """
        INSERT INTO unified_queue (queue_id, item_type, op, tenant_id, collection, priority, status,
                                   created_at, updated_at, idempotency_key, payload_json)
        VALUES (?, 'file', 'ingest', 't', 'c', ?, 'pending', ?, ?, 'key', '{}')
        ON CONFLICT (idempotency_key) DO UPDATE SET priority = max(priority, excluded.priority)
        RETURNING queue_id, priority
    """
    [first] = await db.run(sql, str(uuid.uuid4()), 3, at(0), at(0))
    [second] = await db.run(sql, str(uuid.uuid4()), 9, at(0), at(0))
    assert second == first | {"priority": 9}
    assert (await get(store, first["queue_id"])).priority == 9


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
async def test_only_one_of_many_with_the_same_key_gets_in(db: Db, connect: Connect) -> None:
    others = [await connect() for _ in range(6)]
    got = await asyncio.gather(
        *(enqueue(other, idempotency_key="same") for other in others), return_exceptions=True
    )
    assert len([one for one in got if isinstance(one, str)]) == 1


# U5: dequeue


async def test_dequeue_is_by_priority_then_age(db: Db) -> None:
    ids = {
        (priority, age): await enqueue(db, priority=priority, created_at=at(-age))
        for priority, age in [(5, 1), (10, 1), (0, 100), (5, 50)]
    }
    order = [ids[10, 1], ids[5, 50], ids[5, 1], ids[0, 100]]
    assert [row["queue_id"] for row in await db.run(DEQUEUE, 10)] == order
    assert [(await take(db) or {})["queue_id"] for _ in range(4)] == order
    assert await take(db) is None


async def test_leased_row_is_an_active_job(db: Db, store: Store) -> None:
    queue_id = await enqueue(db)
    row = await take(db, "worker-7")

    assert row is not None
    assert (row["status"], row["worker_id"]) == ("in_progress", "worker-7")
    job = await get(store, queue_id)
    assert (job.state, job.worker, job.runs) == (JobState.ACTIVE, "unified_queue:worker-7", 1)
    assert job.lease_expires_at is not None
    left = job.lease_expires_at - datetime.now(UTC)
    assert timedelta(seconds=290) < left < timedelta(seconds=301)
    assert await claim(store, 1, DIALECT) == []


async def test_lease_that_lasts_cannot_be_taken(db: Db) -> None:
    queue_id = await enqueue(db)
    await take(db)
    sql = """
        UPDATE unified_queue SET status = 'in_progress', worker_id = 'w2', lease_until = ?
        WHERE queue_id = ? RETURNING *
    """
    assert await db.run(sql, at(300), queue_id) == []
    assert (await look(db, queue_id))["worker_id"] == "w1"


async def test_paused_queue_gives_nothing(db: Db, store: Store) -> None:
    await enqueue(db)
    await store.pause_queue(DIALECT)
    assert await take(db) is None
    await store.resume_queue(DIALECT)
    assert await take(db) is not None


# U6: leases


async def test_lease_is_renewed_by_its_worker_only(db: Db, store: Store) -> None:
    queue_id = await enqueue(db)
    await take(db, seconds=5)
    assert await db.run(RENEW, at(600), queue_id, "w2") == []
    assert len(await db.run(RENEW, at(600), queue_id, "w1")) == 1

    job = await get(store, queue_id)
    assert job.lease_expires_at is not None
    assert job.lease_expires_at > datetime.now(UTC) + timedelta(seconds=500)


async def test_stale_lease_is_found_and_requeued(db: Db, store: Store) -> None:
    queue_id, fresh = await enqueue(db), await enqueue(db)
    await take(db), await take(db)
    await db.run(RENEW, at(-10), queue_id, "w1")

    assert [row["queue_id"] for row in await db.run(STALE, at(0))] == [queue_id]
    assert [row["queue_id"] for row in await db.run(REQUEUE, at(0))] == [queue_id]
    row = await look(db, queue_id)
    assert (row["status"], row["worker_id"], row["lease_until"]) == ("pending", None, None)
    assert (await look(db, fresh))["status"] == "in_progress"
    assert await db.run(DONE, queue_id, "w1") == []


async def test_stale_lease_is_rescued_by_windrow(db: Db, store: Store) -> None:
    queue_id = await enqueue(db, max_retries=1)
    for retry in (0, 1):
        assert (await take(db) or {})["retry_count"] == retry
        await db.run(RENEW, at(-10), queue_id, "w1")
        assert [change.id for change in await store.rescue_jobs()] == [queue_id]
    row = await look(db, queue_id)
    assert (row["status"], row["retry_count"]) == ("failed", 2)
    assert row["error_message"] is not None


async def test_stale_lease_is_taken_over(db: Db) -> None:
    queue_id = await enqueue(db)
    await take(db)
    await db.run(RENEW, at(-10), queue_id, "w1")
    sql = """
        UPDATE unified_queue SET status = 'in_progress', worker_id = 'w2', lease_until = ?
        WHERE status = 'in_progress' AND lease_until < ? RETURNING *
    """
    [row] = await db.run(sql, at(300), at(0))
    assert (row["queue_id"], row["worker_id"]) == (queue_id, "w2")
    assert await db.run(DONE, queue_id, "w1") == []
    assert len(await db.run(DONE, queue_id, "w2")) == 1


async def test_failure_of_a_stale_row_holds(db: Db, store: Store) -> None:
    queue_id = await enqueue(db)
    await take(db)
    await db.run(RENEW, at(-300), queue_id, "w1")

    sql = "UPDATE unified_queue SET status = 'failed', error_message = 'no' WHERE queue_id = ?"
    [row] = await db.run(f"{sql} RETURNING *", queue_id)

    assert (row["status"], row["error_message"]) == ("failed", "no")
    assert [await take(db) for _ in range(2)] == [None, None]
    assert await store.rescue_jobs() == []
    assert await counts(store, DIALECT) == {JobState.FAILED: 1}


async def test_stale_rows_are_requeued_as_printed_after_a_long_silence(db: Db) -> None:
    queue_id, other = await enqueue(db), await enqueue(db)
    await take(db), await take(db)
    await db.run(RENEW, at(-300), queue_id, "w1")
    await db.run(RENEW, at(-300), other, "w1")

    assert len(await db.run(REQUEUE, at(0))) == 2
    assert (await look(db, queue_id))["retry_count"] == 0


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)  # SQLite has one writer at a time
async def test_failure_that_waits_for_a_rescue_holds(
    db: Db, store: Store, connect: Connect, dialect_url: str
) -> None:
    queue_id = await enqueue(db)
    await take(db)
    await db.run(RENEW, at(-300), queue_id, "w1")
    other = await asyncpg.connect(dialect_url)
    try:
        async with other.transaction():
            rescue = "SELECT windrow_dialect.rescue_job($1::text::uuid)"
            assert await other.fetchval(rescue, queue_id) == "ready"
            sql = "UPDATE unified_queue SET status = 'failed' WHERE queue_id = ? RETURNING *"
            ending = asyncio.create_task(db.run(sql, queue_id))
            await until_waiting(other)
        [row] = await ending
    finally:
        await other.close()
    assert (row["status"], row["retry_count"]) == ("failed", 1)
    assert await counts(store, DIALECT) == {JobState.FAILED: 1}


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
@pytest.mark.parametrize(("status", "meanwhile"), [("failed", REQUEUE), ("done", RENEW)])
async def test_end_of_a_stale_row_that_waits_for_another_statement_holds(
    db: Db, store: Store, connect: Connect, dialect_url: str, status: str, meanwhile: str
) -> None:
    """For the requeue at the start of a daemon, and for the heartbeat of the worker that ends."""
    queue_id = await enqueue(db)
    await take(db)
    await db.run(RENEW, at(-300), queue_id, "w1")
    other = await connect()
    await other.run("BEGIN")
    assert await other.run(
        meanwhile, *((at(0),) if meanwhile == REQUEUE else (at(60), queue_id, "w1"))
    )
    sql = f"UPDATE unified_queue SET status = '{status}' WHERE queue_id = ? RETURNING *"
    ending = asyncio.create_task(db.run(sql, queue_id))
    connection = await asyncpg.connect(dialect_url)
    await until_waiting(connection)
    await connection.close()
    await other.run("COMMIT")
    [row] = await ending
    assert row["status"] == status
    assert await take(db) is None


# U7: success, retry, failure


async def test_done_row_is_a_completed_job(db: Db, store: Store) -> None:
    queue_id = await enqueue(db)
    await take(db)
    [row] = await db.run(DONE, queue_id, "w1")

    assert (row["status"], row["worker_id"]) == ("done", "w1")
    assert await state(store, queue_id) is JobState.COMPLETED
    assert await counts(store, DIALECT) == {JobState.COMPLETED: 1}


async def test_retry_waits_for_its_backoff_then_fails_when_used_up(db: Db, store: Store) -> None:
    queue_id = await enqueue(db)
    for retry in range(1, 4):
        await take(db)
        back = at(60 * 2**retry)
        [row] = await db.run(RETRY, back, "HTTP 500", at(0), queue_id)
        assert (row["status"], row["retry_count"]) == ("pending", retry)
        assert row["error_message"] == "HTTP 500"
        job = await get(store, queue_id)
        assert (job.state, job.attempts) == (JobState.SCHEDULED, retry)
        assert await claim(store, 1, DIALECT) == []
    await take(db)
    assert await db.run(RETRY, None, "HTTP 500", at(0), queue_id) == []
    [row] = await db.run(FAIL, "max retries exceeded", at(0), queue_id)
    assert (row["status"], row["retry_count"]) == ("failed", 3)
    job = await get(store, queue_id)
    assert (job.state, job.error) == (JobState.FAILED, "max retries exceeded")


async def test_row_that_is_due_later_is_told_by_lease_until(db: Db, store: Store) -> None:
    later = await enqueue(db, lease_until=at(600))
    assert await state(store, later) is JobState.SCHEDULED
    sql = """
        SELECT queue_id FROM unified_queue
        WHERE status = 'pending' AND (lease_until IS NULL OR lease_until < ?)
    """
    assert await db.run(sql, at(0)) == []
    await db.run("UPDATE unified_queue SET lease_until = NULL WHERE queue_id = ?", later)
    assert await state(store, later) is JobState.READY
    assert len(await db.run(sql, at(0))) == 1


@pytest.mark.parametrize("end", ["done", "failed"])
async def test_what_has_ended_stays_so_while_another_row_has_its_key(db: Db, end: str) -> None:
    """Also a row of another tenant: keys are of the table."""
    former = await enqueue(db, idempotency_key="k", status=end)
    await enqueue(db, idempotency_key="k", tenant_id="another")
    again = "UPDATE unified_queue SET status = 'pending' WHERE queue_id = ? RETURNING *"
    assert await db.run(again, former) == []
    assert (await look(db, former))["status"] == end


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("same", ["queue_id", "idempotency_key"])
async def test_insert_or_replace_takes_the_place_of_the_row_and_its_job(
    db: Db, store: Store, same: str
) -> None:
    former = await enqueue(db, idempotency_key="k", priority=9)
    await take(db)
    row = dict(await look(db, former)) | {"status": "pending", "worker_id": None}
    row |= {"lease_until": None, "payload_json": '{"n": 2}'}
    row |= {"idempotency_key": "other"} if same == "queue_id" else {"queue_id": str(uuid.uuid4())}
    marks = ", ".join("?" * len(row))
    await db.run(
        f"INSERT OR REPLACE INTO unified_queue ({', '.join(row)}) VALUES ({marks})", *row.values()
    )
    [job] = await claim(store, 9, DIALECT)
    assert (job.payload, job.unique) == ({"n": 2}, row["idempotency_key"])
    await complete(store, job)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
async def test_insert_or_replace_of_what_a_windrow_worker_runs_is_refused(
    db: Db, store: Store
) -> None:
    former = await enqueue(db, idempotency_key="k")
    [job] = await claim(store, 1, DIALECT)
    row = dict(await look(db, former)) | {"queue_id": str(uuid.uuid4()), "status": "pending"}
    marks = ", ".join("?" * len(row))
    sql = f"INSERT OR REPLACE INTO unified_queue ({', '.join(row)}) VALUES ({marks})"
    with pytest.raises(sqlite3.IntegrityError, match="not this table's to delete"):
        await db.run(sql, *row.values())
    await complete(store, job)


@pytest.mark.parametrize("column", ["created_at", "lease_until"])
async def test_time_before_the_year_one_is_refused(db: Db, store: Store, column: str) -> None:
    far = "0000-01-01T00:00:00Z"
    with pytest.raises(REFUSED):
        await enqueue(db, **{"status": "in_progress", column: far})
    queue_id = await enqueue(db)
    with pytest.raises(REFUSED):
        await db.run(f"UPDATE unified_queue SET {column} = ? WHERE queue_id = ?", far, queue_id)


@pytest.mark.parametrize("end", ["done", "failed"])
async def test_what_has_ended_runs_again_when_set_to_pending(
    db: Db, store: Store, end: str
) -> None:
    queue_id = await enqueue(db)
    await take(db)
    await db.run("UPDATE unified_queue SET status = ? WHERE queue_id = ?", end, queue_id)
    again = "UPDATE unified_queue SET status = 'pending', retry_count = 0 WHERE queue_id = ?"
    await db.run(again, queue_id)
    row = await look(db, queue_id)
    assert (row["lease_until"], row["worker_id"]) == (None, None)
    assert await counts(store, DIALECT) == {JobState.READY: 1}
    assert (await take(db) or {})["queue_id"] == queue_id


async def test_one_end_is_not_turned_into_another(db: Db, store: Store) -> None:
    queue_id = await enqueue(db)
    await take(db)
    await db.run(DONE, queue_id, "w1")
    sql = "UPDATE unified_queue SET status = 'failed' WHERE queue_id = ? RETURNING *"
    assert await db.run(sql, queue_id) == []
    assert (await look(db, queue_id))["status"] == "done"


async def test_cleaned_up_rows_leave_nothing(db: Db, store: Store) -> None:
    ids = [await enqueue(db) for _ in range(3)]
    await take(db)
    await take(db)
    await db.run(DONE, ids[0], "w1")
    await db.run("DELETE FROM unified_queue")

    assert not any([await exists(store, queue_id) for queue_id in ids])
    assert await counts(store, DIALECT) == {}


async def test_columns_are_written_and_shown(db: Db, store: Store) -> None:
    queue_id = await enqueue(db)
    sql = """
        UPDATE unified_queue
        SET priority = 9, tenant_id = 't2', collection = 'libraries', branch = 'dev',
            metadata = '{"a": 1}', payload_json = '{"b": 2}', max_retries = 7, item_type = 'library'
        WHERE queue_id = ?
    """
    await db.run(sql, queue_id)

    row = await look(db, queue_id)
    assert (row["priority"], row["tenant_id"], row["collection"]) == (9, "t2", "libraries")
    assert (row["branch"], row["metadata"], row["payload_json"]) == (
        *("dev", '{"a": 1}'),
        '{"b": 2}',
    )
    job = await get(store, queue_id)
    assert (job.kind, job.tenant, job.priority, job.max_attempts) == ("library.ingest", "t2", 9, 8)
    assert (job.payload_json, job.headers) == (
        '{"b": 2}',
        {"collection": "libraries", "branch": "dev", "metadata": '{"a": 1}'},
    )


# Beside Windrow


async def test_windrows_job_is_shown_and_worked_on(db: Db, store: Store) -> None:
    job_id = await add(
        store,
        "content.update",
        {"content": "x"},
        queue=DIALECT,
        priority=7,
        unique="mine",
        headers={"collection": "scratchpad"},
    )
    row = await look(db, job_id)
    assert (row["item_type"], row["op"], row["collection"]) == ("content", "update", "scratchpad")
    assert (row["idempotency_key"], row["tenant_id"], row["status"]) == ("mine", "", "pending")

    assert (await take(db) or {})["queue_id"] == job_id
    await db.run(DONE, job_id, "w1")
    assert await state(store, job_id) is JobState.COMPLETED


async def test_windrows_run_is_shown_and_left_alone(db: Db, store: Store) -> None:
    queue_id = await enqueue(db)
    [job] = await claim(store, 1, DIALECT)
    row = await look(db, queue_id)
    assert (row["status"], row["worker_id"]) == ("in_progress", "worker-1")
    for change in ("status = 'done'", "status = 'pending'", "worker_id = 'w2'"):
        sql = f"UPDATE unified_queue SET {change} WHERE queue_id = ? RETURNING *"
        assert await db.run(sql, queue_id) == []
    assert await db.run("DELETE FROM unified_queue RETURNING queue_id") == []

    await complete(store, job)
    assert (await look(db, queue_id))["status"] == "done"


async def test_every_way_of_windrow_is_shown(db: Db, store: Store) -> None:
    queue_id = await enqueue(db)
    shown = []

    async def note() -> None:
        row = await look(db, queue_id)
        shown.append((row["status"], row["worker_id"], row["retry_count"]))

    [job] = await claim(store, 1, DIALECT)
    await note()
    await store.finish_jobs([attempt(job, delay=60)])
    await note()
    await store.pause_jobs([queue_id])
    await note()
    assert await take(db) is None
    await store.resume_jobs([queue_id])
    await note()
    await store.cancel_jobs([queue_id], "no")
    await note()
    await store.retry_jobs([queue_id])
    await note()
    assert shown == [
        ("in_progress", "worker-1", 0),
        ("pending", None, 1),
        ("in_progress", "windrow:paused", 1),
        ("pending", None, 1),
        ("failed", None, 1) if shown[4][1] is None else ("failed", shown[4][1], 1),
        ("pending", None, 0),
    ]
    await store.delete_jobs([queue_id])
    assert await db.run("SELECT * FROM unified_queue") == []


async def test_follower_takes_the_place_of_a_row_that_is_done(db: Db, store: Store) -> None:
    queue_id = await enqueue(db, idempotency_key="key", tenant_id="t")
    await take(db)
    follower = await insert(
        store, "file.update", queue=DIALECT, unique="key", tenant="t", on_conflict="follow"
    )
    assert await state(store, follower.id) is JobState.HELD
    await db.run(DONE, queue_id, "w1")

    assert await state(store, follower.id) is JobState.READY
    assert (await look(db, follower.id))["status"] == "pending"


async def test_jobs_that_do_not_fit_are_not_shown(db: Db, store: Store) -> None:
    await add(store, "something", queue=DIALECT)
    await add(store, "file.ingest", queue=DIALECT, priority=99)
    await add(store, "file.ingest", queue="other")
    assert await db.run("SELECT * FROM unified_queue") == []


async def test_jobs_of_other_queues_are_not_touched(db: Db, store: Store) -> None:
    job = await add_and_claim(store, "file.ingest")
    await complete(store, job)
    assert await db.run("SELECT * FROM unified_queue") == []


async def test_what_the_dialect_does_is_told(db: Db, store: Store) -> None:
    queue_id = await enqueue(db)
    await take(db)
    await db.run(DONE, queue_id, "w1")

    page = await store.read_events(0, EventFilter(), span=1000, limit=1000)
    told = [(batch.type, batch.job_ids) for batch in page.batches]
    assert told == [(type, (queue_id,)) for type in ("job.created", "job.started", "job.finished")]


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
async def test_job_of_a_group_is_counted_to_it(db: Db, store: Store) -> None:
    group = await make_group(store)
    job_id = await add(store, "file.ingest", queue=DIALECT, group=group.id)
    await store.close_group(group.id)
    await take(db)
    await db.run(DONE, job_id, "w1")
    assert (await get_group(store, group.id)).state == "completed"


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
async def test_job_of_a_group_is_not_for_the_dialect_on_sqlite(db: Db, store: Store) -> None:
    group = await make_group(store)
    job_id = await add(store, "file.ingest", queue=DIALECT, group=group.id)
    row = await look(db, job_id)
    assert (row["status"], row["worker_id"]) == ("in_progress", "windrow:group")
    assert await take(db) is None
    [job] = await claim(store, 1, DIALECT)
    await complete(store, job)
    assert (await look(db, job_id))["status"] == "done"


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
async def test_any_text_is_a_queue_id_on_sqlite(db: Db, store: Store) -> None:
    ids = [await enqueue(db, queue_id=text) for text in ("plain", uuid.uuid4().hex, "Ä-1")]
    for _ in ids:
        row = await take(db)
        assert row is not None
        await db.run(DONE, row["queue_id"], "w1")
    assert await counts(store, DIALECT) == {JobState.COMPLETED: 3}


async def test_dialect_is_removed_and_comes_back_with_its_jobs(db: Db, store: Store) -> None:
    waiting, done = await enqueue(db, priority=1), await enqueue(db)
    await take(db)
    await db.run(DONE, done, "w1")
    assert await store.remove_dialect(DIALECT)
    with pytest.raises((asyncpg.UndefinedTableError, sqlite3.OperationalError)):
        await db.run("SELECT * FROM unified_queue")
    later = await add(store, "file.delete", queue=DIALECT, priority=2)
    assert await store.install_dialect(DIALECT)
    found = await db.run("SELECT queue_id, status FROM unified_queue")
    assert {row["queue_id"]: row["status"] for row in found} == {
        waiting: "pending",
        done: "done",
        later: "pending",
    }


@pytest.mark.parametrize("seed", range(6))
async def test_any_mixture_of_writes_keeps_both_sides_true(
    kind: str, db: Db, store: Store, dialect_url: str, seed: int
) -> None:
    """Statements of the dialect and verbs of Windrow in a random order; what each refuses, it
    refuses. The tally, the leases and on SQLite the rows are compared after every few."""
    choose = random.Random(seed)
    keys = [f"key-{n}" for n in range(5)]
    rows: list[str] = []
    held: list[Job] = []

    def some() -> str:
        return choose.choice(rows) if rows else str(uuid.uuid4())

    async def write(change: str, *values: Any) -> None:
        await db.run(f"UPDATE unified_queue SET {change} WHERE queue_id = ?", *values, some())

    async def put() -> None:
        with contextlib.suppress(*REFUSED):
            rows.append(await enqueue(db, tenant_id="t", idempotency_key=choose.choice(keys)))

    async def put_here() -> None:
        given = await insert(
            store,
            *("file.update", {"n": 1}),
            queue=DIALECT,
            tenant="t",
            unique=choose.choice([None, *keys]),
            on_conflict=choose.choice(["return", "replace", "follow"]),
            delay=choose.choice([0, 60]),
        )
        rows.append(given.id)

    async def claim_here() -> None:
        held.extend(await claim(store, 2, DIALECT))

    async def finish_here() -> None:
        if held:
            job = held.pop(choose.randrange(len(held)))
            ends = [completion(job), failure(job), attempt(job), snooze(job)]
            await store.finish_jobs([choose.choice(ends)])

    steps: list[Callable[[], Awaitable[Any]]] = [
        *(put, put, put_here, put_here, claim_here, finish_here, finish_here),
        lambda: take(db, choose.choice(["w1", "w2"])),
        lambda: take(db, "w1", seconds=-5),
        lambda: write("status = 'done'"),
        lambda: write("status = 'failed', error_message = 'boom'"),
        lambda: write("status = 'pending', retry_count = retry_count + 1, error_message = 'again'"),
        lambda: write("status = 'in_progress', worker_id = 'w3', lease_until = ?", at(300)),
        lambda: write("lease_until = ?", at(choose.choice([-5, 60]))),
        lambda: write("priority = ?", choose.randrange(11)),
        lambda: db.run(REQUEUE, at(0)),
        lambda: db.run("DELETE FROM unified_queue WHERE queue_id = ?", some()),
        lambda: store.rescue_jobs(),
        lambda: store.stage_jobs(),
        lambda: store.pause_jobs([some()]),
        lambda: store.resume_jobs([some()]),
        lambda: store.cancel_jobs([some()], "no"),
        lambda: store.retry_jobs([some()]),
        lambda: store.delete_jobs([some()]),
    ]
    for number in range(150):
        await choose.choice(steps)()
        if number % 10 == 0:
            assert await tallied(store) == await counted(store)
            if kind == "sqlite":
                require_same_rows(dialect_url)
            else:
                await require_true_leases(dialect_url)


def test_document_prints_tables_and_a_diagram_but_no_statement(reading: Reading) -> None:
    """So the statements here are the diagram's, written out."""
    assert reading.statements == []


@pytest.mark.long
async def test_each_job_is_run_once_by_whoever_takes_it(
    kind: str, db: Db, store: Store, connect: Connect, dialect_url: str
) -> None:
    """8 connections with the dialect's statements and a Windrow worker, 500 jobs."""
    number = f"generate_series(1, {JOBS}) AS n (n)"
    if kind == "sqlite":
        number = f"""(WITH RECURSIVE n (n)
                          AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {JOBS})
                      SELECT n FROM n) AS n"""
    await db.run(
        f"""INSERT INTO unified_queue (queue_id, item_type, op, tenant_id, collection, priority,
                                       idempotency_key, payload_json)
            SELECT {"gen_random_uuid()" if kind == "postgres" else "'id-' || n"}, 'file', 'ingest',
                   't', 'c', n % 11, 'key-' || n, '{{}}' FROM {number}"""
    )
    runs: Counter[str] = Counter()
    statement = CLAIM.format(locking="FOR UPDATE SKIP LOCKED" if kind == "postgres" else "")

    async def foreign(worker: str) -> None:
        connection = await connect()
        while rows := await connection.run(statement, at(300), worker):
            [row] = rows
            runs[row["idempotency_key"]] += 1
            assert len(await connection.run(DONE, row["queue_id"], worker)) == 1

    worker = asyncio.create_task(
        run_worker(
            *(dialect_url, DIALECT, ["file.ingest"]), lambda job: runs.update([str(job.unique)])
        )
    )
    await asyncio.gather(*(foreign(f"w{n}") for n in range(CONNECTIONS)), worker)

    assert 0 < worker.result() < JOBS
    assert len(runs) == JOBS
    assert set(runs.values()) == {1}
    assert await counts(store, DIALECT) == {JobState.COMPLETED: JOBS}


# Plans


SERVED = {
    "dequeue": DEQUEUE.replace("?", "10"),
    "idempotency": "SELECT * FROM unified_queue WHERE idempotency_key = 'k'",
    "lease_expiry": STALE.replace("?", "'2026'"),
    "collection_tenant": "SELECT * FROM unified_queue WHERE collection = 'c' AND tenant_id = 't'",
    "item_type": "SELECT * FROM unified_queue WHERE item_type = 'file' AND status = 'failed'",
    "failed": "SELECT * FROM unified_queue WHERE status = 'failed' ORDER BY last_error_at",
    "worker": "SELECT * FROM unified_queue WHERE worker_id = 'w' AND status = 'in_progress'",
}


@pytest.mark.parametrize("index", SERVED)
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
async def test_each_index_serves_its_purpose_on_sqlite(db: Db, index: str) -> None:
    for n in range(60):
        status = "in_progress" if n % 10 == 0 else "failed" if n % 10 == 1 else "pending"
        await enqueue(db, status=status, tenant_id=f"t{n}", worker_id=f"w{n}", lease_until=at(n))
    await db.run("ANALYZE unified_queue")
    rows = await db.run(f"EXPLAIN QUERY PLAN {SERVED[index]}")
    steps = "\n".join(row["detail"] for row in rows)
    name = f"idx_unified_queue_{index}"
    if index == "idempotency":
        assert re.search(rf"USING INDEX ({name}|sqlite_autoindex_unified_queue_\d)", steps)
    else:
        assert f"INDEX {name}" in steps
    assert "SCAN unified_queue" not in steps
    if index in ("dequeue", "failed"):
        assert "TEMP B-TREE" not in steps


@pytest.fixture
async def filled(db: Db) -> Db:
    """Enough of everything that a bad plan would be a scan."""
    for sql in (
        """INSERT INTO windrow.job_live (id, queue, kind, state, priority, run_at, created_at,
                                         max_attempts, max_crashes, tenant)
           SELECT gen_random_uuid(), queue, 'file.ingest', 'ready', n % 7, now(), now(), 5, 5, n
             FROM generate_series(1, 3000) AS n,
                  unnest(ARRAY['unified_queue', 'other']) AS queue""",
        """INSERT INTO windrow.job_finished (id, queue, kind, state, priority, run_at, created_at,
                                             max_attempts, max_crashes, finished_at, leaf, tenant)
           SELECT gen_random_uuid(), 'unified_queue', 'file.ingest', 'completed', 0, now(), now(),
                  5, 5, now(), 3, n
             FROM generate_series(1, 3000) AS n""",
        "INSERT INTO windrow.job_payload (id, payload) SELECT id, '{}' FROM windrow.job",
        """INSERT INTO windrow.tally (n, queue, state)
           SELECT count(*), queue, state FROM windrow.job GROUP BY queue, state""",
        "ANALYZE windrow.job_live",
        "ANALYZE windrow.job_finished",
    ):
        await db.run(sql)
    return db


async def plan(db: Db, sql: str) -> str:
    rows = await db.run(f"EXPLAIN (COSTS OFF) {sql}")
    return "\n".join(row["QUERY PLAN"] for row in rows)


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
async def test_each_question_is_served_by_an_index_on_postgres(filled: Db) -> None:
    for index, question in SERVED.items():
        steps = await plan(filled, question)
        assert "unified_queue" in steps, index
        assert not re.search(r"Seq Scan on job_(live|finished_03)", steps), index


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
async def test_dequeue_walks_its_index_and_no_finished_leaf(filled: Db) -> None:
    claiming = CLAIM[CLAIM.index("SELECT") : CLAIM.index(" {locking}")] + " FOR UPDATE SKIP LOCKED"
    for statement in (SERVED["dequeue"], claiming):
        steps = await plan(filled, statement)
        assert "Index Scan using unified_queue_dequeue on job_live job" in steps
        assert "Sort" not in steps
        assert "job_finished" not in steps


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
async def test_row_is_found_by_its_id_on_postgres(filled: Db) -> None:
    steps = await plan(
        filled, "UPDATE unified_queue SET status = 'done' WHERE queue_id = 'x' AND worker_id = 'w'"
    )
    assert "unified_queue_id" in steps
    assert not re.search(r"Seq Scan on job_(live|finished_03)", steps)


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
async def test_row_is_found_by_its_id_by_a_plan_made_while_the_queue_was_empty(db: Db) -> None:
    steps = await plan(db, "SELECT * FROM unified_queue WHERE queue_id = 'x'")

    assert "Index Scan using unified_queue_id on job_live" in steps
    assert "Seq Scan" not in steps
