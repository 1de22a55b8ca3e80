"""Groups: counted, ended and followed by their finish job exactly once (N5)."""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec
import pytest

from tests.builders import (
    UNKNOWN_ID,
    accept,
    add,
    add_and_claim,
    add_many,
    attempt,
    boom,
    cancellation,
    claim,
    claim_one,
    complete,
    completion,
    exists,
    fail,
    failure,
    get,
    get_group,
    ids,
    insert,
    make_group,
    row,
    snooze,
    state,
    states,
)
from windrow.clock import FakeClock
from windrow.errors import GroupEnded, GroupNotFound, JobNotFound
from windrow.ids import new_id
from windrow.queue.job import FINAL, Job, JobState
from windrow.queue.records import Group, GroupRow
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("groups")


async def start_crawl(store: Store, **fields) -> tuple[Job, Group]:
    """A running root job and its group."""
    root = await add_and_claim(store, "crawl")
    return root, await make_group(store, root=root.id, **fields)


async def start_members(store: Store, group: Group, count: int, **fields) -> list[Job]:
    await add_many(store, count, group=group.id, queue="members", **fields)
    return await claim(store, count, "members", seconds=600)


async def test_new_group_is_empty_and_active(store: Store, clock: FakeClock) -> None:
    new = GroupRow(id=new_id(), tenant="acme")
    made = await store.create_group(new)

    assert (made.id, made.state, made.tenant, made.root) == (new.id, "active", "acme", None)
    assert (made.pending, made.counts, made.is_paused, made.is_open) == (0, {}, False, False)
    assert (made.created_at, made.ended_at) == (clock.now(), None)
    assert await store.get_group(made.id) == made


async def test_group_that_is_asked_for_again_by_its_id_is_the_same(
    store: Store, open_another
) -> None:
    new = GroupRow(id=new_id(), tenant="acme", is_open=True)
    other = await open_another()
    made = await asyncio.gather(store.create_group(new), other.create_group(new))
    await store.close_group(new.id)

    again = await store.create_group(new)

    assert made[0] == made[1]
    assert (again.id, again.state) == (new.id, "completed")


@pytest.mark.parametrize("group_id", [UNKNOWN_ID, "no uuid", ""])
async def test_unknown_group_is_not_found(store: Store, group_id: str) -> None:
    assert await store.get_group(group_id) is None
    for verb in (store.close_group, store.pause_group, store.resume_group):
        with pytest.raises(GroupNotFound):
            await verb(group_id)
    with pytest.raises(GroupNotFound):
        await store.cancel_group(group_id, "why not")


async def test_members_are_counted_by_state(store: Store) -> None:
    """N5: stats per state."""
    group = await make_group(store)
    jobs = await start_members(store, group, 4)
    await accept(store, completion(jobs[0]), failure(jobs[1]), attempt(jobs[2]))
    await add(store, group=group.id, delay=60)
    found = await get_group(store, group.id)

    assert found.counts == {
        JobState.COMPLETED: 1,
        JobState.FAILED: 1,
        JobState.READY: 1,
        JobState.ACTIVE: 1,
        JobState.SCHEDULED: 1,
    }
    assert (found.pending, found.state) == (3, "active")


async def test_member_names_its_group(store: Store) -> None:
    group = await make_group(store)

    assert (await get(store, await add(store, group=group.id))).group == group.id


async def test_group_ends_with_its_last_member(store: Store, clock: FakeClock) -> None:
    """N5: completes when no member is left; at once, not polled."""
    group = await make_group(store)
    first, second = await start_members(store, group, 2)
    await complete(store, first)
    assert (await get_group(store, group.id)).state == "active"

    clock.advance(5)
    await complete(store, second)
    ended = await get_group(store, group.id)
    assert (ended.state, ended.pending, ended.ended_at) == ("completed", 0, clock.now())
    assert ended.counts == {JobState.COMPLETED: 2}


@pytest.mark.parametrize("end", [completion, failure, cancellation])
async def test_group_completes_however_its_members_end(store: Store, end) -> None:
    group = await make_group(store)
    [job] = await start_members(store, group, 1)
    await accept(store, end(job))

    assert (await get_group(store, group.id)).state == "completed"


@pytest.mark.parametrize("back", [attempt, snooze])
async def test_member_going_back_to_wait_keeps_its_group_going(store: Store, back) -> None:
    group = await make_group(store)
    [job] = await start_members(store, group, 1)
    await accept(store, back(job, 30))
    found = await get_group(store, group.id)

    assert (found.state, found.pending) == ("active", 1)


async def test_members_of_one_call_are_counted_together(store: Store) -> None:
    """One update per group however many members end."""
    one, two = await make_group(store), await make_group(store)
    jobs = await start_members(store, one, 30) + await start_members(store, two, 20)
    await accept(store, *(completion(job) for job in jobs[:45]))
    assert (await get_group(store, one.id)).state == "completed"
    assert (await get_group(store, two.id)).pending == 5

    await accept(store, *(failure(job) for job in jobs[45:]))
    assert (await get_group(store, two.id)).counts == {JobState.COMPLETED: 15, JobState.FAILED: 5}


async def test_finish_job_is_inserted_when_the_group_ends(store: Store, clock: FakeClock) -> None:
    """N5: then a finish job runs."""
    then = row("report", {"of": "crawl"}, queue="reports", priority=7)
    group = await make_group(store, then=then)
    [member] = await start_members(store, group, 1)
    assert not await exists(store, then.id)

    clock.advance(5)
    later = await insert(store)
    await complete(store, member)
    job = await get(store, then.id)
    assert (job.kind, job.payload, job.queue) == ("report", {"of": "crawl"}, "reports")
    assert (job.state, job.priority, job.created_at) == (JobState.READY, 7, clock.now())
    assert (job.group, job.seq > later.seq) == (None, True)


async def test_finish_job_keeps_its_headers_and_tags(store: Store) -> None:
    then = row("report", {"n": 1.50}, headers={"trace": [1, "ü"]}, tags=("a",))
    group = await make_group(store, then=then)
    await add(store, group=group.id)
    await complete(store, await claim_one(store))
    report = await get(store, then.id)
    assert (report.payload, report.tags) == ({"n": 1.5}, ("a",))
    assert report.headers == {"trace": [1, "ü"]}


async def test_finish_job_with_a_delay_counts_it_from_the_end(
    store: Store, clock: FakeClock
) -> None:
    then = row("report", delay=60)
    group = await make_group(store, then=then)
    clock.advance(100)
    await store.close_group(group.id)

    assert await state(store, then.id) == JobState.SCHEDULED


async def test_finish_job_is_no_member(store: Store) -> None:
    then = row("report")
    group = await make_group(store, then=then)
    await store.close_group(group.id)
    found = await get_group(store, group.id)

    assert (found.state, found.pending, found.counts) == ("completed", 0, {})
    assert ids(await claim(store, 9)) == [then.id]


async def test_concurrent_last_members_end_the_group_once(store: Store, open_another) -> None:
    """N5: the finish job exactly once."""
    other = await open_another()
    for _ in range(5):
        then = row("report", queue="reports")
        group = await make_group(store, then=then)
        jobs = await start_members(store, group, 8)
        both = zip(jobs, (store, other) * 4, strict=True)
        await asyncio.gather(*(complete(s, job) for job, s in both))

        found = await get_group(store, group.id)
        assert (found.state, found.pending, found.counts) == (
            *("completed", 0, {JobState.COMPLETED: 8}),
        )
        assert ids(await claim(store, 9, "reports")) == [then.id]


async def test_concurrent_batches_over_the_same_groups_do_not_block(
    store: Store, open_another
) -> None:
    other = await open_another()
    groups = [await make_group(store) for _ in range(6)]
    rows = [row(group=group.id) for group in groups for _ in range(4)]
    await store.insert_jobs(rows)
    jobs = await claim(store, 99)
    forward, backward = jobs[::2], jobs[1::2][::-1]
    await asyncio.gather(
        accept(store, *(completion(job) for job in forward)),
        accept(other, *(completion(job) for job in backward)),
    )

    assert {(await get_group(store, group.id)).state for group in groups} == {"completed"}


async def test_empty_group_ends_when_it_is_closed(store: Store, clock: FakeClock) -> None:
    then = row("report")
    group = await make_group(store, is_open=True, then=then)
    closed = await store.close_group(group.id)

    assert (closed.state, closed.is_open, closed.ended_at) == ("completed", False, clock.now())
    assert await exists(store, then.id)


async def test_empty_group_that_was_never_open_ends_when_closed(store: Store) -> None:
    group = await make_group(store)
    assert (await get_group(store, group.id)).state == "active"

    assert (await store.close_group(group.id)).state == "completed"


@pytest.mark.parametrize(("is_open", "after"), [(False, 100), (True, 700)])
async def test_group_that_never_has_a_member_ends_after_its_time(
    store: Store, clock: FakeClock, is_open: bool, after: int
) -> None:
    then = row("report")
    empty = await make_group(store, is_open=is_open, then=then)
    _, rooted = await start_crawl(store)
    used = await make_group(store, is_open=True)
    await add(store, group=used.id)

    clock.advance(after - 1)
    assert await store.end_empty_groups(100, 700) == 0
    clock.advance(1)
    assert await store.end_empty_groups(100, 700) == 1
    assert await store.end_empty_groups(100, 700) == 0

    assert (await get_group(store, empty.id)).state == "completed"
    assert await exists(store, then.id)
    assert {(await get_group(store, one.id)).state for one in (used, rooted)} == {"active"}


async def test_open_group_waits_to_be_closed(store: Store) -> None:
    group = await make_group(store, is_open=True)
    [job] = await start_members(store, group, 1)
    await complete(store, job)
    found = await get_group(store, group.id)
    assert (found.state, found.pending, found.is_open) == ("active", 0, True)

    await add(store, group=group.id)
    assert (await store.close_group(group.id)).state == "active"
    await complete(store, await claim_one(store))
    assert (await get_group(store, group.id)).state == "completed"


async def test_closing_twice_ends_once(store: Store, clock: FakeClock) -> None:
    then = row("report")
    group = await make_group(store, then=then)
    first = await store.close_group(group.id)
    clock.advance(5)

    assert await store.close_group(group.id) == first
    assert ids(await claim(store, 9)) == [then.id]


async def test_concurrent_closings_end_once(store: Store, open_another) -> None:
    other = await open_another()
    then = row("report")
    group = await make_group(store, then=then)
    await asyncio.gather(*(s.close_group(group.id) for s in (store, other) * 4))

    assert ids(await claim(store, 9)) == [then.id]


async def test_members_may_be_added_while_it_runs(store: Store) -> None:
    group = await make_group(store)
    [first] = await start_members(store, group, 1)
    [second] = await start_members(store, group, 1)
    await complete(store, first)
    assert (await get_group(store, group.id)).pending == 1

    await complete(store, second)
    assert (await get_group(store, group.id)).state == "completed"


async def test_ended_group_takes_no_more(store: Store) -> None:
    group = await make_group(store)
    [job] = await start_members(store, group, 1)
    await complete(store, job)
    with pytest.raises(GroupEnded):
        await add(store, group=group.id)

    assert (await get_group(store, group.id)).counts == {JobState.COMPLETED: 1}


async def test_adding_while_the_last_member_ends_is_counted_or_refused(
    store: Store, open_another
) -> None:
    other = await open_another()
    for _ in range(15):
        group = await make_group(store)
        [job] = await start_members(store, group, 1)
        added, _ = await asyncio.gather(
            insert(other, group=group.id), complete(store, job), return_exceptions=True
        )
        found = await get_group(store, group.id)

        if isinstance(added, GroupEnded):
            assert (found.state, found.pending) == ("completed", 0)
        else:
            assert not isinstance(added, BaseException)
            assert (found.state, found.pending) == ("active", 1)


async def test_root_waits_for_its_group(store: Store, clock: FakeClock) -> None:
    root, group = await start_crawl(store)
    await add(store, group=group.id)
    await complete(store, root, {"kickoff": True})
    found = await get(store, root.id)

    assert (found.state, found.root_of, found.group) == (JobState.WAITING, group.id, None)
    assert (found.finished_at, found.result) == (None, {"kickoff": True})
    assert (await get_group(store, group.id)).root == root.id


async def test_waiting_root_keeps_what_its_end_said(store: Store) -> None:
    root, _ = await start_crawl(store)
    end = completion(root, "kickoff", error=boom("two links were broken"), uses_attempt=True)
    await accept(store, end)
    found = await get(store, root.id)

    assert (found.state, found.attempts, found.result) == (JobState.WAITING, 1, "kickoff")
    assert [error.message for error in found.errors] == ["two links were broken"]


async def test_root_is_completed_when_its_group_ends(store: Store, clock: FakeClock) -> None:
    root, group = await start_crawl(store)
    [member] = await start_members(store, group, 1)
    await complete(store, root, "kickoff")
    clock.advance(30)
    await fail(store, member)
    done = await get(store, root.id)

    assert (done.state, done.finished_at, done.result) == (
        *(JobState.COMPLETED, clock.now(), "kickoff"),
    )
    assert done.expires_at is not None


async def test_root_is_not_a_member(store: Store) -> None:
    root, group = await start_crawl(store)

    assert (await get_group(store, group.id)).pending == 0
    await complete(store, root)
    assert (await get_group(store, group.id)).counts == {}


async def test_root_that_ends_after_its_group_is_completed_at_once(store: Store) -> None:
    root, group = await start_crawl(store)
    [member] = await start_members(store, group, 1)
    await complete(store, member)
    assert (await get_group(store, group.id)).state == "completed"

    await complete(store, root)
    assert await state(store, root.id) == JobState.COMPLETED


async def test_root_and_last_member_may_end_in_one_call(store: Store) -> None:
    for last in (0, 1):
        root, group = await start_crawl(store)
        [member] = await start_members(store, group, 1)
        ends = [completion(root), completion(member)]
        await accept(store, *(ends if last else ends[::-1]))

        assert await states(store, [root.id, member.id]) == [JobState.COMPLETED] * 2
        assert (await get_group(store, group.id)).state == "completed"


async def test_root_of_an_empty_group_waits_until_it_is_closed(store: Store) -> None:
    root, group = await start_crawl(store)
    await complete(store, root)
    assert await state(store, root.id) == JobState.WAITING

    await store.close_group(group.id)
    assert await state(store, root.id) == JobState.COMPLETED


async def test_group_asked_for_twice_is_the_same(store: Store) -> None:
    root, group = await start_crawl(store)
    again = await make_group(store, root=root.id, then=row("report"), is_open=True)

    assert again == group
    await store.close_group(group.id)
    assert not await claim(store, 9)


async def test_group_of_a_root_is_found_again_after_it_ended(store: Store) -> None:
    root, group = await start_crawl(store)
    await store.close_group(group.id)
    again = await make_group(store, root=root.id)

    assert (again.id, again.state) == (group.id, "completed")


async def test_root_may_be_a_job_that_has_not_started(store: Store) -> None:
    root = await add(store)
    group = await make_group(store, root=root)

    assert (await get(store, root)).root_of == group.id
    assert (await claim_one(store)).root_of == group.id


async def test_root_must_be_live(store: Store) -> None:
    done = await add_and_claim(store)
    await complete(store, done)
    for root in (done.id, new_id()):
        with pytest.raises(JobNotFound):
            await make_group(store, root=root)


async def test_root_that_goes_back_to_wait_keeps_its_group(store: Store) -> None:
    root, group = await start_crawl(store)
    await accept(store, attempt(root))
    again = await claim_one(store)
    assert (again.id, again.root_of) == (root.id, group.id)

    await complete(store, again)
    assert await state(store, root.id) == JobState.WAITING


async def test_failed_root_cancels_its_group(store: Store) -> None:
    root, group = await start_crawl(store)
    [running] = await start_members(store, group, 1)
    waiting = await add(store, group=group.id)
    await fail(store, root)
    assert await states(store, [root.id, waiting]) == [JobState.FAILED, JobState.CANCELLED]
    assert (await get(store, running.id)).stop_as == JobState.CANCELLED

    await accept(store, snooze(running))
    assert (await get_group(store, group.id)).state == "cancelled"
    assert await state(store, root.id) == JobState.FAILED


async def test_root_that_crashed_too_often_cancels_its_group(
    store: Store, clock: FakeClock
) -> None:
    root = await add_and_claim(store, max_crashes=1)
    group = await make_group(store, root=root.id)
    member = await add(store, group=group.id)
    clock.advance(61)
    await store.rescue_jobs()

    assert await states(store, [root.id, member]) == [JobState.FAILED, JobState.CANCELLED]
    assert (await get_group(store, group.id)).state == "cancelled"


async def test_member_that_crashed_too_often_is_counted(store: Store, clock: FakeClock) -> None:
    group = await make_group(store)
    await start_members(store, group, 1, max_crashes=1)
    clock.advance(601)
    await store.rescue_jobs()
    found = await get_group(store, group.id)

    assert (found.state, found.counts) == ("completed", {JobState.FAILED: 1})


async def test_cancelled_root_takes_its_group_with_it(store: Store) -> None:
    root, group = await start_crawl(store)
    [running] = await start_members(store, group, 1)
    waiting = await add(store, group=group.id)
    await complete(store, root)
    await store.cancel_jobs([root.id], "enough")

    assert await states(store, [root.id, waiting]) == [JobState.CANCELLED] * 2
    assert (await get(store, running.id)).stop_as == JobState.CANCELLED
    with pytest.raises(GroupEnded):
        await add(store, group=group.id)


async def test_cancelled_root_that_had_not_started_takes_its_group_with_it(store: Store) -> None:
    root = await add(store)
    group = await make_group(store, root=root)
    member = await add(store, group=group.id)
    await store.cancel_jobs([root], "enough")

    assert await states(store, [root, member]) == [JobState.CANCELLED] * 2
    assert (await get_group(store, group.id)).state == "cancelled"


@pytest.mark.parametrize("end", [completion, failure, cancellation, attempt, snooze])
async def test_cancelled_running_root_takes_its_group_with_it_at_once(store: Store, end) -> None:
    root, group = await start_crawl(store)
    member = await add(store, group=group.id)
    await store.cancel_jobs([root.id], "enough")

    assert (await get(store, root.id)).stop_as == JobState.CANCELLED
    assert await states(store, [root.id, member]) == [JobState.ACTIVE, JobState.CANCELLED]
    assert (await get(store, member)).error == "enough"
    assert (await get_group(store, group.id)).state == "cancelled"
    with pytest.raises(GroupEnded):
        await add(store, group=group.id)

    found = row(group=group.id)
    finished = await store.finish_jobs([msgspec.structs.replace(end(root), then=(found,))])
    assert [one.outcome for one in finished.then] == ["dropped"]
    assert not await exists(store, found.id)
    assert await state(store, root.id) in FINAL


async def test_cancelled_running_root_tells_its_running_members(store: Store) -> None:
    root, group = await start_crawl(store)
    [running] = await start_members(store, group, 1)
    await store.cancel_jobs([root.id], "enough")

    renewal = await store.extend_leases([running.lease_token or ""])
    assert renewal.stopping == {running.id: JobState.CANCELLED}
    assert (await get_group(store, group.id)).is_cancelled


async def test_group_made_by_a_root_that_was_told_to_end_is_cancelled(store: Store) -> None:
    then = row("report", queue="reports")
    root = await add_and_claim(store, "crawl")
    await store.cancel_jobs([root.id], "enough")
    made = await store.create_group(GroupRow(id=new_id(), root=root.id, is_open=True, then=then))

    assert (made.state, made.is_cancelled, made.pending) == ("cancelled", True, 0)
    assert ids(await claim(store, 9, "reports")) == [then.id]
    with pytest.raises(GroupEnded):
        await add(store, group=made.id)
    await complete(store, root)
    assert await state(store, root.id) == JobState.COMPLETED


async def test_running_root_inside_a_cancelled_group_takes_its_own_with_it(store: Store) -> None:
    outer = await make_group(store)
    [root] = await start_members(store, outer, 1)
    inner = await make_group(store, root=root.id)
    member = await add(store, group=inner.id)
    await store.cancel_group(outer.id, "enough")

    assert await state(store, member) == JobState.CANCELLED
    assert (await get_group(store, inner.id)).state == "cancelled"
    assert (await get_group(store, outer.id)).state == "active"
    await accept(store, snooze(root))
    assert (await get_group(store, outer.id)).state == "cancelled"


async def test_second_cancellation_of_a_running_job_keeps_the_first_reason(store: Store) -> None:
    group = await make_group(store)
    [member] = await start_members(store, group, 1)
    await store.cancel_jobs([member.id], "first")
    await store.cancel_jobs([member.id], "second")
    await store.cancel_group(group.id, "third")
    await accept(store, snooze(member))

    assert (await get(store, member.id)).error == "first"


async def test_cancelling_ends_waiting_members_and_tells_running_ones(store: Store) -> None:
    group = await make_group(store)
    running, done = await start_members(store, group, 2)
    await complete(store, done)
    waiting = [await add(store, group=group.id, delay=delay) for delay in (0, 60)]
    await store.pause_jobs([await add(store, group=group.id)])
    found = await store.cancel_group(group.id, "enough")

    assert (found.pending, found.ended_at) == (1, None)
    assert found.counts == {JobState.ACTIVE: 1, JobState.COMPLETED: 1, JobState.CANCELLED: 3}
    assert await states(store, waiting) == [JobState.CANCELLED] * 2
    assert (await get(store, waiting[0])).error == "enough"
    renewal = await store.extend_leases([running.lease_token or ""])
    assert renewal.stopping == {running.id: JobState.CANCELLED}


async def test_group_being_cancelled_takes_no_more(store: Store) -> None:
    group = await make_group(store)
    await start_members(store, group, 1)
    await store.cancel_group(group.id, "enough")

    with pytest.raises(GroupEnded):
        await add(store, group=group.id)


@pytest.mark.parametrize("end", [completion, failure, cancellation, attempt, snooze])
async def test_cancelled_group_ends_with_its_last_running_member(
    store: Store, clock: FakeClock, end
) -> None:
    then = row("report", queue="reports")
    group = await make_group(store, then=then)
    [running] = await start_members(store, group, 1)
    await store.cancel_group(group.id, "enough")
    assert not await exists(store, then.id)

    await accept(store, end(running))
    ended = await get_group(store, group.id)
    assert (ended.state, ended.pending, ended.ended_at) == ("cancelled", 0, clock.now())
    assert ids(await claim(store, 9, "reports")) == [then.id]


async def test_cancelled_group_ends_when_its_running_member_crashes(
    store: Store, clock: FakeClock
) -> None:
    group = await make_group(store)
    [running] = await start_members(store, group, 1)
    await store.cancel_group(group.id, "enough")
    clock.advance(601)
    await store.rescue_jobs()

    assert (await get_group(store, group.id)).state == "cancelled"
    assert await state(store, running.id) == JobState.CANCELLED


async def test_cancelled_group_with_nothing_running_ends_at_once(store: Store) -> None:
    group = await make_group(store, is_open=True)
    await add(store, group=group.id)
    cancelled = await store.cancel_group(group.id, "enough")

    assert (cancelled.state, cancelled.pending) == ("cancelled", 0)
    assert cancelled.ended_at is not None


async def test_waiting_root_is_cancelled_with_its_group(store: Store, clock: FakeClock) -> None:
    root, group = await start_crawl(store)
    [running] = await start_members(store, group, 1)
    await complete(store, root)
    await store.cancel_group(group.id, "enough")
    clock.advance(3)
    await complete(store, running)
    cancelled = await get(store, root.id)

    assert (cancelled.state, cancelled.finished_at) == (JobState.CANCELLED, clock.now())


async def test_cancelling_an_ended_group_changes_nothing(store: Store) -> None:
    group = await make_group(store)
    ended = await store.close_group(group.id)

    assert await store.cancel_group(group.id, "too late") == ended


async def test_cancelling_twice_changes_nothing(store: Store) -> None:
    group = await make_group(store)
    await start_members(store, group, 1)
    first = await store.cancel_group(group.id, "enough")

    assert await store.cancel_group(group.id, "again") == first


async def test_pausing_a_group_is_a_flag(store: Store) -> None:
    """A4: pausing touches no job, and survives a restart."""
    group = await make_group(store)
    member = await add(store, group=group.id)
    paused = await store.pause_group(group.id)

    assert (paused.is_paused, paused.counts) == (True, {JobState.READY: 1})
    assert await state(store, member) == JobState.READY
    assert (await store.resume_group(group.id)).is_paused is False


async def test_running_members_of_a_paused_group_may_finish_and_end_it(store: Store) -> None:
    group = await make_group(store)
    [running] = await start_members(store, group, 1)
    await store.pause_group(group.id)
    await complete(store, running)

    assert (await get_group(store, group.id)).state == "completed"


async def test_paused_group_takes_new_members_that_wait(store: Store) -> None:
    group = await make_group(store)
    await store.pause_group(group.id)
    member = await add(store, group=group.id)
    assert await claim(store, 9) == []

    await store.resume_group(group.id)
    assert ids(await claim(store, 9)) == [member]


async def test_ending_of_an_inner_group_ends_the_outer_one(store: Store) -> None:
    """N5: a root may itself be a member."""
    outer_root, outer = await start_crawl(store)
    [inner_root] = await start_members(store, outer, 1)
    inner = await make_group(store, root=inner_root.id, then=row("report"))
    [leaf] = await start_members(store, inner, 1)
    await accept(store, completion(outer_root), completion(inner_root))
    assert (await get_group(store, outer.id)).counts == {JobState.WAITING: 1}

    await complete(store, leaf)
    assert await states(store, [inner_root.id, outer_root.id]) == [JobState.COMPLETED] * 2
    assert (await get_group(store, inner.id)).state == "completed"
    assert (await get_group(store, outer.id)).state == "completed"


async def test_deeply_nested_groups_end_in_one_go(store: Store) -> None:
    root, group = await start_crawl(store)
    roots, groups = [root.id], [group.id]
    await complete(store, root)
    for _ in range(8):
        [root] = await start_members(store, group, 1)
        group = await make_group(store, root=root.id)
        await complete(store, root)
        roots.append(root.id)
        groups.append(group.id)
    await store.close_group(group.id)

    assert set(await states(store, roots)) == {JobState.COMPLETED}
    assert {(await get_group(store, one)).state for one in groups} == {"completed"}


async def test_cancelling_the_outer_group_cancels_the_inner_one(store: Store) -> None:
    outer_root, outer = await start_crawl(store)
    [inner_root] = await start_members(store, outer, 1)
    inner = await make_group(store, root=inner_root.id)
    leaf = await add(store, group=inner.id)
    await accept(store, completion(outer_root), completion(inner_root))
    await store.cancel_group(outer.id, "enough")

    assert await states(store, [outer_root.id, inner_root.id, leaf]) == [JobState.CANCELLED] * 3
    assert (await get_group(store, outer.id)).state == "cancelled"
    assert (await get_group(store, inner.id)).state == "cancelled"


async def test_retried_member_of_an_ended_group_does_not_end_it_again(
    store: Store, clock: FakeClock
) -> None:
    then = row("report", queue="reports")
    group = await make_group(store, then=then)
    [member] = await start_members(store, group, 1)
    await fail(store, member)
    ended = await get_group(store, group.id)
    [report] = await claim(store, 9, "reports")
    await store.retry_jobs([member.id])
    again = await get_group(store, group.id)
    assert (again.pending, again.counts) == (1, {JobState.READY: 1})
    assert (again.state, again.ended_at) == ("completed", ended.ended_at)

    clock.advance(5)
    await complete(store, await claim_one(store, "members"))
    final = await get_group(store, group.id)
    assert (final.pending, final.counts) == (0, {JobState.COMPLETED: 1})
    assert final.ended_at == ended.ended_at
    assert (await claim(store, 9, "reports"), report.id) == ([], then.id)


async def test_retried_member_of_a_running_group_is_pending_again(store: Store) -> None:
    group = await make_group(store)
    failed, other = await start_members(store, group, 2)
    await fail(store, failed)
    await store.retry_jobs([failed.id])
    await complete(store, other)
    found = await get_group(store, group.id)
    assert (found.state, found.pending) == ("active", 1)

    await complete(store, await claim_one(store))
    assert (await get_group(store, group.id)).state == "completed"


async def test_cancelled_member_is_counted_and_may_end_the_group(store: Store) -> None:
    group = await make_group(store)
    member = await add(store, group=group.id)
    await store.cancel_jobs([member], "no")
    found = await get_group(store, group.id)

    assert (found.state, found.counts) == ("completed", {JobState.CANCELLED: 1})


async def test_deleted_last_member_ends_the_group(store: Store) -> None:
    then = row("report")
    group = await make_group(store, then=then)
    await store.delete_jobs([await add(store, group=group.id)])
    found = await get_group(store, group.id)

    assert (found.state, found.pending) == ("completed", 0)
    assert ids(await claim(store, 9)) == [then.id]


async def test_follower_replaced_for_its_group_is_counted(store: Store) -> None:
    """The first one is cancelled for its follower, both members of the group."""
    group = await make_group(store)
    [first] = await start_members(store, group, 1, unique="key")
    follower = await insert(store, unique="key", on_conflict="follow", group=group.id)
    await accept(store, snooze(first))
    found = await get_group(store, group.id)

    assert (found.pending, found.counts) == (1, {JobState.CANCELLED: 1, JobState.READY: 1})
    await complete(store, await claim_one(store))
    assert (await get_group(store, group.id)).state == "completed"
    assert await state(store, follower.id) == JobState.COMPLETED


async def test_root_carries_the_progress_of_its_group(store: Store) -> None:
    root, group = await start_crawl(store)
    jobs = await start_members(store, group, 3)
    await complete(store, root)
    await accept(store, completion(jobs[0]))
    progress = (await get(store, root.id)).progress
    assert progress is not None
    assert progress.percent == 33
    assert progress.counters == {"total": 3, "completed": 1, "failed": 0, "cancelled": 0}

    await accept(store, failure(jobs[1]))
    progress = (await get(store, root.id)).progress
    assert progress is not None
    assert progress.percent == 66
    assert progress.counters == {"total": 3, "completed": 1, "failed": 1, "cancelled": 0}


async def test_progress_of_a_root_never_goes_back(store: Store) -> None:
    root, group = await start_crawl(store)
    [first] = await start_members(store, group, 1)
    more = await start_members(store, group, 1)
    await complete(store, first)
    more += await start_members(store, group, 8)
    await complete(store, more[0])
    progress = (await get(store, root.id)).progress

    assert progress is not None
    assert (progress.percent, progress.counters["total"]) == (50, 10)


async def test_root_of_an_ended_group_is_at_a_hundred_percent(store: Store) -> None:
    root, group = await start_crawl(store)
    jobs = await start_members(store, group, 7)
    await complete(store, root)
    await accept(store, *(completion(job) for job in jobs))
    progress = (await get(store, root.id)).progress

    assert progress is not None
    assert progress.percent == 100


async def test_inserts_of_one_call_may_go_to_several_groups(store: Store) -> None:
    groups = [await make_group(store) for _ in range(3)]
    rows = [row(group=groups[n % 3].id) for n in range(10)]
    await store.insert_jobs([*rows, row()])

    assert [(await get_group(store, g.id)).pending for g in groups] == [4, 3, 3]


async def test_members_are_listed_in_the_order_in_which_they_ended(
    store: Store, clock: FakeClock
) -> None:
    group = (await make_group(store)).id
    jobs = [await add(store, group=group) for _ in range(6)]
    await add(store, "other", group=group)
    running = {job.id: job for job in await claim(store, 7)}
    order = [jobs[n] for n in (3, 0, 5, 1)]
    for job_id in order:
        clock.advance(1)
        await complete(store, running[job_id])
    await fail(store, running[jobs[2]])
    await complete(store, next(job for job in running.values() if job.kind == "other"))
    listed = partial(store.list_ended, group, "work", JobState.COMPLETED)

    assert await listed() == order
    assert await listed(skip=1, limit=2) == order[1:3]
    assert await listed(after=order[0], limit=2) == order[1:3]
    assert await listed(after=order[1], skip=1) == order[3:]
    assert await listed(after=order[-1]) == []
    assert await store.list_ended(group, "work", JobState.FAILED) == [jobs[2]]
    assert await store.list_ended(UNKNOWN_ID, "work", JobState.COMPLETED) == []


async def test_a_group_is_looked_at_with_its_root_and_members_that_are_done(store: Store) -> None:
    root = await add(store)
    await claim(store)
    group = (await make_group(store, root=root)).id
    jobs = [await add(store, group=group) for _ in range(3)]
    for job in await claim(store, 2):
        await complete(store, job)

    look = await store.look_at_group(group, root, "work", skip=1, limit=5)
    nothing = await store.look_at_group(UNKNOWN_ID, UNKNOWN_ID, "work")

    assert look.root is not None
    assert (look.root.id, look.group) == (root, await store.get_group(group))
    assert [(job.id, job.state) for job in look.ended] == [(jobs[1], JobState.COMPLETED)]
    assert (nothing.root, nothing.group, list(nothing.ended)) == (None, None, [])


async def test_group_that_is_held_open_ends_with_a_root_that_crashed_too_often(
    store: Store, clock: FakeClock
) -> None:
    root = await add_and_claim(store, "crawl", max_crashes=1)
    group = await make_group(store, root=root.id, is_open=True, then=row("finish"))
    member = await add(store, group=group.id)
    clock.advance(61)
    await store.rescue_jobs()

    ended = await get_group(store, group.id)
    assert (ended.state, ended.pending, ended.ended_at) == ("cancelled", 0, clock.now())
    assert (await state(store, root.id), await state(store, member)) == ("failed", "cancelled")
    assert (await claim_one(store)).kind == "finish"
