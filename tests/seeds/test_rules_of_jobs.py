"""Jobs that are written through a dialect keep to the rules of all jobs: groups, roots, followers,
stops, limits, bounds, events, wake-ups. Shown with processing_jobs; all dialects are made of the
same functions."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from tests.builders import add, claim, complete, get, get_group, insert, make_group, row, state
from tests.seeds.conftest import Connect
from tests.seeds.test_processing_jobs import (
    COMPLETE,
    FAIL,
    QUEUE,
    enqueue,
    let_lease_run_out,
    seconds,
    take,
)
from windrow import Queue
from windrow.queue.events import OLDEST
from windrow.queue.job import JobState
from windrow.queue.records import LimitRow
from windrow.queue.store import Store

DIALECT = "processing_jobs"
S = JobState
WAIT = 20.0  # seconds; only a failing test waits for it


async def start_crawl(store: Store, db: Any, **fields: Any) -> tuple[str, str]:
    """A root that runs in a foreign worker, and its group."""
    root = await add(store, queue=QUEUE)
    assert str((await take(db, "root"))["id"]) == root
    group = await make_group(store, root=root, **fields)
    return root, group.id


async def test_group_ends_with_its_last_member_and_its_finish_job_comes_once(
    db: Any, store: Store
) -> None:
    group = await make_group(store, then=row("summary", {"n": 1.50}, headers={"h": 1}))
    for _ in range(3):
        await add(store, queue=QUEUE, group=group.id, max_attempts=1)
    first, second, third = [str((await take(db))["id"]) for _ in range(3)]
    await db.execute(COMPLETE, first)
    await db.execute(FAIL, second, "boom", seconds(0))
    assert (await get_group(store, group.id)).state == "active"

    await db.execute(COMPLETE, third)

    found = await get_group(store, group.id)
    assert (found.state, found.pending) == ("completed", 0)
    assert (found.counts[S.COMPLETED], found.counts[S.FAILED]) == (2, 1)
    [job] = await claim(store, 9)
    assert (job.kind, job.payload_json, job.headers) == ("summary", '{"n":1.5}', {"h": 1})
    await complete(store, job)


async def test_group_ends_once_however_many_members_end_at_once(
    connect: Connect, store: Store
) -> None:
    group = await make_group(store, then=row("summary"))
    for _ in range(8):
        await add(store, queue=QUEUE, group=group.id)
    workers = [await connect() for _ in range(8)]
    taken = [(db, await take(db)) for db in workers]

    await asyncio.gather(*(db.execute(COMPLETE, job["id"]) for db, job in taken))

    found = await get_group(store, group.id)
    assert (found.state, found.counts[S.COMPLETED]) == ("completed", 8)
    assert [job.kind for job in await claim(store, 9)] == ["summary"]


async def test_root_waits_for_its_group_and_is_completed_with_it(db: Any, store: Store) -> None:
    root, group = await start_crawl(store, db)
    await add(store, queue=QUEUE, group=group)
    await db.execute(COMPLETE, root)
    assert await state(store, root) is S.WAITING
    assert await db.execute(COMPLETE, root) == "UPDATE 1", "again, which changes nothing"
    assert await db.execute(FAIL, root, "late", seconds(0)) == "UPDATE 0"
    assert await state(store, root) is S.WAITING

    member = await take(db)
    await db.execute(COMPLETE, member["id"])

    assert await state(store, root) is S.COMPLETED
    progress = (await get(store, root)).progress
    assert progress is not None
    assert progress.percent == 100


async def test_root_that_ends_after_its_group_is_completed_at_once(db: Any, store: Store) -> None:
    root, group = await start_crawl(store, db)
    await add(store, queue=QUEUE, group=group)
    await db.execute(COMPLETE, (await take(db))["id"])
    assert (await get_group(store, group)).state == "completed"

    await db.execute(COMPLETE, root)

    assert await state(store, root) is S.COMPLETED


async def test_failed_root_takes_its_group_with_it(db: Any, store: Store) -> None:
    root, group = await start_crawl(store, db)
    running = await add(store, queue=QUEUE, group=group)
    await take(db, "member")
    waiting = await add(store, queue=QUEUE, group=group)
    await db.execute("update processing_jobs set max_attempts = 1 where id = $1", root)

    await db.execute(FAIL, root, "broken", seconds(0))

    assert await state(store, root) is S.FAILED
    assert await state(store, waiting) is S.CANCELLED
    assert (await get(store, running)).stop_as is S.CANCELLED
    await db.execute(FAIL, running, "stopped", seconds(0))
    assert await state(store, running) is S.CANCELLED
    found = await get_group(store, group)
    assert (found.state, found.counts[S.CANCELLED], found.pending) == ("cancelled", 2, 0)


async def test_inner_group_ends_the_outer_one(db: Any, store: Store) -> None:
    outer = await make_group(store)
    root = await add(store, queue=QUEUE, group=outer.id)
    await take(db)
    inner = await make_group(store, root=root)
    await add(store, queue=QUEUE, group=inner.id)
    member = await take(db)
    await db.execute(COMPLETE, root)

    await db.execute(COMPLETE, member["id"])

    assert (await get_group(store, inner.id)).state == "completed"
    assert (await get_group(store, outer.id)).state == "completed"
    assert await state(store, root) is S.COMPLETED


async def test_deleted_member_is_not_waited_for(db: Any, store: Store) -> None:
    group = await make_group(store)
    kept, gone = [await add(store, queue=QUEUE, group=group.id) for _ in range(2)]
    await take(db)
    await db.execute(COMPLETE, kept)

    await db.execute("delete from processing_jobs where id = $1", gone)

    found = await get_group(store, group.id)
    assert (found.state, found.pending, found.counts[S.COMPLETED]) == ("completed", 0, 1)


@pytest.mark.parametrize("ending", ["complete", "fail", "crash", "delete"])
async def test_follower_takes_the_place_of_its_holder(db: Any, store: Store, ending: str) -> None:
    holder = await add(store, queue=QUEUE, unique="k", max_attempts=5, max_crashes=5)
    await take(db)
    follower = await insert(store, queue=QUEUE, unique="k", on_conflict="follow")
    assert follower.state is S.HELD

    if ending == "complete":
        await db.execute(COMPLETE, holder)
    elif ending == "fail":
        await db.execute(FAIL, holder, "boom", seconds(60))
        assert (await get(store, holder)).error == f"replaced by job {follower.id}"
    elif ending == "crash":
        await let_lease_run_out(db, holder)
        assert await take(db) is None, "the holder was ended, its follower comes with the next"
    else:
        await db.execute("delete from processing_jobs where id = $1", holder)

    assert str((await take(db))["id"]) == follower.id


async def test_job_that_was_asked_to_pause_pauses(db: Any, store: Store) -> None:
    job_id = await enqueue(db)
    await take(db)
    await store.pause_jobs([job_id])
    await db.execute(FAIL, job_id, "boom", seconds(0))

    assert await state(store, job_id) is S.PAUSED
    assert await take(db) is None
    assert await db.fetchval("select status from processing_jobs") == "paused"
    await db.execute("update processing_jobs set status = 'queued' where id = $1", job_id)
    assert await state(store, job_id) is S.READY
    assert (await take(db)) is not None


async def test_job_with_limits_waits_for_them(db: Any, store: Store) -> None:
    await store.set_limit(LimitRow("api", active=1))
    first, second = [await add(store, queue=QUEUE, limits=("api",)) for _ in range(2)]
    assert await take(db) is None
    await store.promote_jobs()
    assert str((await take(db))["id"]) == first
    await store.promote_jobs()
    assert await take(db) is None

    await db.execute(COMPLETE, first)
    await store.promote_jobs()

    assert str((await take(db))["id"]) == second


async def test_bounded_queue_refuses_what_is_too_much(db: Any, store: Store) -> None:
    await store.set_queue(QUEUE, max_depth=1, on_full="reject")
    await enqueue(db)

    with pytest.raises(asyncpg.ProgramLimitExceededError, match="is full"):
        await enqueue(db)

    assert await db.fetchval("select count(*) from processing_jobs") == 1


async def test_events_tell_of_a_dialects_jobs(db: Any, store: Store) -> None:
    group = await make_group(store)
    job_id = await add(store, queue=QUEUE, group=group.id)
    async with db.transaction():
        await take(db)
    await db.execute(COMPLETE, job_id)

    events = [
        (event.type, event.state) async for event in Queue(store).events(OLDEST, follow=False)
    ]

    assert events[:3] == [
        ("job.created", "ready"),
        ("job.started", "active"),
        ("job.finished", "completed"),
    ]
    assert ("group.ended", "completed") in events


async def test_those_who_sleep_are_woken(db: Any, dialect_url: str, store: Store) -> None:
    async with Queue.open(dialect_url) as queue:
        claiming = asyncio.ensure_future(queue.claim(QUEUE, wait=WAIT, seconds=60))
        await _until_somebody(db, "windrow.sleeper")
        job_id = await enqueue(db)
        lease = await asyncio.wait_for(claiming, WAIT / 2)
        assert [job.id for job in lease.jobs] == [job_id]
        await lease.complete(lease.jobs[0])

        other = await enqueue(db)
        await take(db)
        waiting = asyncio.ensure_future(queue.wait(other, timeout=WAIT))
        await _until_somebody(db, "windrow.waiter")
        await db.execute(COMPLETE, other)
        assert (await asyncio.wait_for(waiting, WAIT / 2)).state is S.COMPLETED


async def _until_somebody(db: Any, table: str) -> None:
    async with asyncio.timeout(WAIT):
        while not await db.fetchval(f"select exists (select from {table})"):
            await asyncio.sleep(0.01)
