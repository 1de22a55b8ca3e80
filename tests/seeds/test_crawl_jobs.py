"""Seed 003 (A1): the queue of crawl requests. Every operation of the document, in its own SQL."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from tests.builders import (
    add,
    attempt,
    claim,
    completion,
    counted,
    counts,
    failure,
    get,
    get_group,
    insert,
    make_group,
    snooze,
    tallied,
)
from tests.seeds.conftest import Connect, require_true_leases, until_waiting
from tests.seeds.documents import Reading, columns_of
from tests.seeds.workers import run_worker
from windrow.queue.job import Job, JobState
from windrow.queue.store import Store

DIALECT = "crawl_jobs"
SEED = "003"
JOBS = 500
CONNECTIONS = 8

CLAIM = """
    UPDATE crawl_jobs
    SET status = 'processing',
        worker_id = $1,
        started_at = NOW(),
        last_heartbeat = NOW()
    WHERE id = (
        SELECT id
        FROM crawl_jobs
        WHERE status = 'pending'
        ORDER BY priority DESC, created_at ASC
        FOR UPDATE SKIP LOCKED
        LIMIT 1
    )
    RETURNING *
"""
HEARTBEAT = "UPDATE crawl_jobs SET last_heartbeat = NOW() WHERE id = $1"
COMPLETE = "UPDATE crawl_jobs SET status = 'completed', completed_at = NOW() WHERE id = $1"
FAIL = "UPDATE crawl_jobs SET status = 'failed', error_message = $2 WHERE id = $1"
STALE = """
    SELECT id FROM crawl_jobs
    WHERE status = 'processing' AND last_heartbeat < NOW() - INTERVAL '2 minutes'
"""
RECOVER = """
    UPDATE crawl_jobs
    SET status = 'pending', worker_id = NULL, retry_count = retry_count + 1
    WHERE status = 'processing' AND last_heartbeat < NOW() - INTERVAL '2 minutes'
      AND retry_count < max_retries
"""
GIVE_UP = """
    UPDATE crawl_jobs
    SET status = 'failed', error_message = 'Worker timed out'
    WHERE status = 'processing' AND last_heartbeat < NOW() - INTERVAL '2 minutes'
      AND retry_count >= max_retries
"""
AGE = "UPDATE crawl_jobs SET last_heartbeat = NOW() - INTERVAL '150 seconds' WHERE id = $1"
LOSE = "UPDATE crawl_jobs SET last_heartbeat = NOW() - INTERVAL '5 minutes' WHERE id = $1"
ME = uuid.uuid4()
LABELS = ("pending", "processing", "completed", "failed", "cancelled", "paused")


async def enqueue(db: Any, **columns: Any) -> uuid.UUID:
    columns = {"payload": '{"url": "https://example.org"}', **columns}
    names = ", ".join(columns)
    values = ", ".join(f"${place}" for place in range(1, len(columns) + 1))
    sql = f"INSERT INTO crawl_jobs ({names}) VALUES ({values}) RETURNING id"
    job_id: uuid.UUID = await db.fetchval(sql, *columns.values())
    return job_id


async def look(db: Any, job_id: uuid.UUID) -> dict[str, Any]:
    return dict(await db.fetchrow("SELECT * FROM crawl_jobs WHERE id = $1", job_id))


async def work(db: Any, worker: uuid.UUID = ME) -> Any:
    return await db.fetchrow(CLAIM, worker)


async def run_of(store: Store) -> list[Job]:
    """What a Windrow worker gets."""
    return await claim(store, 1, DIALECT)


def changed(answer: str) -> int:
    return int(answer.split()[-1])


# The table


async def test_columns_types_and_defaults_are_those_of_the_document(db: Any) -> None:
    found = await db.fetch("""
        SELECT column_name, udt_name, column_default FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name = 'crawl_jobs' ORDER BY ordinal_position
    """)
    assert [(row[0], row[1]) for row in found] == [
        ("id", "uuid"),
        ("payload", "jsonb"),
        ("priority", "int4"),
        ("status", "job_status"),
        ("worker_id", "uuid"),
        ("progress_percentage", "int4"),
        ("created_at", "timestamptz"),
        ("started_at", "timestamptz"),
        ("completed_at", "timestamptz"),
        ("last_heartbeat", "timestamptz"),
        ("retry_count", "int4"),
        ("max_retries", "int4"),
        ("error_message", "text"),
        ("source_id", "text"),
        ("user_id", "uuid"),
    ]
    defaults = {row[0]: row[2] for row in found if row[2] is not None}
    assert defaults == {
        "id": "gen_random_uuid()",
        "priority": "0",
        "status": "'pending'::job_status",
        "progress_percentage": "0",
        "created_at": "now()",
        "retry_count": "0",
        "max_retries": "3",
    }
    labels = await db.fetchval("SELECT enum_range(NULL::job_status)::text[]")
    assert tuple(labels) == LABELS


async def test_documents_own_statements_run(db: Any, store: Store, reading: Reading) -> None:
    # The extension uuid-ossp is not everywhere; of it only this one is asked for.
    await db.execute("""
        CREATE FUNCTION public.uuid_generate_v4() RETURNS uuid LANGUAGE sql
        AS 'SELECT gen_random_uuid()'
    """)
    await reading.make_original(db)
    printed = [
        (
            name,
            type,
            default
            and default.replace("printed.", "").replace("uuid_generate_v4", "gen_random_uuid"),
        )
        for name, type, default in await columns_of(db, "printed", DIALECT)
    ]
    assert await columns_of(db, "public", DIALECT) == printed

    job_id = await enqueue(db)
    claiming = reading.find("SKIP LOCKED")
    [row] = await reading.run(db, claiming, ME, my_worker_id="$1")
    assert (row["id"], row["status"], row["worker_id"]) == (job_id, "processing", ME)


# A. The producer


async def test_enqueued_row_is_pending_with_the_defaults(db: Any, store: Store) -> None:
    job_id = await enqueue(db, source_id="docs", user_id=ME)

    row = await look(db, job_id)
    assert (row["status"], row["priority"], row["progress_percentage"]) == ("pending", 0, 0)
    assert (row["retry_count"], row["max_retries"]) == (0, 3)
    assert (row["source_id"], row["user_id"]) == ("docs", ME)
    assert row["worker_id"] is row["started_at"] is row["completed_at"] is None
    [job] = await run_of(store)
    assert (job.id, job.kind, job.tenant) == (str(job_id), "crawl", str(ME))
    assert (job.max_attempts, job.headers) == (4, {"source_id": "docs"})


async def test_payload_is_needed(db: Any) -> None:
    with pytest.raises(asyncpg.NotNullViolationError):
        await enqueue(db, payload=None)


async def test_the_same_id_is_refused(db: Any) -> None:
    job_id = await enqueue(db)
    await work(db)
    await db.execute(COMPLETE, job_id)

    with pytest.raises(asyncpg.UniqueViolationError):
        await enqueue(db, id=job_id)


async def test_rows_are_written_as_they_are_given(db: Any, store: Store) -> None:
    """As a table is brought over: every status, with ids and times."""
    old = datetime(2024, 5, 1, tzinfo=UTC)
    rows = {}
    for status in ("pending", "processing", "completed", "failed", "cancelled", "paused"):
        rows[status] = await enqueue(
            db,
            id=uuid.uuid4(),
            status=status,
            created_at=old,
            started_at=old,
            completed_at=old if status in ("completed", "failed", "cancelled") else None,
            last_heartbeat=datetime.now(UTC) if status == "processing" else None,
            worker_id=ME if status == "processing" else None,
            retry_count=2,
            progress_percentage=40,
        )
    for status, job_id in rows.items():
        row = await look(db, job_id)
        assert (row["status"], row["created_at"], row["started_at"]) == (status, old, old)
        assert (row["retry_count"], row["progress_percentage"]) == (2, 40)
        is_done = status in ("completed", "failed", "cancelled")
        assert row["completed_at"] == (old if is_done else None)
    assert (await look(db, rows["processing"]))["worker_id"] == ME


# B. The workers


async def test_claim_takes_the_highest_priority_then_the_oldest(db: Any) -> None:
    old, new = datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC)
    second = await enqueue(db, priority=5, created_at=new)
    first = await enqueue(db, priority=5, created_at=old)
    third = await enqueue(db, priority=1, created_at=old)

    assert [(await work(db))["id"] for _ in range(3)] == [first, second, third]
    assert await work(db) is None


async def test_claimed_row_is_processing_under_its_worker(db: Any, store: Store) -> None:
    job_id = await enqueue(db)

    row = await work(db)
    assert dict(row) == await look(db, job_id)
    assert (row["status"], row["worker_id"], row["payload"]) == (
        "processing",
        ME,
        '{"url": "https://example.org"}',
    )
    assert row["started_at"] == row["last_heartbeat"]
    assert await run_of(store) == []
    assert await counts(store, DIALECT) == {JobState.ACTIVE: 1}
    job = await get(store, str(job_id))
    assert job.worker == f"crawl_jobs:{ME}"


async def test_heartbeat_keeps_the_run(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await work(db)
    await db.execute(AGE, job_id)
    assert [row["id"] for row in await db.fetch(STALE)] == [job_id]

    assert changed(await db.execute(HEARTBEAT, job_id)) == 1
    assert await db.fetch(STALE) == []
    assert await store.rescue_jobs() == []


async def test_progress_is_kept_and_never_goes_back(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await work(db)
    report = "UPDATE crawl_jobs SET progress_percentage = $2 WHERE id = $1 RETURNING *"

    shown = [(await db.fetchrow(report, job_id, n))["progress_percentage"] for n in (10, 60, 30)]
    assert shown == [10, 60, 60]
    job = await get(store, str(job_id))
    assert job.progress is not None
    assert job.progress.percent == 60


async def test_heartbeat_does_not_undo_progress_written_at_the_same_time(
    db: Any, connect: Connect
) -> None:
    """A worker has a task for each: neither may cost the other."""
    other = await connect()
    job_id = await enqueue(db)
    await work(db)
    for percent in range(1, 40):
        beat, progress = await asyncio.gather(
            db.execute(HEARTBEAT, job_id),
            other.execute(
                "UPDATE crawl_jobs SET progress_percentage = $2 WHERE id = $1", job_id, percent
            ),
        )
        assert (changed(beat), changed(progress)) == (1, 1)
    assert (await look(db, job_id))["progress_percentage"] == 39


async def test_completed_row_has_its_time_and_its_worker(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    claimed = await work(db)
    await db.execute(COMPLETE, job_id)

    row = await look(db, job_id)
    assert (row["status"], row["worker_id"]) == ("completed", ME)
    assert row["last_heartbeat"] == claimed["last_heartbeat"]
    assert row["completed_at"] >= row["started_at"]
    assert await counts(store, DIALECT) == {JobState.COMPLETED: 1}


async def test_failed_row_says_why(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await work(db)
    await db.execute(FAIL, job_id, "HTTP 500")

    row = await look(db, job_id)
    assert (row["status"], row["error_message"]) == ("failed", "HTTP 500")
    job = await get(store, str(job_id))
    assert [error.message for error in job.errors] == ["HTTP 500"]


async def test_end_of_another_workers_run_is_refused(db: Any) -> None:
    job_id = await enqueue(db)
    await work(db)
    end = "UPDATE crawl_jobs SET status = 'completed' WHERE id = $1 AND worker_id = $2"

    assert changed(await db.execute(end, job_id, uuid.uuid4())) == 0
    assert changed(await db.execute(end, job_id, ME)) == 1


async def test_run_that_lasts_cannot_be_taken(db: Any) -> None:
    job_id = await enqueue(db)
    await work(db)
    take = "UPDATE crawl_jobs SET status = 'processing', worker_id = $2 WHERE id = $1"

    assert changed(await db.execute(take, job_id, uuid.uuid4())) == 0
    assert (await look(db, job_id))["worker_id"] == ME


async def test_update_of_what_has_changed_since_is_refused(db: Any, connect: Connect) -> None:
    """The one that waited for the lock finds the row taken."""
    other = await connect()
    job_id = await enqueue(db)
    take = """
        UPDATE crawl_jobs SET status = 'processing', worker_id = $2, last_heartbeat = NOW()
        WHERE id = $1 AND status = 'pending'
    """
    async with db.transaction():
        assert changed(await db.execute(take, job_id, ME)) == 1
        late = asyncio.create_task(other.execute(take, job_id, uuid.uuid4()))
        await asyncio.sleep(0.2)
        assert not late.done()
    assert changed(await late) == 0
    assert (await look(db, job_id))["worker_id"] == ME


# Pause, resume, cancel


async def test_pending_row_is_paused_and_resumed(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await db.execute("UPDATE crawl_jobs SET status = 'paused' WHERE id = $1", job_id)
    assert await work(db) is None
    assert await run_of(store) == []

    await db.execute("UPDATE crawl_jobs SET status = 'pending' WHERE status = 'paused'")
    assert (await work(db))["id"] == job_id


async def test_running_row_is_paused_and_resumed(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await work(db)
    await db.execute("UPDATE crawl_jobs SET status = 'paused' WHERE id = $1", job_id)
    row = await look(db, job_id)
    assert (row["status"], row["worker_id"], row["retry_count"]) == ("paused", None, 0)
    assert await counts(store, DIALECT) == {JobState.PAUSED: 1}

    await db.execute("UPDATE crawl_jobs SET status = 'pending' WHERE id = $1", job_id)
    assert (await work(db))["id"] == job_id


@pytest.mark.parametrize("is_running", [False, True])
async def test_cancelled_row_is_never_run(db: Any, store: Store, is_running: bool) -> None:
    job_id = await enqueue(db)
    if is_running:
        await work(db)
    await db.execute("UPDATE crawl_jobs SET status = 'cancelled' WHERE id = $1", job_id)

    assert await counts(store, DIALECT) == {JobState.CANCELLED: 1}
    assert await work(db) is None
    assert changed(await db.execute(COMPLETE, job_id)) == 0
    assert (await look(db, job_id))["status"] == "cancelled"


async def test_windrow_workers_run_is_asked_to_stop(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    [job] = await run_of(store)
    await db.execute("UPDATE crawl_jobs SET status = 'cancelled' WHERE id = $1", job_id)

    assert (await look(db, job_id))["status"] == "cancelled"
    renewal = await store.extend_leases([job.lease_token or ""])
    assert renewal.stopping == {job.id: JobState.CANCELLED}
    assert changed(await db.execute(COMPLETE, job_id)) == 0


async def test_failed_row_runs_again_when_set_to_pending(db: Any) -> None:
    job_id = await enqueue(db)
    await work(db)
    await db.execute(FAIL, job_id, "HTTP 500")
    again = "UPDATE crawl_jobs SET status = 'pending', retry_count = 0 WHERE id = $1"

    assert changed(await db.execute(again, job_id)) == 1
    assert (await work(db))["id"] == job_id


async def test_deleted_row_leaves_nothing(db: Any, store: Store) -> None:
    ids = [await enqueue(db) for _ in range(3)]
    await work(db)
    await db.execute(COMPLETE, (await work(db))["id"])

    assert changed(await db.execute("DELETE FROM crawl_jobs")) == 3
    assert await store.get_jobs([str(job_id) for job_id in ids]) == {}


async def test_windrow_workers_run_is_not_deleted(db: Any, store: Store) -> None:
    await enqueue(db)
    [job] = await run_of(store)

    assert changed(await db.execute("DELETE FROM crawl_jobs")) == 0
    assert not (await store.finish_jobs([completion(job)])).lost


# 3. The reaper


async def test_reaper_returns_a_silent_run(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await work(db)
    await db.execute(AGE, job_id)

    assert changed(await db.execute(GIVE_UP)) == 0
    assert changed(await db.execute(RECOVER)) == 1
    row = await look(db, job_id)
    assert (row["status"], row["worker_id"], row["retry_count"]) == ("pending", None, 1)
    assert await counts(store, DIALECT) == {JobState.READY: 1}


async def test_reaper_gives_up_after_the_last_retry(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    for retry in range(4):
        assert (await work(db))["retry_count"] == retry
        await db.execute(AGE, job_id)
        recovered, given_up = await db.execute(RECOVER), await db.execute(GIVE_UP)
        assert (changed(recovered), changed(given_up)) == ((0, 1) if retry == 3 else (1, 0))

    row = await look(db, job_id)
    assert (row["status"], row["error_message"]) == ("failed", "Worker timed out")
    assert row["retry_count"] == 3


async def test_windrow_rescues_a_silent_run_and_counts_alike(db: Any, store: Store) -> None:
    job_id = await enqueue(db, max_retries=1)
    await work(db)
    await db.execute(AGE, job_id)
    assert [change.id for change in await store.rescue_jobs()] == [str(job_id)]
    row = await look(db, job_id)
    assert (row["status"], row["retry_count"]) == ("pending", 1)

    await work(db)
    await db.execute(AGE, job_id)
    await store.rescue_jobs()
    assert (await look(db, job_id))["status"] == "failed"


async def test_reaper_leaves_alone_what_spoke_meanwhile(db: Any, connect: Connect) -> None:
    other = await connect()
    job_id = await enqueue(db)
    await work(db)
    await db.execute(AGE, job_id)
    async with db.transaction():
        await db.execute(HEARTBEAT, job_id)
        reaping = asyncio.create_task(other.execute(RECOVER))
        await asyncio.sleep(0.2)
        assert not reaping.done()
    assert changed(await reaping) == 0
    assert (await look(db, job_id))["status"] == "processing"


async def test_reaper_finds_long_silent_runs_as_they_are(db: Any) -> None:
    # No Windrow worker runs, and a claim has had the time to rescue neither.
    again, used_up = await enqueue(db), await enqueue(db, max_retries=0)
    for _ in range(2):
        await work(db)
    await db.execute("UPDATE crawl_jobs SET last_heartbeat = NOW() - INTERVAL '5 minutes'")
    await db.execute("UPDATE crawl_jobs SET progress_percentage = 40 WHERE id = $1", again)

    assert {row["id"] for row in await db.fetch(STALE)} == {again, used_up}
    recovered, given_up = await db.execute(RECOVER), await db.execute(GIVE_UP)
    assert (changed(recovered), changed(given_up)) == (1, 1)
    assert (await look(db, again))["retry_count"] == 1
    assert (await look(db, used_up))["error_message"] == "Worker timed out"


EXPLICIT = {
    "cancelled": JobState.CANCELLED,
    "paused": JobState.PAUSED,
    "failed": JobState.FAILED,
}


@pytest.mark.parametrize("status", EXPLICIT)
@pytest.mark.parametrize("holder", ["a worker of crawl_jobs", "a Windrow worker"])
async def test_cancel_pause_or_failure_of_a_silent_run_holds(
    db: Any, store: Store, status: str, holder: str
) -> None:
    job_id = await enqueue(db)
    if holder == "a Windrow worker":
        await run_of(store)
    else:
        await work(db)
    await db.execute(LOSE, job_id)

    end = "UPDATE crawl_jobs SET status = $2 WHERE id = $1"
    assert changed(await db.execute(end, job_id, status)) == 1

    assert (await look(db, job_id))["status"] == status
    assert [await work(db) for _ in range(2)] == [None, None]
    await store.rescue_jobs()
    assert await counts(store, DIALECT) == {EXPLICIT[status]: 1}


@pytest.mark.parametrize("status", EXPLICIT)
async def test_cancel_pause_or_failure_that_waits_for_a_rescue_holds(
    db: Any, store: Store, connect: Connect, status: str
) -> None:
    other = await connect()
    job_id = await enqueue(db)
    await work(db)
    await db.execute(LOSE, job_id)
    end = "UPDATE crawl_jobs SET status = $2, error_message = 'by hand' WHERE id = $1"
    async with other.transaction():
        assert changed(await other.execute(RECOVER)) == 1
        ending = asyncio.create_task(db.execute(end, job_id, status))
        await until_waiting(other)

    assert changed(await ending) == 1
    row = await look(db, job_id)
    assert (row["status"], row["retry_count"], row["error_message"]) == (status, 1, "by hand")
    assert await counts(store, DIALECT) == {EXPLICIT[status]: 1}


@pytest.mark.parametrize("status", ["cancelled", "paused", "completed"])
async def test_cancel_pause_or_end_of_a_silent_row_that_waits_for_a_heartbeat_holds(
    db: Any, connect: Connect, status: str
) -> None:
    other = await connect()
    job_id = await enqueue(db)
    await work(db)
    await db.execute(LOSE, job_id)
    async with other.transaction():
        assert await other.execute(HEARTBEAT, job_id) == "UPDATE 1"
        sql = "UPDATE crawl_jobs SET status = $2 WHERE id = $1"
        ending = asyncio.create_task(db.execute(sql, job_id, status))
        await until_waiting(other)
    assert await ending == "UPDATE 1"
    assert (await look(db, job_id))["status"] == status


async def test_cancel_that_waits_for_a_new_claim_changes_nothing(db: Any, connect: Connect) -> None:
    other = await connect()
    job_id = await enqueue(db)
    await work(db)
    await db.execute(LOSE, job_id)
    async with other.transaction():
        await other.execute(RECOVER)
        assert (await work(other))["id"] == job_id
        ending = asyncio.create_task(
            db.execute("UPDATE crawl_jobs SET status = 'failed' WHERE id = $1", job_id)
        )
        await until_waiting(other)

    assert changed(await ending) == 0
    assert (await look(db, job_id))["status"] == "processing"


async def test_reaper_sees_what_windrow_workers_hold(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    [job] = await run_of(store)
    row = await look(db, job_id)
    assert row["status"] == "processing"
    assert row["worker_id"] is not None
    assert changed(await db.execute(RECOVER)) == 0
    assert changed(await db.execute(COMPLETE, job_id)) == 0

    await db.execute(AGE, job_id)
    assert changed(await db.execute(RECOVER)) == 1
    assert (await store.finish_jobs([completion(job)])).lost == (job.id,)


# Without a Windrow worker


async def test_claims_rescue_what_was_abandoned(db: Any) -> None:
    job_id = await enqueue(db)
    await work(db)
    await db.execute(LOSE, job_id)

    assert await work(db, uuid.uuid4()) is None
    row = await work(db, uuid.uuid4())
    assert (row["id"], row["retry_count"]) == (job_id, 1)


async def test_claims_fail_what_was_abandoned_too_often(db: Any) -> None:
    job_id = await enqueue(db, max_retries=0)
    await work(db)
    await db.execute(LOSE, job_id)

    assert await work(db) is None
    assert (await look(db, job_id))["status"] == "failed"


async def test_claims_take_what_has_become_due(db: Any, store: Store) -> None:
    later = await add(store, "crawl", queue=DIALECT, delay=3600)
    assert (await look(db, uuid.UUID(later)))["status"] == "paused"
    assert await work(db) is None
    await db.execute("UPDATE windrow.job_live SET run_at = now() WHERE id = $1", uuid.UUID(later))

    assert await work(db) is None
    assert (await work(db))["id"] == uuid.UUID(later)


async def test_paused_queue_gives_nothing(db: Any, store: Store) -> None:
    await enqueue(db)
    await store.pause_queue(DIALECT)
    assert await work(db) is None

    await store.resume_queue(DIALECT)
    assert await work(db) is not None


# Beside Windrow


async def test_job_of_a_group_is_counted_to_it(db: Any, store: Store) -> None:
    group = await make_group(store)
    await add(store, "crawl", queue=DIALECT, group=group.id)
    await store.close_group(group.id)
    row = await work(db)
    await db.execute(COMPLETE, row["id"])

    ended = await get_group(store, group.id)
    assert (ended.pending, ended.state) == (0, "completed")


async def test_names_that_are_no_uuids_do_not_break_the_view(db: Any, store: Store) -> None:
    job_id = await add(store, "crawl", queue=DIALECT, tenant="Ada & Co.")
    await run_of(store)

    row = await look(db, uuid.UUID(job_id))
    assert row["user_id"].version == row["worker_id"].version == 5


@pytest.mark.parametrize("seed", range(6))
async def test_any_mixture_of_writes_keeps_the_counts_true(
    db: Any, store: Store, dialect_url: str, seed: int
) -> None:
    """Statements of the dialect and verbs of Windrow in a random order; what each refuses, it
    refuses."""
    choose = random.Random(seed)
    group = await make_group(store, is_open=True)
    rows: list[uuid.UUID] = []
    held: list[Job] = []

    def some() -> uuid.UUID:
        return choose.choice(rows) if rows else uuid.uuid4()

    async def write(change: str) -> None:
        await db.execute(f"UPDATE crawl_jobs SET {change} WHERE id = $1", some())

    async def put() -> None:
        rows.append(await enqueue(db, max_retries=choose.randrange(3)))

    async def put_here() -> None:
        given = await insert(
            store,
            *("crawl", {"n": 1}),
            queue=DIALECT,
            delay=choose.choice([0, 60]),
            group=choose.choice([None, group.id]),
        )
        rows.append(uuid.UUID(given.id))

    async def follow() -> None:
        given = await insert(store, "crawl", queue=DIALECT, unique="key", on_conflict="follow")
        rows.append(uuid.UUID(given.id))

    async def claim_here() -> None:
        held.extend(await claim(store, 2, DIALECT))

    async def finish_here() -> None:
        if held:
            job = held.pop(choose.randrange(len(held)))
            ends = [completion(job), failure(job), attempt(job), snooze(job)]
            await store.finish_jobs([choose.choice(ends)])

    steps: list[Callable[[], Awaitable[Any]]] = [
        *(put, put, put_here, put_here, follow, claim_here, finish_here, finish_here),
        *[lambda: work(db, uuid.uuid4())] * 3,
        *[lambda s=status: write(f"status = '{s}'") for status in LABELS],
        lambda: write("status = 'pending', retry_count = retry_count + 1"),
        lambda: write("progress_percentage = progress_percentage + 7"),
        lambda: db.execute(HEARTBEAT, some()),
        lambda: db.execute(AGE, some()),
        lambda: db.execute(LOSE, some()),
        lambda: db.execute(RECOVER),
        lambda: db.execute(GIVE_UP),
        lambda: db.execute("DELETE FROM crawl_jobs WHERE id = $1", some()),
        lambda: store.rescue_jobs(),
        lambda: store.stage_jobs(),
        lambda: store.pause_jobs([str(some())]),
        lambda: store.resume_jobs([str(some())]),
        lambda: store.cancel_jobs([str(some())], "no"),
        lambda: store.retry_jobs([str(some())]),
        lambda: store.delete_jobs([str(some())]),
    ]
    for number in range(150):
        await choose.choice(steps)()
        if number % 10 == 0:
            assert await tallied(store) == await counted(store)
            await require_true_leases(dialect_url)
            found = await get_group(store, group.id)
            live = ("scheduled", "held", "paused", "ready", "active", "waiting")
            assert found.pending == sum(n for state, n in found.counts.items() if state in live)


@pytest.mark.long
async def test_each_job_is_run_once_by_whoever_takes_it(
    db: Any, store: Store, connect: Connect, dialect_url: str
) -> None:
    """8 connections with the printed statements and a Windrow worker, 500 jobs."""
    await db.execute(
        """INSERT INTO crawl_jobs (payload, priority)
           SELECT jsonb_build_object('n', n), n % 5 FROM generate_series(1, $1) AS n""",
        JOBS,
    )
    runs: Counter[str] = Counter()

    async def foreign() -> None:
        connection = await connect()
        me = uuid.uuid4()
        while row := await connection.fetchrow(CLAIM, me):
            runs[str(row["id"])] += 1
            await connection.execute(COMPLETE, row["id"])

    worker = asyncio.create_task(
        run_worker(dialect_url, DIALECT, ["crawl"], lambda job: runs.update([job.id]))
    )
    await asyncio.gather(*(foreign() for _ in range(CONNECTIONS)), worker)

    assert 0 < worker.result() < JOBS
    assert len(runs) == JOBS
    assert set(runs.values()) == {1}
    assert await counts(store, DIALECT) == {JobState.COMPLETED: JOBS}


# Plans


async def plan(db: Any, sql: str, *values: Any) -> str:
    rows = await db.fetch(f"EXPLAIN (COSTS OFF) {sql}", *values)
    return "\n".join(row[0] for row in rows)


@pytest.fixture
async def filled(db: Any) -> Any:
    """Enough of everything that a bad plan would be a scan."""
    await db.execute("""
        INSERT INTO windrow.job_live (id, queue, kind, state, priority, run_at, created_at,
                                      max_attempts, max_crashes)
        SELECT gen_random_uuid(), queue, 'crawl', 'ready', n % 7, now(), now(), 5, 5
          FROM generate_series(1, 3000) AS n, unnest(ARRAY['crawl_jobs', 'other']) AS queue;
        INSERT INTO windrow.job_finished (id, queue, kind, state, priority, run_at, created_at,
                                          max_attempts, max_crashes, finished_at, leaf)
        SELECT gen_random_uuid(), 'crawl_jobs', 'crawl', 'completed', 0, now(), now(), 5,
               5, now(), 3
          FROM generate_series(1, 3000);
        INSERT INTO windrow.job_payload (id, payload) SELECT id, '{}' FROM windrow.job;
        INSERT INTO windrow.tally (n, queue, state)
        VALUES (3000, 'crawl_jobs', 'ready'), (3000, 'other', 'ready'),
               (3000, 'crawl_jobs', 'completed');
        ANALYZE windrow.job_live;
        ANALYZE windrow.job_finished;
    """)
    return db


async def test_claim_walks_its_index_and_no_finished_leaf(filled: Any) -> None:
    """As idx_crawl_jobs_status_priority serves it."""
    inner = CLAIM[CLAIM.index("SELECT id") : CLAIM.rindex(")")]
    steps = await plan(filled, inner)

    assert "Index Scan using crawl_jobs_live on job_live job" in steps
    assert "Sort" not in steps
    assert "job_finished" not in steps


@pytest.mark.parametrize("statement", [STALE, RECOVER, GIVE_UP])
async def test_reaper_walks_the_running_ones(filled: Any, statement: str) -> None:
    """As idx_crawl_jobs_worker_heartbeat serves it."""
    steps = await plan(filled, statement)

    assert "crawl_jobs_live" in steps
    assert "Seq Scan on job_live" not in steps
    assert "job_finished" not in steps


async def test_dialect_is_removed_and_its_jobs_stay(
    db: Any, store: Store, dialect_database: Callable[[str], str]
) -> None:
    job_id = await enqueue(db)
    assert await store.remove_dialect(DIALECT)
    with pytest.raises(asyncpg.UndefinedTableError):
        await work(db)
    assert [job.id for job in await run_of(store)] == [str(job_id)]
    assert await store.install_dialect(DIALECT)
    assert (await look(db, job_id))["status"] == "processing"
