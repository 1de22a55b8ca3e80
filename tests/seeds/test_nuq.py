"""Seed N: the queue of NuQ, by the statements of its own clients (N1, N2, N5 to N9, N11)."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.builders import claim, claim_one, complete, completion, fail, get, make_group, row
from tests.conformance.test_events import all_events
from tests.seeds import nuq
from tests.seeds.conftest import Connect
from windrow.ids import owner_id
from windrow.queue.job import JobState
from windrow.queue.records import LimitRow
from windrow.queue.store import Store

DIALECT = "nuq"
QUEUE = "nuq.queue_scrape"


# Column, type, default, as the original's tables have them.
JOB_COLUMNS = [
    ("id", "uuid", "gen_random_uuid()"),
    ("status", "nuq.job_status", "'queued'::nuq.job_status"),
    ("data", "jsonb", None),
    ("created_at", "timestamp with time zone", "now()"),
    ("priority", "integer", "0"),
    ("lock", "uuid", None),
    ("locked_at", "timestamp with time zone", None),
    ("stalls", "integer", None),
    ("finished_at", "timestamp with time zone", None),
    ("listen_channel_id", "text", None),
    ("returnvalue", "jsonb", None),
    ("failedreason", "text", None),
    ("owner_id", "uuid", None),
    ("group_id", "uuid", None),
]
BACKLOG_COLUMNS = [
    ("id", "uuid", "gen_random_uuid()"),
    ("data", "jsonb", None),
    ("created_at", "timestamp with time zone", "now()"),
    ("priority", "integer", "0"),
    ("listen_channel_id", "text", None),
    ("owner_id", "uuid", None),
    ("group_id", "uuid", None),
    ("times_out_at", "timestamp with time zone", None),
]
GROUP_COLUMNS = [
    ("id", "uuid", "gen_random_uuid()"),
    ("status", "nuq.group_status", "'active'::nuq.group_status"),
    ("created_at", "timestamp with time zone", "now()"),
    ("owner_id", "uuid", None),
    ("ttl", "bigint", "86400000"),
    ("expires_at", "timestamp with time zone", None),
]


@pytest.mark.parametrize(
    ("relation", "columns"),
    [
        ("queue_scrape", JOB_COLUMNS),
        ("queue_crawl_finished", JOB_COLUMNS),
        ("queue_scrape_backlog", BACKLOG_COLUMNS),
        ("group_crawl", GROUP_COLUMNS),
    ],
)
async def test_the_relations_have_the_columns_of_the_tables_n11(
    db: Any, relation: str, columns: list[tuple[str, str, str | None]]
) -> None:
    found = await db.fetch(
        """
        SELECT attname, format_type(atttypid, atttypmod), pg_get_expr(adbin, adrelid)
          FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
         WHERE attrelid = $1::text::regclass AND attnum > 0
         ORDER BY attnum
        """,
        f"nuq.{relation}",
    )
    defaults = {("ttl", "'86400000'::bigint"): "86400000"}
    assert [(n, t, defaults.get((n, d), d)) for n, t, d in found] == columns


async def test_the_types_are_as_printed_n11(db: Any) -> None:
    labels = "SELECT enum_range(NULL::nuq.{})::text"
    assert await db.fetchval(labels.format("job_status")) == "{queued,active,completed,failed}"
    assert await db.fetchval(labels.format("group_status")) == "{active,completed,cancelled}"


async def test_a_job_goes_from_queued_over_active_to_completed_n1(db: Any) -> None:
    added = await db.fetchrow(nuq.ADD, None, json.dumps(nuq.PAGE), 10, "pod-1", nuq.OWNER, None)
    assert (added["status"], added["priority"]) == ("queued", 10)
    job = await nuq.take(db)
    assert (job["id"], job["status"], job["priority"]) == (added["id"], "active", 10)
    assert json.loads(job["data"]) == nuq.PAGE
    seen = await nuq.see(db, job["id"])
    assert (seen["lock"], seen["locked_at"]) == (job["lock"], job["locked_at"])
    answer = await db.fetch(nuq.FINISH, job["id"], job["lock"], '{"markdown": "# A"}')
    assert [tuple(row) for row in answer] == [(job["id"], "pod-1")]
    seen = await nuq.see(db, job["id"])
    assert (seen["status"], seen["lock"], seen["locked_at"]) == ("completed", None, None)
    assert json.loads(seen["returnvalue"]) == {"markdown": "# A"}
    assert seen["finished_at"] >= seen["created_at"] == added["created_at"]
    assert await nuq.take(db) is None


async def test_a_job_that_fails_says_why_in_full_n1(db: Any, store: Store) -> None:
    job_id = await nuq.add(db)
    reason = "SCRAPE_TIMEOUT: it took too long\n" + "x" * 1000
    assert await nuq.fail(db, await nuq.take(db), reason)
    seen = await nuq.see(db, job_id)
    assert (seen["status"], seen["failedreason"]) == ("failed", reason)
    assert seen["finished_at"] is not None
    job = await get(store, str(job_id))
    assert (job.state, job.error) == (JobState.FAILED, reason.splitlines()[0])


async def test_a_lost_lock_changes_nothing_n1(db: Any) -> None:
    await nuq.add(db)
    job = await nuq.take(db)
    stale = {"id": job["id"], "lock": uuid4()}
    before = await nuq.see(db, job["id"])
    assert not await nuq.finish(db, stale, {"stale": True})
    assert not await nuq.fail(db, stale, "stale")
    assert not await nuq.renew(db, stale)
    assert await nuq.see(db, job["id"]) == before
    assert await nuq.finish(db, job)
    assert not await nuq.finish(db, job)


async def test_a_lock_that_was_lost_after_the_snapshot_changes_nothing_n1(
    db: Any, connect: Connect
) -> None:
    """The statement has seen its lock, then waits for whoever takes it away."""
    job_id = await nuq.add(db)
    job = await nuq.take(db)
    await nuq.age(db, job_id, "locked_at", "2 minutes")
    reaper = await connect()
    async with reaper.transaction():
        assert await reaper.execute(nuq.REQUEUE_STALLED) == "UPDATE 1"
        late = asyncio.create_task(nuq.finish(db, job, {"stale": True}))
        await _until_waiting(reaper)
    assert not await late
    seen = await nuq.see(reaper, job_id)
    assert (seen["status"], seen["returnvalue"], seen["stalls"]) == ("queued", None, 1)


async def test_failure_by_hand_that_waits_for_a_rescue_holds_n1(
    db: Any, store: Store, connect: Connect
) -> None:
    """Of many rows in one statement. A worker's own failure clears its lock: it comes too late."""
    late, *_ = ids = [await nuq.add(db), await nuq.add(db), await nuq.add(db)]
    for job_id in ids:
        await nuq.take(db)
        await nuq.age(db, job_id, "locked_at", "2 minutes")
    other, worker = await connect(), await connect()
    by_hand = (
        "UPDATE nuq.queue_scrape SET status = 'failed', failedreason = 'no', finished_at = now() "
        "WHERE id <> $1"
    )
    by_worker = (
        "UPDATE nuq.queue_scrape SET status = 'failed', lock = NULL, locked_at = NULL WHERE id = $1"
    )
    async with other.transaction():
        await other.execute("SELECT windrow_dialect.rescue_job(id) FROM windrow.job_live")
        ending = asyncio.create_task(db.execute(by_hand, late))
        await _until_waiting(other)
        failing = asyncio.create_task(worker.execute(by_worker, late))
        await asyncio.sleep(0.2)
    assert (await ending, await failing) == ("UPDATE 2", "UPDATE 0")

    rows = [await nuq.see(db, job_id) for job_id in ids]
    assert [row["status"] for row in rows] == ["queued", "failed", "failed"]
    assert [row["failedreason"] for row in rows] == [None, "no", "no"]
    assert [row["stalls"] for row in rows] == [1, 1, 1]
    assert await store.rescue_jobs() == []


async def test_a_renewal_on_the_way_does_not_refuse_the_end_n1(db: Any, connect: Connect) -> None:
    """The holder's own timer renews the lock just as the run ends: the lock is not lost by that."""
    await nuq.add(db)
    job = await nuq.take(db)
    timer = await connect()
    async with timer.transaction():
        assert await nuq.renew(timer, job)
        end = asyncio.create_task(nuq.finish(db, job, {"ok": True}))
        await _until_waiting(timer)
    assert await end


async def test_a_renewed_lock_is_not_reaped_on_the_way_n2(db: Any, connect: Connect) -> None:
    await nuq.add(db)
    job = await nuq.take(db)
    await nuq.age(db, job["id"], "locked_at", "2 minutes")
    timer = await connect()
    async with timer.transaction():
        assert await nuq.renew(timer, job)
        assert await db.execute(nuq.REQUEUE_STALLED) == "UPDATE 0"  # it waits for nobody
    assert await db.execute(nuq.REQUEUE_STALLED) == "UPDATE 0"
    assert await nuq.finish(db, job)


async def _until_waiting(db: Any) -> None:
    """Until somebody waits for a lock that this transaction holds."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    )
    async with asyncio.timeout(20):
        while not await db.fetchval(query):
            await asyncio.sleep(0.01)


async def test_a_renewal_extends_the_lease_n2(db: Any, store: Store) -> None:
    await nuq.add(db)
    job = await nuq.take(db)
    await nuq.age(db, job["id"], "locked_at", "50 seconds")
    held = await get(store, str(job["id"]))
    assert await nuq.renew(db, job)
    renewed = await get(store, str(job["id"]))
    assert held.lease_expires_at is not None
    assert renewed.lease_expires_at is not None
    assert renewed.lease_expires_at - held.lease_expires_at >= timedelta(seconds=50)
    seen = await nuq.see(db, job["id"])
    assert renewed.lease_expires_at - seen["locked_at"] == timedelta(seconds=60)


async def test_a_lock_is_a_lease_that_windrow_rescues_n2(db: Any, store: Store) -> None:
    await nuq.add(db)
    job = await nuq.take(db)
    held = await get(store, str(job["id"]))
    assert (held.state, held.lease_token) == (JobState.ACTIVE, str(job["lock"]))
    assert await store.rescue_jobs() == []
    await nuq.age(db, job["id"], "locked_at", "61 seconds")
    [change] = await store.rescue_jobs()
    assert change.after is JobState.READY
    assert not await nuq.renew(db, job)
    assert not await nuq.finish(db, job)
    again = await nuq.take(db)
    assert (again["id"], again["stalls"]) == (job["id"], 1)


async def test_jobs_of_either_side_are_never_taken_by_the_other_meanwhile_n1(
    db: Any, store: Store
) -> None:
    first = await nuq.add(db, priority=1)
    second = await nuq.add(db, priority=2)
    ours = await claim_one(store, QUEUE, seconds=300)
    assert ours.id == str(first)
    seen = await nuq.see(db, first)
    assert (seen["status"], str(seen["lock"])) == ("active", ours.lease_token)
    # Its lease is longer than a minute: it is not to be reaped before it is over.
    assert await db.execute(nuq.REQUEUE_STALLED) == "UPDATE 0"
    job = await nuq.take(db)
    assert job["id"] == second
    assert await nuq.take(db) is None
    assert await claim(store, 1, QUEUE) == []
    await complete(store, ours, {"by": "windrow"})
    seen = await nuq.see(db, first)
    assert (seen["status"], json.loads(seen["returnvalue"])) == ("completed", {"by": "windrow"})
    assert await nuq.finish(db, job, {"by": "nuq"})
    theirs = await get(store, str(second))
    assert (theirs.state, theirs.result) == (JobState.COMPLETED, {"by": "nuq"})


async def test_lower_priorities_come_first_and_are_shown_as_written_n11(
    db: Any, store: Store
) -> None:
    ids = {p: await nuq.add(db, priority=p) for p in (20, -3, 10, 0, 21)}
    shown = await db.fetch("SELECT id, priority FROM nuq.queue_scrape")
    assert {row["priority"]: row["id"] for row in shown} == ids
    assert (await nuq.take(db))["id"] == ids[-3]
    claimed = await claim(store, 9, QUEUE)
    assert [job.id for job in claimed] == [str(ids[p]) for p in (0, 10, 20, 21)]
    assert [job.priority for job in claimed] == [0, -10, -20, -21]


async def test_older_jobs_come_first_among_equals_n11(db: Any) -> None:
    younger, older = await nuq.add(db), await nuq.add(db)
    await nuq.age(db, older, "created_at", "1 hour")
    assert [(await nuq.take(db))["id"] for _ in range(2)] == [older, younger]


async def test_owners_are_uuids_whatever_they_were_called_n9(db: Any, store: Store) -> None:
    await store.insert_jobs(
        [row(queue=QUEUE, tenant="bypass"), row(queue=QUEUE, tenant=str(nuq.OWNER))]
    )
    await nuq.add(db, owner=nuq.OWNER)
    found = await db.fetch("SELECT DISTINCT owner_id FROM nuq.queue_scrape")
    assert {str(one["owner_id"]) for one in found} == {owner_id("bypass"), str(nuq.OWNER)}


async def test_who_listens_is_told_of_every_end_n8(db: Any, store: Store, connect: Connect) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    listener = await connect()
    await listener.add_listener(QUEUE, lambda *heard: told.put_nowait(heard[3]))
    first, second, third = [await nuq.add(db) for _ in range(3)]
    assert await nuq.finish(db, await nuq.take(db))
    assert await nuq.fail(db, await nuq.take(db), "no")
    await complete(store, await claim_one(store, QUEUE))
    async with asyncio.timeout(20):
        heard = [await told.get() for _ in range(3)]
    assert heard == [f"{first}|completed", f"{second}|failed", f"{third}|completed"]
    # The client's own telling, as printed.
    await db.execute("SELECT pg_notify('nuq.queue_scrape', $1)", f"{first}|completed")
    async with asyncio.timeout(20):
        assert await told.get() == f"{first}|completed"


async def test_many_jobs_are_fetched_by_their_ids_n8(db: Any) -> None:
    ids = [await nuq.add(db) for _ in range(3)]
    found = await db.fetch(
        "SELECT id, returnvalue->'markdown' FROM nuq.queue_scrape WHERE id = ANY($1::uuid[])",
        ids[:2],
    )
    assert {one["id"] for one in found} == set(ids[:2])


async def test_rows_are_written_as_on_a_table_n11(db: Any) -> None:
    job_id, at = uuid4(), datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    group = uuid4()  # as on a table, nothing asks whether there is such a group
    columns = (
        "id, status, data, created_at, finished_at, returnvalue, failedreason, group_id, stalls"
    )
    await db.execute(
        f"INSERT INTO nuq.queue_scrape ({columns}) "
        "VALUES ($1, 'failed', '{}', $2, $3, NULL, 'gone', $4, 3)",
        job_id,
        at,
        at + timedelta(minutes=1),
        group,
    )
    seen = await nuq.see(db, job_id)
    assert seen["status"] == "failed"
    assert (seen["created_at"], seen["finished_at"]) == (at, at + timedelta(minutes=1))
    assert (seen["failedreason"], seen["group_id"], seen["stalls"]) == ("gone", group, 3)
    with pytest.raises(asyncpg.UniqueViolationError):
        await nuq.add(db, job_id=job_id)
    answer = await db.execute(
        "UPDATE nuq.queue_scrape SET priority = 4, owner_id = $2, data = $3, group_id = NULL, "
        "listen_channel_id = 'pod-2', status = 'queued' WHERE id = $1",
        job_id,
        nuq.OWNER,
        '{"url": "b"}',
    )
    assert answer == "UPDATE 1"
    seen = await nuq.see(db, job_id)
    assert (seen["status"], seen["priority"], seen["owner_id"]) == ("queued", 4, nuq.OWNER)
    assert (seen["data"], seen["listen_channel_id"], seen["group_id"]) == (
        '{"url": "b"}',
        "pod-2",
        None,
    )
    assert await db.execute("DELETE FROM nuq.queue_scrape WHERE id = $1", job_id) == "DELETE 1"
    assert await nuq.see(db, job_id) is None


async def test_a_job_may_be_inserted_in_any_status_n11(db: Any, store: Store) -> None:
    insert = "INSERT INTO nuq.queue_scrape (status, lock, locked_at, finished_at, returnvalue) "
    for status in ("queued", "active", "completed", "failed"):
        is_active, is_done = status == "active", status in ("completed", "failed")
        at = datetime.now(UTC) - timedelta(days=3)
        found = await db.fetchrow(
            insert + "VALUES ($1, $2, $3, $4, $5) RETURNING status::text, lock, finished_at",
            status,
            uuid4() if is_active else None,
            datetime.now(UTC) if is_active else None,
            at if is_done else None,
            '{"a": 1}' if status == "completed" else None,
        )
        assert found["status"] == status
        assert (found["lock"] is not None) == is_active
        assert found["finished_at"] == (at if is_done else None)
    # Those that ended three days ago are gone when Windrow cleans up: it counts from the finish.
    assert await db.fetchval("SELECT count(*) FROM nuq.queue_scrape") == 4
    await store.prune_jobs()
    left = await db.fetch("SELECT status::text FROM nuq.queue_scrape")
    assert {one["status"] for one in left} == {"queued", "active"}


async def test_a_job_that_runs_can_be_removed_n11(db: Any) -> None:
    await nuq.add(db)
    job = await nuq.take(db)
    assert await db.execute("DELETE FROM nuq.queue_scrape WHERE id = $1", job["id"]) == "DELETE 1"
    assert not await nuq.renew(db, job)
    assert not await nuq.finish(db, job)


async def test_what_is_paused_is_not_taken_and_shown_in_the_backlog_n11(
    db: Any, store: Store
) -> None:
    group = await nuq.add_group(db, nuq.OWNER)
    member, single = await nuq.add(db, group=group, priority=1), await nuq.add(db, priority=2)
    await store.pause_group(str(group))
    assert await _backlog(db) == {member}
    assert (await nuq.take(db))["id"] == single
    assert await nuq.take(db) is None
    await store.pause_queue(QUEUE)
    await store.resume_group(str(group))
    assert await nuq.take(db) is None
    await store.resume_queue(QUEUE)
    assert (await nuq.take(db))["id"] == member


async def _backlog(db: Any) -> set[UUID]:
    return {one["id"] for one in await db.fetch("SELECT id FROM nuq.queue_scrape_backlog")}


async def _hold(db: Any, *, seconds: float = 60, **given: Any) -> UUID:
    values = {"owner_id": None, "group_id": None} | given
    found: UUID = await db.fetchval(
        nuq.ADD_TO_BACKLOG,
        json.dumps(nuq.PAGE),
        20,
        values["owner_id"],
        values["group_id"],
        datetime.now(UTC) + timedelta(seconds=seconds),
    )
    return found


async def test_the_backlog_is_held_until_it_is_promoted_n6(db: Any, store: Store) -> None:
    job_id = await _hold(db, seconds=60.123456)
    times_out_at = await db.fetchval("SELECT times_out_at FROM nuq.queue_scrape_backlog")
    created = await db.fetchval("SELECT created_at FROM nuq.queue_scrape_backlog")
    job = await get(store, str(job_id))
    assert job.state is JobState.HELD
    assert job.max_hold_seconds is not None
    assert job.run_at + timedelta(seconds=job.max_hold_seconds) == times_out_at
    assert await store.promote_jobs() == 0
    assert await nuq.take(db) is None
    promoted = await db.fetchrow(nuq.PROMOTE, job_id)
    assert tuple(promoted) == (job_id, "queued", created)
    assert await _backlog(db) == set()
    assert (await nuq.take(db))["id"] == job_id


async def test_a_row_may_be_promoted_before_it_is_deleted_n6(db: Any) -> None:
    group = await nuq.add_group(db, nuq.OWNER)
    job_id = await _hold(db, group_id=group)
    await db.execute(
        """
        WITH moved AS (
          INSERT INTO nuq.queue_scrape (id, data, created_at, priority, owner_id, group_id)
          SELECT id, data, created_at, priority, owner_id, group_id
          FROM nuq.queue_scrape_backlog WHERE id = $1
          RETURNING id
        )
        DELETE FROM nuq.queue_scrape_backlog WHERE id IN (SELECT id FROM moved)
        """,
        job_id,
    )
    assert await _backlog(db) == set()
    job = await nuq.take(db)
    assert job["id"] == job_id
    assert await nuq.finish(db, job)
    status = await db.fetchval("SELECT status::text FROM nuq.group_crawl WHERE id = $1", group)
    assert status == "completed"


async def test_windrow_promotes_the_backlog_of_an_owner_with_a_limit_n6(
    db: Any, store: Store
) -> None:
    await store.set_limit(LimitRow(key=f"nuq.owner/{nuq.OWNER}", active=1))
    first, second = [await _hold(db, owner_id=nuq.OWNER) for _ in range(2)]
    assert await store.promote_jobs() == 1
    job = await nuq.take(db)
    assert (job["id"], await _backlog(db)) == (first, {second})
    assert await store.promote_jobs() == 0
    assert await nuq.finish(db, job)
    assert await store.promote_jobs() == 1
    assert (await nuq.take(db))["id"] == second


async def test_what_was_promoted_in_time_does_not_time_out_while_it_is_paused_n6(
    db: Any, store: Store
) -> None:
    job_id = await _hold(db)
    assert (await db.fetchrow(nuq.PROMOTE, job_id))["status"] == "queued"
    await store.pause_queue(QUEUE)
    # As if it were much later: its time would have been up long ago.
    await db.execute("UPDATE windrow.job_live SET run_at = run_at - interval '1 hour'")
    assert await _backlog(db) == {job_id}
    assert await db.execute(nuq.REAP_BACKLOG) == "DELETE 0"
    await store.resume_queue(QUEUE)
    assert (await nuq.take(db))["id"] == job_id


async def test_windrow_fails_what_was_held_too_long_n6(db: Any, store: Store) -> None:
    job_id = await _hold(db, seconds=-1)
    later = await _hold(db, seconds=60)
    [change] = await store.expire_jobs()
    assert (change.id, change.after) == (str(job_id), JobState.FAILED)
    seen = await nuq.see(db, job_id)
    assert seen["status"] == "failed"
    assert seen["failedreason"].startswith("held too long")
    assert await _backlog(db) == {later}


async def test_a_group_ends_with_its_last_member_at_once_n5(db: Any, store: Store) -> None:
    group = await nuq.add_group(db, nuq.OWNER, ttl=3_600_000)
    kickoff = await nuq.add(db, data={"mode": "kickoff"}, group=group)
    job = await nuq.take(db)
    assert job["id"] == kickoff
    pages = [await nuq.add(db, group=group) for _ in range(2)]
    assert await nuq.finish(db, job)
    ours = await claim_one(store, QUEUE)
    await fail(store, ours, "no")
    assert await _stats(db, group) == {"failed": 1, "queued": 1, "backlog": 0}
    assert (await _group(db, group))["status"] == "active"
    assert await nuq.finish(db, await nuq.take(db))
    ended = await _group(db, group)
    assert ended["status"] == "completed"
    left = ended["expires_at"] - datetime.now(UTC)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    [done] = await db.fetch("SELECT * FROM nuq.queue_crawl_finished")
    assert (done["status"], done["data"], done["owner_id"]) == ("queued", "{}", nuq.OWNER)
    assert done["group_id"] == group
    # What the printed cron job would do has been done.
    assert await db.execute(nuq.FINISH_GROUPS) == "INSERT 0 0"
    assert {str(page) for page in pages} >= {ours.id}


async def test_a_group_that_windrow_workers_end_is_finished_once_n5(db: Any, store: Store) -> None:
    group = await nuq.add_group(db, nuq.OWNER)
    for _ in range(3):
        await nuq.add(db, group=group)
    jobs = await claim(store, 9, QUEUE)
    await store.finish_jobs([completion(job) for job in jobs])
    assert (await _group(db, group))["status"] == "completed"
    done = await claim_one(store, "nuq.queue_crawl_finished")
    assert (done.kind, done.payload) == ("nuq.queue_crawl_finished", {})
    seen = await db.fetchrow("SELECT * FROM nuq.queue_crawl_finished")
    assert (seen["group_id"], seen["owner_id"], seen["status"]) == (group, nuq.OWNER, "active")
    await complete(store, done)


async def test_cancelling_a_group_is_real_n5(db: Any) -> None:
    group = await nuq.add_group(db, nuq.OWNER)
    running = await nuq.add(db, group=group, priority=-1)
    waiting = await nuq.add(db, group=group)
    held = await _hold(db, group_id=group)
    job = await nuq.take(db)
    assert job["id"] == running
    update = "UPDATE nuq.group_crawl SET status = 'cancelled' WHERE id = $1"
    assert await db.execute(update, group) == "UPDATE 1"
    assert await _backlog(db) == set()
    for job_id in (waiting, held):
        seen = await nuq.see(db, job_id)
        assert (seen["status"], seen["failedreason"]) == ("failed", "the crawl was cancelled")
    late = await nuq.add(db, group=group)
    assert (await nuq.see(db, late))["status"] == "failed"
    assert (await _group(db, group))["status"] == "cancelled"
    assert await nuq.finish(db, job)
    assert (await _group(db, group))["expires_at"] is not None


async def test_windrows_groups_are_shown_and_kept_from_harm_n5(db: Any, store: Store) -> None:
    elsewhere = await make_group(store, tenant="bypass")
    await store.insert_jobs([row(queue="other", group=elsewhere.id)])
    assert str((await _group(db, UUID(elsewhere.id)))["owner_id"]) == owner_id("bypass")
    # It has no member in nuq.queue_scrape, but it has one.
    assert await db.execute(nuq.FINISH_GROUPS) == "INSERT 0 0"
    assert (await _group(db, UUID(elsewhere.id)))["status"] == "active"


async def test_jobs_may_come_before_their_group_n5(db: Any) -> None:
    group = uuid4()
    for _ in range(2):
        await nuq.add(db, group=group)
    assert await nuq.finish(db, await nuq.take(db))
    await db.execute("INSERT INTO nuq.group_crawl (id, owner_id) VALUES ($1, $2)", group, nuq.OWNER)
    assert (await _group(db, group))["status"] == "active"
    assert await nuq.finish(db, await nuq.take(db))
    assert (await _group(db, group))["status"] == "completed"


async def _group(db: Any, group: UUID) -> Any:
    return await db.fetchrow("SELECT * FROM nuq.group_crawl WHERE id = $1", group)


async def _stats(db: Any, group: UUID) -> dict[str, int]:
    return {one["status"]: one["count"] for one in await db.fetch(nuq.STATS, group)}


async def test_the_printed_questions_are_answered_n11(db: Any) -> None:
    group = await nuq.add_group(db, nuq.OWNER)
    single, lost = await nuq.add(db, priority=-2), await nuq.add(db, priority=-1)
    document = {"markdown": "# Title", "metadata": {"title": "Title", "statusCode": 200}}
    assert await nuq.finish(db, await nuq.take(db), document)
    assert await nuq.fail(db, await nuq.take(db), "no")
    pages = [await nuq.add(db, group=group, priority=n) for n in range(3)]
    await nuq.add(db, data={"mode": "kickoff"}, group=group, priority=9)
    await _hold(db, group_id=group)
    for _ in range(2):
        assert await nuq.finish(db, await nuq.take(db), document)
    await nuq.take(db)

    one = await db.fetchrow(nuq.JOB, single)
    assert (one["status"], json.loads(one["returnvalue"])) == ("completed", document)
    assert [found["id"] for found in await db.fetch(nuq.RECENT)] == [single]
    assert [found["url"] for found in await db.fetch(nuq.RECENT_OF_TEAM, "bypass")] == [
        nuq.PAGE["url"]
    ]
    assert await db.fetch(nuq.RECENT_OF_TEAM, "others") == []
    found = await db.fetch(nuq.PAGES, group)
    assert [(p["id"], p["title"], p["content_length"]) for p in found] == [
        (pages[0], "Title", 7),
        (pages[1], "Title", 7),
    ]
    assert await _stats(db, group) == {"completed": 2, "active": 1, "backlog": 1}
    progress = dict(await db.fetchrow(nuq.PROGRESS, group))
    assert progress["crawl_status"] == "active"
    counts = ("completed_count", "failed_count", "active_count", "queued_count", "total_count")
    assert [progress[name] for name in counts] == [2, 0, 1, 0, 3]
    near = await db.fetch(nuq.NEAR_DELETION)
    assert {(n["id"], n["status"]) for n in near} == {(single, "completed"), (lost, "failed")}
    assert all(n["time_until_deletion"] > timedelta(minutes=55) for n in near)


async def test_what_happens_through_the_dialect_is_told_as_an_event_n8(
    db: Any, store: Store
) -> None:
    group = await nuq.add_group(db, nuq.OWNER)
    job_id = await nuq.add(db, group=group)
    assert await nuq.finish(db, await nuq.take(db))
    told = [
        (event.type, event.job_id, event.group_id)
        for event in await all_events(store)
        if event.queue != "nuq.queue_crawl_finished"
    ]
    assert told == [
        ("job.created", str(job_id), str(group)),
        ("job.started", str(job_id), str(group)),
        ("job.finished", str(job_id), str(group)),
        ("group.ended", None, str(group)),
    ]


async def test_an_id_that_is_there_is_refused_whatever_is_said_of_conflicts_n11(db: Any) -> None:
    """Postgres knows ON CONFLICT for tables only, and tells a view's trigger nothing of it."""
    job_id = await nuq.add(db)
    insert = "INSERT INTO nuq.queue_scrape (id) VALUES ($1) ON CONFLICT {}DO NOTHING"
    with pytest.raises(asyncpg.UniqueViolationError):
        await db.execute(insert.format(""), job_id)
    with pytest.raises(asyncpg.InvalidColumnReferenceError):
        await db.execute(insert.format("(id) "), job_id)


async def test_the_dialect_comes_and_goes_and_the_jobs_stay_n11(db: Any, store: Store) -> None:
    job_id = await nuq.add(db)
    assert await nuq.finish(db, await nuq.take(db))
    waiting = await nuq.add(db)
    assert await store.remove_dialect("nuq")
    with pytest.raises(asyncpg.UndefinedTableError):
        await nuq.see(db, job_id)
    assert [job.id for job in await claim(store, 9, QUEUE)] == [str(waiting)]
    assert await store.install_dialect("nuq")
    assert not await store.install_dialect("nuq")
    assert (await nuq.see(db, job_id))["status"] == "completed"
    assert (await nuq.see(db, waiting))["status"] == "active"
