"""Retention (N5, N7): how long finished jobs and groups are kept, and that they go as a whole.

Time is the fake clock's. A store may keep a job up to an hour beyond its time (`SLACK`), never less
than its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import (
    accept,
    add,
    add_and_claim,
    add_completed,
    add_failed,
    add_many,
    cancellation,
    claim,
    claim_one,
    complete,
    completion,
    counted,
    exists,
    fail,
    get,
    get_group,
    make_group,
    row,
    state,
    tallied,
)
from windrow.clock import FakeClock
from windrow.errors import ArchiveFailed
from windrow.queue.job import Job, JobState
from windrow.queue.records import FOREVER, Finish, JobFilter, Pruned
from windrow.queue.store import Store

HOUR = 3600
DAY = 24 * HOUR
SLACK = HOUR
BIG = "x" * 1_100_000  # a result that is kept as a blob

TABLES = ("job_payload", "job_error", "job_step", "job_progress", "blob", "job_group")


async def prune(store: Store, **options: Any) -> Pruned:
    """Prune until there is nothing more to do."""
    jobs = groups = 0
    for _ in range(1000):
        pruned = await store.prune_jobs(**options)
        jobs, groups = jobs + pruned.jobs, groups + pruned.groups
        if pruned.is_done:
            return Pruned(jobs, groups)
    raise AssertionError("pruning does not come to an end")


async def survives(store: Store, clock: FakeClock, job_id: str, seconds: float) -> None:
    """The job is there up to `seconds` from now, and gone when the slack is over too."""
    clock.advance(seconds - 1)
    await prune(store)
    assert await exists(store, job_id)
    clock.advance(1 + SLACK)
    await prune(store)
    assert not await exists(store, job_id)


# By default, by queue and state, by job


@pytest.mark.parametrize(
    ("end", "kept"), [(completion, DAY), (cancellation, DAY)], ids=["completed", "cancelled"]
)
async def test_finished_jobs_are_kept_a_day_by_default(
    store: Store, clock: FakeClock, end: Callable[..., Finish], kept: int
) -> None:
    job = await add_and_claim(store)
    await accept(store, end(job))

    await survives(store, clock, job.id, kept)


async def test_failed_jobs_are_kept_a_week_by_default(store: Store, clock: FakeClock) -> None:
    await survives(store, clock, await add_failed(store), 7 * DAY)


async def test_n7_completed_go_after_an_hour_and_failed_after_six_from_their_finish(
    store: Store, clock: FakeClock
) -> None:
    await store.set_retention("default", {"completed": HOUR, "failed": 6 * HOUR})
    await add_many(store, 2)
    clock.advance(5 * DAY)  # how long a job waited or ran does not matter
    done, failed = await claim(store, 2, seconds=10 * DAY)
    clock.advance(DAY)
    await accept(store, completion(done))
    await fail(store, failed)
    assert (await get(store, done.id)).expires_at == clock.now() + timedelta(hours=1)

    await survives(store, clock, done.id, HOUR)
    await survives(store, clock, failed.id, 6 * HOUR - HOUR - SLACK)


async def test_retention_is_per_queue(store: Store, clock: FakeClock) -> None:
    await store.set_retention("short", {"completed": HOUR})
    short = await add_completed(store, queue="short")
    other = await add_completed(store, queue="other")
    clock.advance(HOUR + SLACK)
    await prune(store)

    assert not await exists(store, short)
    assert await exists(store, other)


async def test_own_retention_of_a_job_counts_more_than_its_queues(
    store: Store, clock: FakeClock
) -> None:
    await store.set_retention("default", {"completed": HOUR})
    job_id = await add_completed(store, retention_seconds=5 * HOUR)

    await survives(store, clock, job_id, 5 * HOUR)


async def test_what_is_kept_for_ever_is(store: Store, clock: FakeClock) -> None:
    await store.set_retention("archive", {"completed": FOREVER, "failed": FOREVER})
    kept = [
        await add_completed(store, queue="archive"),
        await add_failed(store, queue="archive"),
        await add_completed(store, retention_seconds=FOREVER),
    ]
    clock.advance(1000 * DAY)
    await prune(store)

    assert [(await get(store, job_id)).expires_at for job_id in kept] == [None] * 3


async def test_change_of_retention_is_for_jobs_that_finish_later(
    store: Store, clock: FakeClock
) -> None:
    before = await add_completed(store)
    await store.set_retention("default", {"completed": HOUR})
    after = await add_completed(store)
    await store.set_retention("default", {"completed": None})
    later = await add_completed(store)
    clock.advance(HOUR + SLACK)
    await prune(store)

    assert await exists(store, before)
    assert not await exists(store, after)
    assert await exists(store, later)


async def test_states_that_are_not_named_stay_as_they_were(store: Store) -> None:
    assert await store.list_retention() == {}
    await store.set_retention("a", {"completed": 60, "failed": FOREVER})
    await store.set_retention("a", {"completed": None, "cancelled": 5})
    await store.set_retention("b", {"failed": 7})
    found = await store.list_retention()

    assert (found["a"].completed, found["a"].failed, found["a"].cancelled) == (None, FOREVER, 5)
    assert (found["b"].completed, found["b"].failed, found["b"].cancelled) == (None, 7, None)


async def test_pausing_and_resuming_a_queue_keeps_its_retention(store: Store) -> None:
    await store.set_retention("a", {"completed": 60})
    assert await store.list_queues() == []
    await store.pause_queue("a")
    await store.resume_queue("a")

    assert (await store.list_retention())["a"].completed == 60


async def test_retention_of_a_paused_queue_leaves_it_paused(store: Store) -> None:
    await store.pause_queue("default")
    await store.set_retention("default", {"completed": 60})
    await add(store)

    assert await claim(store) == []


async def test_editing_the_retention_of_a_failed_job_counts_from_its_finish(
    store: Store, clock: FakeClock
) -> None:
    job_id = await add_failed(store)
    clock.advance(HOUR)
    await store.edit_job(job_id, {"retention_seconds": 3 * HOUR})

    await survives(store, clock, job_id, 2 * HOUR)


async def test_edited_retention_goes_back_to_the_queues(store: Store, clock: FakeClock) -> None:
    await store.set_retention("default", {"failed": 2 * HOUR})
    job_id = await add_failed(store, retention_seconds=FOREVER)
    await store.edit_job(job_id, {"retention_seconds": None})

    await survives(store, clock, job_id, 2 * HOUR)


# Everything of a job goes


async def test_everything_of_a_job_goes_with_it(
    store: Store, clock: FakeClock, run_sql: Callable[[str], list[Any]]
) -> None:
    job = await add_and_claim(store, payload={"a": 1})
    await fail(store, job)
    await store.retry_jobs([job.id])
    await complete(store, await claim_one(store), BIG)
    clock.advance(DAY + SLACK)
    await prune(store)

    assert {name: count(run_sql, name) for name in TABLES} == dict.fromkeys(TABLES, 0)
    assert await tallied(store) == {}


def count(run_sql: Callable[[str], list[Any]], table: str) -> int:
    [[number]] = run_sql(f"select count(*) from windrow.{table}")
    return int(number)


async def test_blob_shared_by_two_jobs_stays_until_the_second_goes(
    store: Store, clock: FakeClock, run_sql: Callable[[str], list[Any]]
) -> None:
    first = await add_and_claim(store, retention_seconds=HOUR)
    await complete(store, first, BIG)
    second = await add_and_claim(store, retention_seconds=8 * HOUR)
    await complete(store, second, BIG)
    clock.advance(HOUR + SLACK)
    await prune(store)

    assert not await exists(store, first.id)
    assert (await get(store, second.id)).result == BIG
    clock.advance(8 * HOUR)
    await prune(store)
    assert count(run_sql, "blob") == 0


async def test_live_jobs_never_expire(store: Store, clock: FakeClock) -> None:
    await store.set_retention("default", {"completed": 0, "failed": 0, "cancelled": 0})
    waiting = [await add(store), await add(store, delay=60, retention_seconds=0)]
    await add(store, queue="other", retention_seconds=0)
    running = await claim_one(store, "other", seconds=1)
    clock.advance(100 * DAY)
    await prune(store)

    for job_id in (*waiting, running.id):
        assert await exists(store, job_id)


async def test_job_retried_in_time_is_not_removed(store: Store, clock: FakeClock) -> None:
    job_id = await add_failed(store)
    clock.advance(7 * DAY - 1)
    await store.retry_jobs([job_id])
    clock.advance(DAY)
    await prune(store)
    assert await state(store, job_id) == JobState.READY

    await complete(store, await claim_one(store))
    await survives(store, clock, job_id, DAY)


# Groups


async def test_n5_members_do_not_expire_before_their_group(store: Store, clock: FakeClock) -> None:
    group = await make_group(store)
    job_ids = await add_many(store, 3, group=group.id, retention_seconds=60)
    first, second, third = await claim(store, 3, seconds=1000 * DAY)
    await complete(store, first)
    assert (await get(store, first.id)).expires_at is None
    clock.advance(30 * DAY)
    await fail(store, second)
    clock.advance(30 * DAY)
    await prune(store)
    assert len(await store.get_jobs(job_ids)) == 3

    await complete(store, third)
    ended_at = clock.now()
    assert (await get(store, first.id)).expires_at == ended_at + timedelta(days=1)
    clock.advance(DAY - 1)
    await prune(store)
    assert len(await store.get_jobs(job_ids)) == 3
    clock.advance(1)
    pruned = await prune(store)

    assert (pruned.jobs, pruned.groups) == (3, 1)
    assert await store.get_jobs(job_ids) == {}
    assert await store.get_group(group.id) is None


async def test_group_expires_by_its_own_retention(store: Store, clock: FakeClock) -> None:
    short = await make_group(store, retention_seconds=60)
    forever = await make_group(store, retention_seconds=FOREVER)
    gone = await add_completed(store, group=short.id)
    kept = await add_completed(store, group=forever.id)
    clock.advance(60)
    await prune(store)
    assert not await exists(store, gone)

    clock.advance(1000 * DAY)
    await prune(store)
    assert await exists(store, kept)
    assert (await get_group(store, forever.id)).state == "completed"


async def test_group_expiry_removes_everything_of_the_group(
    store: Store, clock: FakeClock, run_sql: Callable[[str], list[Any]]
) -> None:
    group = await make_group(store)
    await add_many(store, 3, group=group.id)
    done, failed, dropped = await claim(store, 3)
    await complete(store, done, BIG)
    await fail(store, failed)
    await accept(store, cancellation(dropped))
    clock.advance(DAY)
    await prune(store)

    assert {name: count(run_sql, name) for name in TABLES} == dict.fromkeys(TABLES, 0)
    assert await tallied(store) == {}


async def test_root_and_finish_job_go_by_their_own_retention(
    store: Store, clock: FakeClock
) -> None:
    root = await add_and_claim(store, retention_seconds=3 * DAY)
    then = row(retention_seconds=5 * DAY)
    group = await make_group(store, root=root.id, then=then)
    member = await add(store, group=group.id)
    await complete(store, root)
    await complete(store, await claim_one(store))
    await complete(store, await claim_one(store))
    clock.advance(DAY)
    await prune(store)
    assert not await exists(store, member)
    assert await store.get_group(group.id) is None

    clock.advance(2 * DAY + SLACK)
    await prune(store)
    assert not await exists(store, root.id)
    clock.advance(2 * DAY - SLACK)
    await prune(store)
    assert not await exists(store, then.id)


async def test_root_that_is_gone_leaves_its_group_whole(store: Store, clock: FakeClock) -> None:
    root = await add_and_claim(store, retention_seconds=0)
    group = await make_group(store, root=root.id, retention_seconds=FOREVER)
    job_id = await add(store, group=group.id)
    await complete(store, root)
    await fail(store, await claim_one(store))
    clock.advance(2 * SLACK)
    await prune(store)
    assert not await exists(store, root.id)

    await store.retry_jobs([job_id])
    await complete(store, await claim_one(store))
    assert (await get_group(store, group.id)).counts == {JobState.COMPLETED: 1}


async def test_root_whose_group_is_gone_may_have_another(store: Store, clock: FakeClock) -> None:
    root = await add_and_claim(store)
    former = await make_group(store, root=root.id)
    await fail(store, root)
    clock.advance(DAY)
    await prune(store)
    assert await store.get_group(former.id) is None
    assert (await get(store, root.id)).root_of is None

    await store.retry_jobs([root.id])
    again = await claim_one(store)
    group = await make_group(store, root=root.id)
    await add(store, group=group.id)
    await complete(store, again)
    assert await state(store, root.id) == JobState.WAITING


async def test_group_with_a_member_that_runs_again_expires_from_its_new_end(
    store: Store, clock: FakeClock
) -> None:
    group = await make_group(store)
    job_id = await add_failed(store, group=group.id)
    clock.advance(DAY - 60)
    await store.retry_jobs([job_id])
    clock.advance(DAY)
    await prune(store)
    assert await state(store, job_id) == JobState.READY
    assert (await get_group(store, group.id)).pending == 1

    await complete(store, await claim_one(store))
    clock.advance(DAY - 1)
    await prune(store)
    assert await exists(store, job_id)
    clock.advance(1)
    await prune(store)
    assert not await exists(store, job_id)
    assert await store.get_group(group.id) is None


async def test_empty_and_cancelled_groups_expire(store: Store, clock: FakeClock) -> None:
    empty = await make_group(store)
    await store.close_group(empty.id)
    cancelled = await make_group(store)
    job_id = await add(store, group=cancelled.id)
    await store.cancel_group(cancelled.id, "no")
    unended = await make_group(store)
    clock.advance(DAY)
    await prune(store)

    assert await store.get_group(empty.id) is None
    assert await store.get_group(cancelled.id) is None
    assert not await exists(store, job_id)
    assert await store.get_group(unended.id) is not None


async def test_nested_group_goes_by_itself_and_its_root_with_the_outer_one(
    store: Store, clock: FakeClock
) -> None:
    outer = await make_group(store, retention_seconds=3 * DAY)
    root = await add_and_claim(store, group=outer.id)
    inner = await make_group(store, root=root.id, retention_seconds=DAY)
    leaf = await add(store, group=inner.id)
    await complete(store, root)
    await complete(store, await claim_one(store))
    clock.advance(DAY)
    await prune(store)
    assert (await exists(store, leaf), await exists(store, root.id)) == (False, True)

    clock.advance(2 * DAY)
    await prune(store)
    assert not await exists(store, root.id)
    assert await store.get_group(outer.id) is None


# Many, again and again, at once


async def test_three_days_on_the_clock_keep_only_the_last_day(
    store: Store, clock: FakeClock
) -> None:
    finished: list[tuple[float, str]] = []
    for hour in range(72):
        finished.append((hour, await add_completed(store)))
        await prune(store)
        clock.advance(HOUR)
    await prune(store)
    kept = {job.id for job in await store.list_jobs(JobFilter(), limit=1000)}

    # 72 hours have passed: those of the last 23 hours must be there, those of 25 and more be gone.
    assert {job_id for hour, job_id in finished if hour > 72 - 24} <= kept
    assert not {job_id for hour, job_id in finished if hour < 72 - 25} & kept


async def test_pruning_that_was_left_undone_for_days_is_made_up_for(
    store: Store, clock: FakeClock
) -> None:
    old: list[str] = []
    recent: list[str] = []
    for hour in range(5 * 24):
        (old if hour < 4 * 24 - 2 else recent).append(await add_completed(store))
        clock.advance(HOUR)
    await prune(store)

    assert await store.get_jobs(old) == {}
    assert len(await store.get_jobs(recent[3:])) == len(recent[3:])


async def test_prune_takes_about_as_many_as_it_is_asked_for(store: Store, clock: FakeClock) -> None:
    await add_many(store, 30, retention_seconds=HOUR)
    await accept(store, *(completion(job) for job in await claim(store, 30)))
    clock.advance(HOUR + SLACK)
    first = await store.prune_jobs(10)

    assert first.jobs >= 10
    assert first.jobs + (await prune(store, limit=10)).jobs == 30
    assert (await prune(store)).jobs == 0


async def test_several_may_prune_at_once(store: Store, clock: FakeClock, open_another: Any) -> None:
    others = [store, *[await open_another() for _ in range(3)]]
    group = await make_group(store)
    await add_many(store, 100, group=group.id)
    await add_many(store, 150)
    await add_many(store, 150, retention_seconds=2 * DAY)
    for job in await claim(store, 400):
        await accept(store, completion(job))
    clock.advance(2 * DAY + SLACK)
    archived: list[str] = []

    def archive(jobs: Any) -> None:
        archived.extend(job.id for job in jobs)

    pruned = await asyncio.gather(*(prune(other, limit=20, archive=archive) for other in others))
    await prune(store)

    assert sum(one.jobs for one in pruned) == 400
    assert sum(one.groups for one in pruned) == 1
    assert len(archived) == len(set(archived)) == 400
    assert await tallied(store) == await counted(store) == {}


async def test_work_goes_on_while_others_prune(
    store: Store, clock: FakeClock, open_another: Any
) -> None:
    other = await open_another()
    await add_many(store, 300)
    await accept(store, *(completion(job) for job in await claim(store, 300)))
    clock.advance(DAY + SLACK)

    async def work() -> list[str]:
        done = []
        for _ in range(20):
            await add_many(store, 5)
            jobs = await claim(store, 5)
            await accept(store, *(completion(job) for job in jobs))
            done += [job.id for job in jobs]
        return done

    done, *_ = await asyncio.gather(work(), prune(other, limit=20), prune(store, limit=30))

    assert len(await store.get_jobs(done)) == 100
    assert await tallied(store) == {"default": {JobState.COMPLETED: 100}}


# Archive


async def test_archive_is_given_everything_before_it_is_removed(
    store: Store, clock: FakeClock
) -> None:
    job = await add_and_claim(store, payload={"a": 1}, tags=("t",), headers={"h": 2})
    await fail(store, job, "first")
    await store.retry_jobs([job.id])
    await complete(store, await claim_one(store), {"done": BIG})
    clock.advance(DAY + SLACK)
    seen: list[Job] = []

    def archive(jobs: Any) -> None:
        seen.extend(jobs)

    await prune(store, archive=archive)
    [kept] = seen

    assert (kept.id, kept.payload, kept.result) == (job.id, {"a": 1}, {"done": BIG})
    assert (kept.tags, kept.headers) == (("t",), {"h": 2})
    assert [line.message for line in kept.errors] == ["first"]


async def test_members_of_a_group_are_archived_too(store: Store, clock: FakeClock) -> None:
    group = await make_group(store)
    job_id = await add_completed(store, group=group.id)
    clock.advance(DAY)
    seen: list[str] = []
    await prune(store, archive=lambda jobs: seen.extend(job.id for job in jobs))

    assert seen == [job_id]


async def test_nothing_is_removed_when_the_archive_cannot_be_written(
    store: Store, clock: FakeClock
) -> None:
    job_ids = [await add_completed(store), await add_completed(store, retention_seconds=2 * DAY)]
    group = await make_group(store)
    job_ids.append(await add_completed(store, group=group.id))
    clock.advance(3 * DAY)

    def archive(jobs: Any) -> None:
        raise ArchiveFailed("no space left on device")

    with pytest.raises(ArchiveFailed, match="no space"):
        await prune(store, archive=archive)

    assert len(await store.get_jobs(job_ids)) == 3
    assert await store.get_group(group.id) is not None
    assert (await prune(store)).jobs == 3


# Room


@pytest.mark.requires("dialects")
async def test_disk_usage_grows_with_what_is_stored(store: Store) -> None:
    before = await store.measure_disk()
    job = await add_and_claim(store, payload="p" * 300_000)
    await complete(store, job, BIG)
    after = await store.measure_disk()

    assert after.used > before.used
    assert after.blobs > before.blobs
    assert after.payloads > before.payloads
    assert after.total >= after.used
