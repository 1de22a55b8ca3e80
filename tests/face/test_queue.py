"""The public face on every store: what an application developer writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from windrow import Cancel, Done, Fail, NewJob, Queue, Retry, Snooze
from windrow.clock import FakeClock
from windrow.errors import (
    DuplicateJob,
    GroupEnded,
    GroupNotFound,
    IllegalTransition,
    InvalidJob,
    JobNotFound,
    LeaseLost,
    QueueError,
)
from windrow.queue.job import JobState


async def test_an_enqueued_job_can_be_read_back(queue: Queue) -> None:
    made = await queue.enqueue(
        "thumbnail",
        {"url": "https://example.org/猫.png"},
        queue="images",
        priority=-3,
        tenant="acme",
        headers={"trace": "1"},
        tags=["a", "b"],
        max_attempts=7,
        lease=90,
    )
    read = await queue.get(made.id)
    assert read.payload == made.payload == {"url": "https://example.org/猫.png"}
    same = "seq queue kind state priority tenant headers tags max_attempts lease_seconds"
    for name in same.split():
        assert getattr(read, name) == getattr(made, name), name
    assert (read.state, read.created_at) == (JobState.READY, made.created_at)


async def test_a_claimed_job_runs_from_payload_to_result(queue: Queue) -> None:
    made = await queue.enqueue("thumbnail", {"n": 1}, queue="images")
    lease = await queue.claim(["images"], limit=5, seconds=30, worker="mine")
    [job] = lease.jobs
    assert (job.id, job.payload, job.worker) == (made.id, {"n": 1}, "mine")
    await lease.complete(job, {"ok": True})
    done = await queue.get(made.id)
    assert (done.state, done.result, done.runs) == (JobState.COMPLETED, {"ok": True}, 1)


async def test_an_empty_claim_is_false(queue: Queue) -> None:
    assert not await queue.claim("nothing here")


async def test_n1_a_stale_lease_changes_nothing(queue: Queue, clock: FakeClock) -> None:
    await queue.enqueue("work")
    stale = await queue.claim(seconds=30)
    [job] = stale.jobs
    clock.advance(31)
    fresh = await queue.claim(seconds=30)
    assert [again.id for again in fresh.jobs] == [job.id]
    with pytest.raises(LeaseLost):
        await stale.progress(job, 50)
    with pytest.raises(LeaseLost, match=job.id):
        await stale.renew()
    for outcome in (Done("too late"), Retry("late"), Snooze(1), Fail("late"), Cancel()):
        with pytest.raises(LeaseLost):
            await stale.finish(job, outcome)
    read = await queue.get(job.id)
    assert (read.state, read.result, read.crashes, read.progress) == (
        JobState.ACTIVE,
        None,
        1,
        None,
    )


async def test_u7_a_job_fails_for_good_after_its_last_attempt(
    queue: Queue, clock: FakeClock
) -> None:
    made = await queue.enqueue("work", max_attempts=4)
    for _ in range(4):
        [job] = (lease := await queue.claim()).jobs
        await lease.fail(job, ValueError("no such page"), retry_in=60)
        clock.advance(61)
    assert not await queue.claim()
    failed = await queue.get(made.id)
    assert (failed.state, failed.attempts, failed.crashes) == (JobState.FAILED, 4, 0)
    assert failed.error == "ValueError: no such page"
    assert failed.finished_at is not None
    assert [line.reason for line in failed.errors] == ["attempt"] * 4


async def test_a5_a_job_fails_for_good_after_its_last_crash(queue: Queue, clock: FakeClock) -> None:
    made = await queue.enqueue("work", max_crashes=3)
    for _ in range(3):
        assert await queue.claim(seconds=60)
        clock.advance(61)
        await queue.tend()
    failed = await queue.get(made.id)
    assert (failed.state, failed.attempts, failed.crashes) == (JobState.FAILED, 0, 3)
    assert "lease ran out" in (failed.error or "")
    assert failed.finished_at is not None


async def test_j3_back_off_doubles_from_thirty_seconds(queue: Queue, clock: FakeClock) -> None:
    await queue.enqueue("work", max_attempts=10)
    waits = []
    for _ in range(6):
        [job] = (lease := await queue.claim()).jobs
        await lease.fail(job, "boom", retry_in="processing")
        waited = (await queue.get(job.id)).run_at - clock.now()
        waits.append(waited.total_seconds())
        clock.advance(601)
    assert waits == [30, 60, 120, 240, 480, 600]


@pytest.mark.parametrize(
    ("outcome", "state", "attempts"),
    [
        (Done(1), JobState.COMPLETED, 0),
        (Retry("boom", after=5), JobState.SCHEDULED, 1),
        (Snooze(5), JobState.SCHEDULED, 0),
        (Snooze(0), JobState.READY, 0),
        (Fail("broken"), JobState.FAILED, 1),
        (Cancel("why bother"), JobState.CANCELLED, 0),
    ],
)
async def test_every_outcome_leads_to_its_state(
    queue: Queue, outcome: Done, state: JobState, attempts: int
) -> None:
    made = await queue.enqueue("work")
    [job] = (lease := await queue.claim()).jobs
    await lease.finish(job, outcome)
    read = await queue.get(made.id)
    assert (read.state, read.attempts) == (state, attempts)


async def test_many_runs_end_in_one_call(queue: Queue) -> None:
    await queue.enqueue_many([NewJob("work", n) for n in range(10)])
    lease = await queue.claim(limit=10)
    await lease.finish_many([(job, Done(job.payload * 2)) for job in lease.jobs])
    read = await queue.get_many([job.id for job in lease.jobs])
    assert sorted(job.result for job in read.values()) == [n * 2 for n in range(10)]


async def test_follow_ups_are_enqueued_with_the_completion(queue: Queue) -> None:
    await queue.enqueue("scrape")
    [job] = (lease := await queue.claim()).jobs
    await lease.complete(job, then=[NewJob("enrich", {"from": job.id}), NewJob("index")])
    assert [found.kind for found in await queue.list(state="ready")] == ["index", "enrich"]


async def test_release_hands_a_job_back_unrun(queue: Queue) -> None:
    await queue.enqueue("work")
    [job] = (lease := await queue.claim()).jobs
    await lease.release(job)
    assert [again.id for again in (await queue.claim()).jobs] == [job.id]


async def test_u6_renewing_keeps_a_lease_alive(queue: Queue, clock: FakeClock) -> None:
    await queue.enqueue("work", lease=300)
    lease = await queue.claim(seconds=10)
    for _ in range(3):
        clock.advance(299)
        await lease.renew()
    assert not await queue.claim()
    clock.advance(301)
    assert await queue.claim()


async def test_renewing_for_part_of_a_second_rounds_up(queue: Queue, clock: FakeClock) -> None:
    await queue.enqueue("work")
    lease = await queue.claim(seconds=10)
    assert await lease.renew(1.2) == clock.now() + timedelta(seconds=2)
    assert await lease.renew(timedelta(seconds=90)) == clock.now() + timedelta(seconds=90)


@pytest.mark.parametrize("seconds", [0, 0.5, -1, math.inf, math.nan, "long", timedelta(0)])
async def test_renewing_for_no_time_is_refused_and_keeps_the_lease(
    queue: Queue, clock: FakeClock, seconds: Any
) -> None:
    await queue.enqueue("work")
    lease = await queue.claim(seconds=10)
    with pytest.raises(InvalidJob, match="lease"):
        await lease.renew(seconds)

    assert await lease.renew() == clock.now() + timedelta(seconds=10)


@pytest.mark.parametrize("spell", [str.upper, lambda text: text.replace("-", ""), "{{{}}}".format])
async def test_ids_are_taken_in_any_spelling(queue: Queue, spell: Callable[[str], str]) -> None:
    group = await queue.create_group(hold=True)
    made = await queue.enqueue("work", group=spell(group.id))
    odd = spell(made.id)

    assert (await queue.get(odd)).id == made.id
    assert list(await queue.get_many([odd])) == [made.id]
    assert [job.id for job in await queue.list(group=spell(group.id))] == [made.id]
    assert (await queue.pause_job(odd)).after == JobState.PAUSED
    assert (await queue.resume_job(odd)).after == JobState.READY
    assert (await queue.edit(odd, priority=9)).priority == 9
    assert (await queue.cancel(odd)).after == JobState.CANCELLED
    assert (await queue.wait(odd)).id == made.id
    assert (await queue.retry(odd)).after == JobState.READY
    assert (await queue.pause_group(spell(group.id))).is_paused
    assert (await queue.resume_group(spell(group.id))).id == group.id
    assert (await queue.delete(odd)).after is None
    assert (await queue.close_group(spell(group.id))).id == group.id
    assert (await queue.group(spell(group.id))).id == group.id


async def test_progress_never_goes_back(queue: Queue) -> None:
    made = await queue.enqueue("work")
    [job] = (lease := await queue.claim()).jobs
    await lease.progress(job, 40, "reading", pages=4)
    await lease.progress(job, 10, "still reading", errors=1)
    progress = (await queue.get(made.id)).progress
    assert progress is not None
    assert (progress.percent, progress.message) == (40, "still reading")
    assert progress.counters == {"pages": 4, "errors": 1}


async def test_rejecting_names_the_job_that_holds_the_key(queue: Queue) -> None:
    first = await queue.enqueue("work", unique="k")
    with pytest.raises(DuplicateJob) as caught:
        await queue.enqueue("work", unique="k", on_conflict="reject")
    assert caught.value.existing == first.id
    assert (await queue.enqueue("work", unique="k")).id == first.id


async def test_bulk_gives_an_outcome_for_each_row(queue: Queue) -> None:
    first = await queue.enqueue("work", unique="k")
    outcomes = await queue.enqueue_many(
        [
            NewJob("work", unique="k"),
            NewJob("work", unique="k", on_conflict="reject"),
            NewJob("work", unique="k", on_conflict="replace"),
            NewJob("work", unique="other"),
            NewJob("work", unique="other"),
        ]
    )
    assert [one.outcome for one in outcomes] == [
        "existing",
        "rejected",
        "replaced",
        "inserted",
        "existing",
    ]
    assert {one.id for one in outcomes[:3]} == {first.id}


async def test_an_id_of_ones_own_makes_enqueue_repeatable(queue: Queue) -> None:
    mine = "0190a0b0-0000-7000-8000-0000000000aa"
    first = await queue.enqueue("work", 1, id=mine)
    again = await queue.enqueue("work", 2, id=mine)
    assert (first.id, again.id, again.payload) == (mine, mine, 1)
    [job] = (lease := await queue.claim(limit=5)).jobs
    await lease.complete(job)
    assert (await queue.enqueue("work", 3, id=mine)).state == JobState.COMPLETED


async def test_delayed_jobs_wait_for_their_time(queue: Queue, clock: FakeClock) -> None:
    made = await queue.enqueue("work", delay=timedelta(minutes=1))
    assert made.state == JobState.SCHEDULED
    assert not await queue.claim()
    clock.advance(61)
    assert [job.id for job in (await queue.claim()).jobs] == [made.id]


async def test_a4_a_job_can_be_paused_resumed_and_cancelled(queue: Queue) -> None:
    made = await queue.enqueue("work")
    await queue.pause_job(made.id)
    assert not await queue.claim()
    await queue.resume_job(made.id)
    lease = await queue.claim()
    await queue.cancel(made.id, reason="changed my mind")
    await lease.renew()
    assert dict(lease.stopping) == {made.id: JobState.CANCELLED}
    await lease.release(lease.jobs[0])
    ended = await queue.get(made.id)
    assert (ended.state, ended.error) == (JobState.CANCELLED, "changed my mind")
    with pytest.raises(IllegalTransition, match="is cancelled; it cannot be cancelled"):
        await queue.cancel(made.id)


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(queue: Queue) -> None:
    await queue.enqueue("work", queue="mail")
    await queue.pause("mail")
    assert not await queue.claim(["mail"])
    assert [info.is_paused for info in await queue.queues()] == [True]
    await queue.resume("mail")
    assert await queue.claim(["mail"])


async def test_failed_jobs_are_listed_by_error_edited_and_retried(queue: Queue) -> None:
    await queue.enqueue_many([NewJob("work", {"n": n}) for n in range(5)])
    lease = await queue.claim(limit=5)
    for job in lease.jobs:
        reason = "timeout" if job.payload["n"] else "bad payload"
        await lease.fail(job, reason, retry=False)
    assert [(line.error, line.count) for line in await queue.errors()] == [
        ("timeout", 4),
        ("bad payload", 1),
    ]
    assert await queue.retry_all(error="timeout") == 4
    [bad] = await queue.list(state="failed")
    await queue.edit(bad.id, payload={"n": 100}, priority=9)
    await queue.retry(bad.id)
    first = (await queue.claim()).jobs[0]
    assert (first.id, first.payload, first.attempts) == (bad.id, {"n": 100}, 0)


async def test_listing_pages_through_everything_newest_first(queue: Queue) -> None:
    made = [job.id for job in await queue.enqueue_many([NewJob("work") for _ in range(25)])]
    seen: list[str] = []
    after = None
    while page := await queue.list(after=after, limit=10):
        seen += [job.id for job in page]
        after = page[-1].id
    assert seen == made[::-1]


async def test_n5_a_group_ends_once_and_then_its_finish_job_runs(queue: Queue) -> None:
    group = await queue.create_group(then=NewJob("report", queue="reports"))
    await queue.enqueue_many([NewJob("page", group=group.id) for _ in range(3)])
    lease = await queue.claim(limit=3, kinds=["page"])
    for job in lease.jobs:
        assert not await queue.claim(["reports"])
        await lease.complete(job)
    ended = await queue.group(group.id)
    assert (ended.state, dict(ended.counts)) == ("completed", {JobState.COMPLETED: 3})
    assert [job.kind for job in (await queue.claim(["reports"], limit=5)).jobs] == ["report"]
    with pytest.raises(GroupEnded):
        await queue.enqueue("page", group=group.id)


async def test_a_root_waits_for_its_group_and_carries_the_progress(queue: Queue) -> None:
    await queue.enqueue("crawl", queue="crawls")
    [root] = (lease := await queue.claim(["crawls"])).jobs
    group = await queue.create_group(root=root)
    assert (await queue.create_group(root=root)).id == group.id
    pages = [NewJob("page", group=group.id) for _ in range(2)]
    await lease.complete(root, {"started": True}, then=pages)
    assert (await queue.get(root.id)).state == JobState.WAITING
    for percent in (50, 100):
        [page] = (pages_lease := await queue.claim()).jobs
        await pages_lease.complete(page)
        progress = (await queue.get(root.id)).progress
        assert progress is not None
        assert progress.percent == percent
    done = await queue.get(root.id)
    assert (done.state, done.result) == (JobState.COMPLETED, {"started": True})


async def test_missing_things_are_named(queue: Queue) -> None:
    for missing in ("0190a0b0-0000-7000-8000-000000000000", "not a uuid"):
        with pytest.raises(JobNotFound, match=missing):
            await queue.get(missing)
        with pytest.raises(JobNotFound):
            await queue.cancel(missing)
        with pytest.raises(GroupNotFound):
            await queue.group(missing)
    with pytest.raises(InvalidJob, match="'broken' is not a valid JobState; the states are"):
        await queue.list(state="broken")
    with pytest.raises(InvalidJob, match="name at least one thing to change"):
        await queue.edit((await queue.enqueue("work")).id)


async def test_job_tx_commits_with_the_completion(queue: Queue, store_name: str) -> None:
    await queue.enqueue("work")
    [job] = (lease := await queue.claim()).jobs
    await job.tx.execute("CREATE TABLE mine (n integer)")
    mark = "$1" if store_name == "postgres" else "?"
    await job.tx.execute(f"INSERT INTO mine VALUES ({mark})", 7)
    await lease.complete(job)
    await queue.enqueue("work")
    [job] = (lease := await queue.claim()).jobs
    await job.tx.execute(f"INSERT INTO mine VALUES ({mark})", 8)
    await lease.fail(job, "boom", retry=False)
    await queue.enqueue("work")
    [job] = (lease := await queue.claim()).jobs
    await job.tx.execute("CREATE UNIQUE INDEX only_one ON mine (n)")

    async def insert_another_seven() -> None:
        # Postgres refuses the statement at once, SQLite when it is run with the completion.
        await job.tx.execute(f"INSERT INTO mine VALUES ({mark})", 7)
        await lease.complete(job)

    with pytest.raises(QueueError):
        await insert_another_seven()
    assert (await queue.get(job.id)).state == JobState.ACTIVE
    await lease.fail(job, "no room for another 7", retry=False)
    await queue.enqueue("work")
    [job] = (lease := await queue.claim()).jobs
    await job.tx.execute(f"INSERT INTO mine VALUES ({mark})", 8)
    await lease.complete(job)
    assert (await queue.get(job.id)).state == JobState.COMPLETED
