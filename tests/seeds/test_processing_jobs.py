"""Seed 004, J1: a jobs table for polling workers. Its operations, written anew in the form in which
the document prints them, do what it says, beside Windrow's own workers and without any."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections import Counter
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.builders import add, claim, complete, get, state
from tests.seeds.conftest import Connect, until_waiting
from tests.seeds.documents import Reading, columns_of
from tests.seeds.workers import run_worker
from windrow import Queue
from windrow.ids import owner_id
from windrow.pipelines.calls.stages import begin_job
from windrow.queue.job import JobState
from windrow.queue.store import Store

DIALECT = "processing_jobs"
SEED = "004"
QUEUE = "processing_jobs"
ORG = "7b8c1f3e-2b43-4a5f-9a55-0d9f1f6b1c11"
CALL = "c0ffee00-2b43-4a5f-9a55-0d9f1f6b1c12"

ENQUEUE = """
    insert into processing_jobs (org_id, call_id, stage, status, payload)
    values ($1, $2, $3, 'queued', $4)
"""
CLAIM = """
    with next_job as (
      select id from processing_jobs
      where status = 'queued' and available_at <= now()
      order by available_at asc
      for update skip locked
      limit 1
    )
    update processing_jobs
    set status = 'processing', locked_at = now(), locked_by = $1, updated_at = now()
    where id in (select id from next_job)
    returning *
"""
COMPLETE = "update processing_jobs set status = 'done', updated_at = now() where id = $1"
FAIL = """
    update processing_jobs
    set status = case when attempts + 1 >= max_attempts then 'failed' else 'queued' end,
        attempts = attempts + 1,
        last_error = $2,
        available_at = case
          when attempts + 1 >= max_attempts then available_at else now() + ($3::interval) end,
        updated_at = now()
    where id = $1
"""

LOOP = """
import sys, time, psycopg
url, claim = sys.argv[1:]
with psycopg.connect(url, autocommit=True) as connection:
    assert connection.execute(claim).fetchone()
    print("claimed", flush=True)
    time.sleep(600)
"""


async def enqueue(db: Any, stage: str = "analyze", payload: Any = None) -> str:
    await db.execute(ENQUEUE, ORG, CALL, stage, json.dumps(payload or {}))
    found = await db.fetchval("select id from processing_jobs order by created_at desc limit 1")
    return str(found)


async def take(db: Any, worker: str = "w1") -> Any:
    return await db.fetchrow(CLAIM, worker)


async def shown(db: Any, job_id: str) -> Any:
    return await db.fetchrow("select * from processing_jobs where id = $1", job_id)


async def let_lease_run_out(db: Any, job_id: str) -> None:
    await db.execute(
        "update processing_jobs set locked_at = now() - interval '1 hour' where id = $1", job_id
    )


async def test_j1_columns_types_and_defaults_are_those_of_the_document(db: Any) -> None:
    found = await db.fetch(
        "select column_name, data_type, column_default from information_schema.columns "
        "where table_name = 'processing_jobs' order by ordinal_position"
    )
    assert [tuple(row) for row in found] == [
        ("id", "uuid", "gen_random_uuid()"),
        ("org_id", "uuid", None),
        ("call_id", "uuid", None),
        ("stage", "text", None),
        ("status", "text", None),
        ("payload", "jsonb", "'{}'::jsonb"),
        ("attempts", "integer", "0"),
        ("max_attempts", "integer", "5"),
        ("available_at", "timestamp with time zone", "now()"),
        ("locked_at", "timestamp with time zone", None),
        ("locked_by", "text", None),
        ("last_error", "text", None),
        ("created_at", "timestamp with time zone", "now()"),
        ("updated_at", "timestamp with time zone", "now()"),
    ]


async def test_j1_the_documents_own_statements_run(db: Any, store: Store, reading: Reading) -> None:
    await reading.make_original(db)
    assert await columns_of(db, "printed", QUEUE) == await columns_of(db, "public", QUEUE)

    await reading.run(db, reading.find("insert into"), ORG, CALL, "analyze", '{"path": "a.ogg"}')
    [row] = await reading.run(db, reading.find("skip locked"), "w1")
    assert (row["status"], row["locked_by"]) == ("processing", "w1")
    job_id = str(row["id"])
    await reading.run(db, reading.find("attempts + 1"), job_id, "boom", seconds(0))
    assert (await get(store, job_id)).attempts == 1
    assert (await take(db))["attempts"] == 1
    await reading.run(db, reading.find("'done'"), job_id)

    assert await state(store, job_id) is JobState.COMPLETED


async def test_j1_enqueued_row_is_a_job_of_windrow(db: Any, store: Store) -> None:
    job_id = await enqueue(db, "transcribe_start", {"path": "a.mp4"})

    row = await shown(db, job_id)
    assert (str(row["org_id"]), str(row["call_id"])) == (ORG, CALL)
    assert (row["stage"], row["status"], row["attempts"], row["max_attempts"]) == (
        *("transcribe_start", "queued"),
        *(0, 5),
    )
    assert json.loads(row["payload"]) == {"path": "a.mp4"}
    assert row["locked_at"] is row["locked_by"] is row["last_error"] is None
    job = await get(store, job_id)
    assert (job.queue, job.kind, job.state) == (QUEUE, "transcribe_start", JobState.READY)
    assert (job.tenant, job.payload) == (ORG, {"path": "a.mp4"})


async def test_j1_claim_takes_the_longest_due_and_returns_all_of_it(db: Any, store: Store) -> None:
    later = await enqueue(db)
    sooner = await enqueue(db)
    await db.execute(
        "update processing_jobs set available_at = now() - interval '1 day' where id = $1", sooner
    )

    row = await take(db, "w1")

    assert str(row["id"]) == sooner
    assert (row["status"], row["locked_by"]) == ("processing", "w1")
    assert row["locked_at"] is not None
    assert row["available_at"] < row["created_at"]
    job = await get(store, sooner)
    assert (job.state, job.worker) == (JobState.ACTIVE, "processing_jobs:w1")
    assert [str((await take(db))["id"]), await take(db)] == [later, None]


async def test_j1_row_that_is_not_due_is_not_claimed_until_it_is(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await db.execute(
        "update processing_jobs set available_at = now() + interval '1 hour' where id = $1", job_id
    )
    assert await state(store, job_id) is JobState.SCHEDULED
    assert (await shown(db, job_id))["status"] == "queued"
    assert await take(db) is None

    # Time passes, and no worker of Windrow is there to make the job ready.
    await db.execute("update windrow.job_live set run_at = now() where id = $1", job_id)

    assert str((await take(db))["id"]) == job_id


async def test_j1_complete_ends_the_job(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await take(db)

    assert await db.execute(COMPLETE, job_id) == "UPDATE 1"

    assert (await shown(db, job_id))["status"] == "done"
    assert await state(store, job_id) is JobState.COMPLETED
    assert await take(db) is None


async def test_j1_fail_backs_off_and_then_fails_for_good(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    for attempt in range(1, 5):
        assert (await take(db))["attempts"] == attempt - 1
        await db.execute(FAIL, job_id, f"boom {attempt}\nand more", seconds(30))
        row = await shown(db, job_id)
        assert (row["status"], row["attempts"]) == ("queued", attempt)
        assert row["last_error"] == f"boom {attempt}"
        assert row["available_at"] > row["updated_at"]
        assert await take(db) is None
        await db.execute("update processing_jobs set available_at = now() where id = $1", job_id)
    before = await take(db)

    await db.execute(FAIL, job_id, "boom 5", seconds(30))

    row = await shown(db, job_id)
    assert (row["status"], row["attempts"], row["last_error"]) == ("failed", 5, "boom 5")
    assert row["available_at"] == before["available_at"]
    job = await get(store, job_id)
    assert (job.state, job.attempts, job.runs) == (JobState.FAILED, 5, 5)
    assert job.errors[0].message == "boom 1\nand more"


async def test_j1_worker_that_died_loses_its_job_without_any_windrow_worker(
    db: Any, store: Store
) -> None:
    job_id = await enqueue(db)
    await take(db, "dead")
    assert await take(db) is None

    await let_lease_run_out(db, job_id)

    assert (await shown(db, job_id))["status"] == "queued"
    row = await take(db, "w2")
    assert (str(row["id"]), row["locked_by"]) == (job_id, "w2")
    assert row["attempts"] == 1, "a run that died counts"
    job = await get(store, job_id)
    assert (job.attempts, job.crashes, job.runs) == (0, 1, 2)
    assert [error.reason for error in job.errors] == ["crash"]


async def test_j1_killed_process_is_survived_by_its_job(
    db: Any, dialect_url: str, store: Store
) -> None:
    """A hand-written loop, killed while it runs a job; nobody but the next claim notices."""
    job_id = await add(store, "analyze", queue=QUEUE, lease_seconds=1)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LOOP, dialect_url, CLAIM.replace("$1", "'doomed'")),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"claimed\n"
    process.kill()
    await process.wait()
    assert (await shown(db, job_id))["locked_by"] == "doomed"

    async with asyncio.timeout(20):
        while (row := await take(db, "w2")) is None:
            await asyncio.sleep(0.05)

    assert (str(row["id"]), row["locked_by"], row["attempts"]) == (job_id, "w2", 1)
    await db.execute(COMPLETE, job_id)


async def test_j1_job_that_kills_its_workers_ends(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    for _ in range(5):
        assert await take(db) is not None
        await let_lease_run_out(db, job_id)

    assert await take(db) is None
    assert (await shown(db, job_id))["status"] == "failed"
    await store.rescue_jobs()
    assert await state(store, job_id) is JobState.FAILED
    assert (await shown(db, job_id))["attempts"] == 5


async def test_j1_windrow_rescues_what_a_dead_worker_had(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await take(db, "dead")
    await let_lease_run_out(db, job_id)

    [change] = await store.rescue_jobs()

    assert (change.id, change.after) == (job_id, JobState.READY)
    [job] = await claim(store, 1, QUEUE)
    assert job.id == job_id
    row = await shown(db, job_id)
    assert (row["status"], row["locked_by"], row["attempts"]) == ("processing", "worker-1", 1)
    await complete(store, job)


async def test_row_of_a_dead_worker_that_is_made_due_keeps_its_crash(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await take(db, "dead")
    await let_lease_run_out(db, job_id)
    assert (await shown(db, job_id))["attempts"] == 1

    due = "update processing_jobs set available_at = now() where id = $1"
    assert await db.execute(due, job_id) == "UPDATE 1"

    row = await shown(db, job_id)
    assert (row["status"], row["attempts"], row["locked_by"]) == ("queued", 1, None)
    assert (await get(store, job_id)).crashes == 1
    assert (await take(db))["attempts"] == 1
    await let_lease_run_out(db, job_id)
    await db.execute(FAIL, job_id, "late", seconds(0))
    row = await shown(db, job_id)
    assert (row["status"], row["attempts"], row["last_error"]) == ("queued", 3, "late")


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_end_by_hand_of_a_dead_workers_row_holds(
    db: Any, store: Store, connect: Connect, status: str
) -> None:
    stale, racing = await enqueue(db), await enqueue(db)
    await take(db, "dead")
    await take(db, "dead")
    for job_id in (stale, racing):
        await let_lease_run_out(db, job_id)
    end = "update processing_jobs set status = $2 where id = $1"
    assert await db.execute(end, stale, status) == "UPDATE 1"
    other = await connect()
    async with other.transaction():
        rescue = "select windrow_dialect.rescue_job($1)"
        assert await other.fetchval(rescue, racing) == "ready"
        ending = asyncio.create_task(db.execute(end, racing, status))
        await until_waiting(other)
    assert await ending == "UPDATE 1"

    assert await take(db) is None
    assert {(await shown(db, job_id))["status"] for job_id in (stale, racing)} == {status}
    assert await store.rescue_jobs() == []


@pytest.mark.parametrize("column", ["created_at", "updated_at", "available_at", "payload", "stage"])
async def test_null_where_the_document_allows_none_is_refused(db: Any, column: str) -> None:
    row = {
        "org_id": f"'{ORG}'",
        "call_id": f"'{CALL}'",
        "stage": "'analyze'",
        "status": "'queued'",
    } | {column: "null"}
    sql = f"insert into processing_jobs ({', '.join(row)}) values ({', '.join(row.values())})"
    with pytest.raises(asyncpg.NotNullViolationError, match=column):
        await db.execute(sql)


@pytest.mark.parametrize("is_running", [False, True])
async def test_null_cannot_be_written_where_the_document_allows_none(
    db: Any, store: Store, is_running: bool
) -> None:
    job_id = await enqueue(db)
    if is_running:
        await take(db)
    before = await shown(db, job_id)
    for column in ("org_id", "call_id", "stage", "status", "payload", "attempts", "created_at"):
        with pytest.raises(asyncpg.NotNullViolationError, match=column):
            await db.execute(f"update processing_jobs set {column} = null where id = $1", job_id)
    assert await shown(db, job_id) == before
    await db.execute("update processing_jobs set status = 'done' where id = $1", job_id)


async def test_row_of_windrow_without_an_org_can_be_written(db: Any, store: Store) -> None:
    job_id = await add(store, "analyze", queue=QUEUE)
    assert (await take(db, "w1"))["org_id"] is None
    assert await db.execute(COMPLETE, job_id) == "UPDATE 1"


async def test_indexes_that_a_program_makes_at_its_start_are_harmless(db: Any) -> None:
    script = """
        create table if not exists processing_jobs (id uuid primary key, status text);
        create index if not exists processing_jobs_ready_idx
          on processing_jobs (status, available_at);
        create index if not exists processing_jobs_call_idx on processing_jobs (call_id);
        CREATE INDEX CONCURRENTLY IF NOT EXISTS another_idx ON "processing_jobs" (org_id);
    """
    relations = "select count(*) from pg_class"
    before = await db.fetchval(relations)
    job_id = await enqueue(db)
    for statement in (script.rsplit("CREATE", 1)[0], "CREATE" + script.rsplit("CREATE", 1)[1]):
        await db.execute(statement)
    assert await db.fetchval(relations) == before
    assert str((await take(db))["id"]) == job_id

    with pytest.raises(asyncpg.UndefinedColumnError):
        await db.execute("create index if not exists no_idx on processing_jobs (no_column)")
    with pytest.raises(asyncpg.WrongObjectTypeError):
        await db.execute("create unique index one_idx on processing_jobs (call_id)")
    assert (await shown(db, job_id))["status"] == "processing"


async def test_table_of_the_callers_own_is_left_alone(db: Any) -> None:
    await db.execute("create temporary table processing_jobs (call_id uuid)")
    await db.execute("create index if not exists own_idx on processing_jobs (call_id)")
    assert await db.fetchval("select to_regclass('pg_temp.own_idx') is not null")
    await db.execute("drop table pg_temp.processing_jobs")


async def test_j1_heartbeat_keeps_a_job(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await take(db, "w1")
    before = (await get(store, job_id)).lease_expires_at
    assert before is not None

    beat = "update processing_jobs set locked_at = now() where id = $1 and locked_by = $2"
    assert await db.execute(beat, job_id, "w1") == "UPDATE 1"
    assert await db.execute(beat, job_id, "w2") == "UPDATE 0"

    after = (await get(store, job_id)).lease_expires_at
    assert after is not None
    assert after > before


async def test_j1_stale_lock_is_refused_even_when_it_was_true_as_the_statement_began(
    db: Any, connect: Connect, store: Store
) -> None:
    """The row is taken over while the stale worker's statement waits for it."""
    job_id = await enqueue(db)
    await take(db, "stale")
    await let_lease_run_out(db, job_id)
    other = await connect()
    transaction = other.transaction()
    await transaction.start()
    assert (await take(other, "new"))["locked_by"] == "new"

    late = asyncio.ensure_future(
        db.execute(
            "update processing_jobs set status = 'done' where id = $1 and locked_by = 'stale'",
            job_id,
        )
    )
    await until_waiting(other)
    await transaction.commit()

    assert await late == "UPDATE 0"
    row = await shown(db, job_id)
    assert (row["status"], row["locked_by"]) == ("processing", "new")


async def test_j1_end_of_a_run_is_taken_while_its_own_heartbeat_commits(
    db: Any, connect: Connect, store: Store
) -> None:
    job_id = await enqueue(db)
    await take(db, "w1")
    other = await connect()
    transaction = other.transaction()
    await transaction.start()
    await other.execute(
        "update processing_jobs set locked_at = now() where id = $1 and locked_by = 'w1'", job_id
    )

    ending = asyncio.ensure_future(db.execute(COMPLETE, job_id))
    await until_waiting(other)
    await transaction.commit()

    assert await ending == "UPDATE 1"
    assert await state(store, job_id) is JobState.COMPLETED


async def test_j1_late_failure_does_not_wake_a_job_that_is_done(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await take(db)
    await db.execute(COMPLETE, job_id)

    assert await db.execute(FAIL, job_id, "late", seconds(0)) == "UPDATE 0"
    assert await db.execute(COMPLETE, job_id) == "UPDATE 1", "completing twice changes nothing"

    assert await state(store, job_id) is JobState.COMPLETED


async def test_j1_failed_row_is_queued_again_by_hand(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await db.execute("update processing_jobs set max_attempts = 1 where id = $1", job_id)
    await take(db)
    await db.execute(FAIL, job_id, "boom", seconds(0))
    assert await state(store, job_id) is JobState.FAILED

    again = "update processing_jobs set status = 'queued', attempts = 0 where id = $1"
    assert await db.execute(again, job_id) == "UPDATE 1"

    row = await take(db)
    assert (str(row["id"]), row["attempts"]) == (job_id, 0)


async def test_j1_job_of_a_windrow_worker_is_locked_for_others(db: Any, store: Store) -> None:
    job_id = await add(store, "analyze", {"call_id": "call 7"}, queue=QUEUE, tenant="acme")
    [job] = await claim(store, 1, QUEUE)

    row = await shown(db, job_id)
    assert (row["status"], row["locked_by"]) == ("processing", "worker-1")
    assert str(row["org_id"]) == owner_id("acme")
    assert str(row["call_id"]) == owner_id("call 7")
    assert await take(db) is None
    assert await db.execute(COMPLETE, job_id) == "UPDATE 0"
    assert await db.execute(FAIL, job_id, "stale", seconds(0)) == "UPDATE 0"
    await complete(store, job)
    assert (await shown(db, job_id))["status"] == "done"


async def test_j1_pausing_the_queue_stops_claims(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await store.pause_queue(QUEUE)
    assert await take(db) is None
    await store.resume_queue(QUEUE)
    assert str((await take(db))["id"]) == job_id


async def test_j1_enqueue_belongs_to_the_callers_transaction(db: Any, store: Store) -> None:
    transaction = db.transaction()
    await transaction.start()
    await enqueue(db)
    await transaction.rollback()
    assert await db.fetchval("select count(*) from processing_jobs") == 0


async def test_j1_explicit_columns_are_kept(db: Any, store: Store) -> None:
    """A table that is moved here row by row keeps its ids, times and states."""
    rows: list[tuple[str, str, str | None]] = [
        (str(uuid.uuid4()), status, worker)
        for status, worker in [("queued", None), ("processing", "w9"), ("done", None)]
    ]
    for job_id, status, worker in rows:
        await db.execute(
            "insert into processing_jobs (id, org_id, call_id, stage, status, attempts, "
            "max_attempts, created_at, available_at, locked_at, locked_by, last_error) values "
            "($1, $2, $3, 'analyze', $4, 2, 7, '2026-01-01Z', '2026-01-02Z', now(), $5, 'old')",
            *(job_id, ORG, CALL, status, worker),
        )
    for job_id, status, worker in rows:
        row = await shown(db, job_id)
        assert (row["status"], row["locked_by"], row["attempts"]) == (status, worker, 2)
        assert (row["max_attempts"], row["created_at"].day, row["available_at"].day) == (7, 1, 2)


@pytest.mark.parametrize(
    ("column", "value", "error"),
    [
        ("org_id", None, asyncpg.NotNullViolationError),
        ("call_id", None, asyncpg.NotNullViolationError),
        ("stage", None, asyncpg.NotNullViolationError),
        ("status", None, asyncpg.NotNullViolationError),
        ("status", "unheard-of", asyncpg.CheckViolationError),
    ],
)
async def test_j1_rows_the_table_would_refuse_are_refused(
    db: Any, column: str, value: Any, error: type[Exception]
) -> None:
    given = {"org_id": ORG, "call_id": CALL, "stage": "analyze", "status": "queued"}
    given[column] = value
    with pytest.raises(error):
        await db.execute(
            "insert into processing_jobs (org_id, call_id, stage, status) values ($1, $2, $3, $4)",
            *given.values(),
        )


async def test_j1_deleted_row_is_gone(db: Any, store: Store) -> None:
    job_ids = [await enqueue(db) for _ in range(3)]
    await take(db)
    done = await take(db)
    await db.execute(COMPLETE, done["id"])

    assert await db.execute("delete from processing_jobs") == "DELETE 3"

    assert await store.get_jobs(job_ids) == {}


async def test_j1_each_of_500_jobs_runs_once_beside_a_windrow_worker(
    connect: Connect, store: Store, dialect_url: str
) -> None:
    db = await connect()
    await db.executemany(ENQUEUE, [(ORG, CALL, "analyze", "{}")] * 500)
    ran: Counter[str] = Counter()

    async def foreign(name: str) -> None:
        connection = await connect()
        while (row := await take(connection, name)) is not None:
            ran[str(row["id"])] += 1
            assert await connection.execute(COMPLETE, row["id"]) == "UPDATE 1"

    worker = asyncio.create_task(
        run_worker(dialect_url, QUEUE, ["analyze"], lambda job: ran.update([job.id]))
    )
    await asyncio.gather(*(foreign(f"w{n}") for n in range(8)), worker)

    assert 0 < worker.result() < 500
    assert len(ran) == 500
    assert set(ran.values()) == {1}
    assert await db.fetchval("select count(*) from processing_jobs where status = 'done'") == 500


@pytest.mark.parametrize("rows", [0, 500])
async def test_j1_claim_reads_live_rows_in_their_order_and_no_finished_ones(
    db: Any, rows: int
) -> None:
    """Whether the plan was made with rows or, as that of a worker that came first, without."""
    await db.executemany(ENQUEUE, [(ORG, CALL, "analyze", "{}")] * rows)
    if rows:
        await db.execute("analyze windrow.job_live")

    found = await db.fetch(f"explain (costs off) {CLAIM.replace('$1', repr('w1'))}")

    plan = [row[0].strip() for row in found]
    looking = plan[plan.index("CTE next_job") + 1 : plan.index("->  Nested Loop")]
    assert looking[0] == "->  Limit"
    assert looking[1] == "->  LockRows"
    assert looking[2].startswith("->  Index Scan using processing_jobs_ready_idx on job_live")
    assert looking[3] == "Index Cond: (run_at <= now())"
    assert len(looking) == 5, looking
    assert not [line for line in plan if "Seq Scan" in line]


def seconds(seconds: float) -> Any:
    return timedelta(seconds=seconds)


async def test_j4_windrows_own_calls_are_rows_with_their_stage(db: Any, store: Store) -> None:
    queue = Queue(store)
    await queue.enqueue_many([begin_job(queue, CALL, ORG)])
    seen = "select stage, org_id::text, call_id::text, status, attempts from processing_jobs"
    assert [tuple(row) for row in await db.fetch(seen)] == [
        ("extract_audio", ORG, CALL, "queued", 0)
    ]
    [row] = await db.fetch(CLAIM, "elsewhere")
    await db.execute(FAIL, row["id"], "no audio yet", timedelta(0))
    assert (await get(store, str(row["id"]))).kind == "call.extract_audio"
    assert [tuple(row) for row in await db.fetch(seen)] == [
        ("extract_audio", ORG, CALL, "queued", 1)
    ]
    assert len(await db.fetch(f"{seen} where stage = 'extract_audio' and call_id = $1", CALL)) == 1
