"""Seed N: the bodies of NuQ's cron jobs, executed as statements (N2, N5, N6, N7, N11)."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from tests.builders import claim_one, get
from tests.seeds import nuq
from tests.seeds.conftest import Connect
from windrow.queue.job import JobState
from windrow.queue.store import Store

DIALECT = "nuq"


async def _add_ended(db: Any, status: str, created: timedelta, group: UUID | None = None) -> UUID:
    found: UUID = await db.fetchval(
        "INSERT INTO nuq.queue_scrape (status, data, created_at, finished_at, group_id) "
        "VALUES ($1, '{}', $2, now(), $3) RETURNING id",
        status,
        datetime.now(UTC) - created,
        group,
    )
    return found


async def _ids(db: Any) -> set[UUID]:
    return {row["id"] for row in await db.fetch("SELECT id FROM nuq.queue_scrape")}


async def test_completed_jobs_are_cleaned_an_hour_after_their_creation_n7(db: Any) -> None:
    old = await _add_ended(db, "completed", timedelta(minutes=61))
    young = await _add_ended(db, "completed", timedelta(minutes=59))
    failed = await _add_ended(db, "failed", timedelta(minutes=61))
    member = await _add_ended(db, "completed", timedelta(minutes=61), uuid4())
    assert await db.execute(nuq.CLEAN_COMPLETED) == "DELETE 1"
    assert await _ids(db) == {young, failed, member}
    assert await nuq.see(db, old) is None


async def test_failed_jobs_are_cleaned_six_hours_after_their_creation_n7(db: Any) -> None:
    await _add_ended(db, "failed", timedelta(hours=6, minutes=1))
    young = await _add_ended(db, "failed", timedelta(hours=5, minutes=59))
    completed = await _add_ended(db, "completed", timedelta(hours=7))
    assert await db.execute(nuq.CLEAN_FAILED) == "DELETE 1"
    assert await _ids(db) == {young, completed}


async def test_windrow_keeps_from_the_finish_what_nuq_keeps_from_the_creation_n7(
    db: Any, store: Store
) -> None:
    job_id = await nuq.add(db)
    await nuq.age(db, job_id, "created_at", "2 hours")
    assert await nuq.finish(db, await nuq.take(db))
    job = await get(store, str(job_id))
    assert job.finished_at is not None
    assert job.expires_at == job.finished_at + timedelta(hours=1)


async def test_a_job_whose_lock_ran_out_is_queued_again_nine_times_n2(
    db: Any, connect: Connect
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    listener = await connect()
    await listener.add_listener("nuq.queue_scrape", lambda *args: heard.put_nowait(args[3]))
    job_id = await nuq.add(db)
    for stalls in range(9):
        job = await nuq.take(db)
        assert job["stalls"] == (stalls or None)
        assert await db.execute(nuq.REQUEUE_STALLED) == "UPDATE 0"  # it is not a minute yet
        await nuq.age(db, job_id, "locked_at", "1 minute")
        assert await db.execute(nuq.FAIL_STALLED) == "SELECT 0"
        assert await db.execute(nuq.REQUEUE_STALLED) == "UPDATE 1"
        seen = await nuq.see(db, job_id)
        assert (seen["status"], seen["stalls"]) == ("queued", stalls + 1)
        assert (seen["lock"], seen["locked_at"]) == (None, None)
        assert not await nuq.finish(db, job, {"late": True})
    await nuq.take(db)
    await nuq.age(db, job_id, "locked_at", "1 minute")
    assert await db.execute(nuq.REQUEUE_STALLED) == "UPDATE 0"
    assert await db.execute(nuq.FAIL_STALLED) == "SELECT 1"
    seen = await nuq.see(db, job_id)
    assert (seen["status"], seen["stalls"], seen["lock"]) == ("failed", 10, None)
    # Better than the original, which leaves both of them null.
    assert seen["failedreason"] == "crashed 10 times: the lease ran out"
    assert seen["finished_at"] is not None
    async with asyncio.timeout(20):
        assert await heard.get() == f"{job_id}|failed"


async def test_windrow_and_the_reaper_count_the_same_stalls_n2(db: Any, store: Store) -> None:
    job_id = await nuq.add(db)
    for turn in range(10):
        await nuq.take(db)
        await nuq.age(db, job_id, "locked_at", "1 minute")
        if turn % 2:
            await db.execute(nuq.REQUEUE_STALLED)
        else:
            await store.rescue_jobs()
    await db.execute(nuq.FAIL_STALLED)
    job = await get(store, str(job_id))
    assert (job.state, job.crashes) == (JobState.FAILED, 10)


async def test_the_reaper_takes_the_jobs_of_a_windrow_worker_that_died_n2(
    db: Any, store: Store
) -> None:
    job_id = await nuq.add(db)
    await claim_one(store, "nuq.queue_scrape", seconds=60)
    assert await db.execute(nuq.REQUEUE_STALLED) == "UPDATE 0"
    await db.execute("UPDATE windrow.lease SET expires_at = now() - interval '1 second'")
    assert await db.execute(nuq.REQUEUE_STALLED) == "UPDATE 1"
    assert (await nuq.take(db))["id"] == job_id


async def test_the_backlog_is_reaped_when_its_time_is_out_n6(db: Any) -> None:
    out, within, held = [
        await db.fetchval(nuq.ADD_TO_BACKLOG, json.dumps(nuq.PAGE), 0, nuq.OWNER, None, at)
        for at in (
            datetime.now(UTC) - timedelta(seconds=1),
            datetime.now(UTC) + timedelta(minutes=1),
            None,
        )
    ]
    assert await db.execute(nuq.REAP_BACKLOG) == "DELETE 1"
    left = {row["id"] for row in await db.fetch("SELECT id FROM nuq.queue_scrape_backlog")}
    assert left == {within, held}
    # Better than the original, where it vanishes.
    seen = await nuq.see(db, out)
    assert seen["status"] == "failed"
    assert seen["failedreason"].startswith("held too long")
    # Who promotes it all the same is not refused.
    await db.execute("UPDATE nuq.queue_scrape_backlog SET times_out_at = now() - interval '1 s'")
    assert (await db.fetchrow(nuq.PROMOTE, within))["status"] == "queued"
    assert (await nuq.take(db))["id"] == within


async def test_a_group_that_never_had_a_job_is_finished_by_the_cron_job_n5(db: Any) -> None:
    empty = await nuq.add_group(db, nuq.OWNER, ttl=60_000)
    busy = await nuq.add_group(db, nuq.OWNER)
    await nuq.add(db, group=busy)
    held = await nuq.add_group(db, nuq.OWNER)
    await db.fetchval(nuq.ADD_TO_BACKLOG, "{}", 0, nuq.OWNER, held, None)
    assert await db.execute(nuq.FINISH_GROUPS) == "INSERT 0 1"
    [done] = await db.fetch("SELECT group_id, owner_id, data FROM nuq.queue_crawl_finished")
    assert tuple(done) == (empty, nuq.OWNER, "{}")
    groups = {
        row["id"]: row for row in await db.fetch("SELECT *, now() AS now FROM nuq.group_crawl")
    }
    assert {key: row["status"] for key, row in groups.items()} == {
        empty: "completed",
        busy: "active",
        held: "active",
    }
    left = groups[empty]["expires_at"] - groups[empty]["now"]
    assert timedelta(seconds=50) < left <= timedelta(seconds=60)
    assert await db.execute(nuq.FINISH_GROUPS) == "INSERT 0 0"


async def test_the_group_is_cleaned_with_all_its_jobs_n5(db: Any, store: Store) -> None:
    group, other = await nuq.add_group(db, nuq.OWNER), await nuq.add_group(db, nuq.OWNER)
    jobs = [await nuq.add(db, group=group) for _ in range(3)]
    for _ in jobs:
        assert await nuq.finish(db, await nuq.take(db))
    kept = await nuq.add(db, group=other)
    assert await db.execute("UPDATE nuq.group_crawl SET expires_at = now()") == "UPDATE 2"
    late = await nuq.add(db, group=group)  # runs on: the group is not cleaned before it ended
    await db.execute(nuq.CLEAN_GROUPS)
    assert await _ids(db) == {*jobs, late, kept}
    first = await nuq.take(db)
    assert await nuq.finish(db, first)
    if first["id"] != late:
        assert await nuq.finish(db, await nuq.take(db))
    await db.execute(
        "UPDATE nuq.group_crawl SET expires_at = now() - interval '1 s' WHERE id = $1", group
    )
    await db.execute(nuq.CLEAN_GROUPS)
    assert await _ids(db) == {kept}
    assert await db.fetchval("SELECT count(*) FROM nuq.group_crawl WHERE id = $1", group) == 0
    left = "SELECT count(*) FROM nuq.queue_crawl_finished WHERE group_id = $1"
    assert await db.fetchval(left, group) == 0
    assert await store.get_group(str(group)) is None


async def test_the_cron_jobs_pass_over_what_is_locked_n5(
    db: Any, store: Store, connect: Connect
) -> None:
    """They write many rows in any order: if they waited for one, others could wait for them."""
    expired = await nuq.add_group(db, nuq.OWNER, ttl=0)
    await nuq.add(db, group=expired)
    assert await nuq.finish(db, await nuq.take(db))
    await db.execute("UPDATE nuq.group_crawl SET expires_at = now() - interval '1 s'")
    empty = await nuq.add_group(db, nuq.OWNER)
    over = datetime.now(UTC) - timedelta(seconds=1)
    held = await db.fetchval(nuq.ADD_TO_BACKLOG, "{}", 0, nuq.OWNER, None, over)
    other = await connect()
    async with other.transaction(), asyncio.timeout(20):
        await other.execute("SELECT FROM windrow.job_group WHERE id = $1 FOR UPDATE", empty)
        await other.execute("SELECT FROM windrow.job WHERE group_id = $1 FOR UPDATE", expired)
        await other.execute("SELECT FROM windrow.job WHERE id = $1 FOR UPDATE", held)
        await _reap(db)
        assert await _statuses(db) == {expired: "completed", empty: "active"}
        assert (await get(store, str(held))).state is JobState.HELD
    await _reap(db)
    assert await _statuses(db) == {empty: "completed"}
    assert (await get(store, str(held))).state is JobState.FAILED


async def _reap(db: Any) -> None:
    for body in (nuq.FINISH_GROUPS, nuq.CLEAN_GROUPS, nuq.REAP_BACKLOG):
        await db.execute(body)


async def _statuses(db: Any) -> dict[UUID, str]:
    groups = await db.fetch("SELECT id, status::text FROM nuq.group_crawl")
    return {row["id"]: row["status"] for row in groups}


async def test_deleting_a_group_takes_along_what_waits_and_what_runs_n5(db: Any) -> None:
    group = await nuq.add_group(db, nuq.OWNER)
    await nuq.add(db, group=group)
    running = await nuq.take(db)
    await nuq.add(db, group=group)
    await db.fetchval(nuq.ADD_TO_BACKLOG, "{}", 0, nuq.OWNER, group, datetime.now(UTC))
    assert await db.execute("DELETE FROM nuq.group_crawl WHERE id = $1", group) == "DELETE 1"
    assert await _ids(db) == set()
    assert await db.fetchval("SELECT count(*) FROM nuq.queue_scrape_backlog") == 0
    assert await db.fetchval("SELECT count(*) FROM nuq.queue_crawl_finished") == 0
    assert not await nuq.finish(db, running)


async def test_the_worker_of_finished_crawls_uses_the_same_statements_n5(db: Any) -> None:
    group = await nuq.add_group(db, nuq.OWNER)
    await nuq.add(db, group=group)
    assert await nuq.finish(db, await nuq.take(db))
    on_crawls = {
        name: text.replace("queue_scrape", "queue_crawl_finished")
        for name, text in {"take": nuq.TAKE, "renew": nuq.RENEW, "finish": nuq.FINISH}.items()
    }
    job = await db.fetchrow(on_crawls["take"])
    assert await db.execute(on_crawls["renew"], job["id"], job["lock"]) == "UPDATE 1"
    assert await db.fetch(on_crawls["finish"], job["id"], uuid4(), None) == []
    assert len(await db.fetch(on_crawls["finish"], job["id"], job["lock"], None)) == 1
    done = await db.fetchrow("SELECT status::text, group_id FROM nuq.queue_crawl_finished")
    assert tuple(done) == ("completed", group)
