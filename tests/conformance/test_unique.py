"""Unique keys: one live job per key, plus one follower while it runs (U4)."""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import (
    accept,
    add,
    add_and_claim,
    attempt,
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
)
from windrow.clock import FakeClock
from windrow.errors import InvalidJob
from windrow.queue.job import JobState
from windrow.queue.records import Finish, Inserted
from windrow.queue.store import Store

KEY = "file:docs:0123456789abcdef"


async def follow(store: Store, kind: str = "follower", **fields) -> Inserted:
    return await insert(store, kind, unique=KEY, on_conflict="follow", **fields)


async def test_duplicate_returns_the_existing_job(store: Store) -> None:
    """U4: a duplicate returns the existing id."""
    first = await insert(store, "old", unique=KEY)
    again = await insert(store, "new", unique=KEY)

    assert (again.id, again.seq, again.outcome) == (first.id, first.seq, "existing")
    assert (await get(store, first.id)).kind == "old"
    assert ids(await claim(store, 9)) == [first.id]


async def test_reject_names_the_holder(store: Store) -> None:
    first = await insert(store, unique=KEY)
    again = await insert(store, unique=KEY, on_conflict="reject")

    assert (again.id, again.outcome) == (first.id, "rejected")


@pytest.mark.requires("replaces")
@pytest.mark.parametrize("mode", ["return", "reject", "replace", "follow"])
async def test_first_job_of_a_key_is_inserted_in_every_mode(store: Store, mode: str) -> None:
    inserted = await insert(store, unique=KEY, on_conflict=mode)

    assert (inserted.outcome, inserted.state) == ("inserted", JobState.READY)


async def test_jobs_without_a_key_never_collide(store: Store) -> None:
    assert await add(store) != await add(store)


async def test_key_is_compared_exactly(store: Store) -> None:
    for key in ("a", "A", "a ", "á", "a\u0301", "ａ"):
        await add(store, unique=key)

    assert len(await claim(store, 99)) == 6


async def test_key_belongs_to_its_tenant(store: Store) -> None:
    for tenant in (None, "acme", "umbrella"):
        await add(store, unique=KEY, tenant=tenant)
    again = [await insert(store, unique=KEY, tenant=tenant) for tenant in (None, "acme")]

    assert [one.outcome for one in again] == ["existing"] * 2
    assert len({one.id for one in again}) == 2


@pytest.mark.requires("replaces")
async def test_key_is_shared_by_all_queues_and_kinds(store: Store) -> None:
    first = await insert(store, "a", unique=KEY, queue="one")

    assert (await insert(store, "b", unique=KEY, queue="two")).id == first.id


@pytest.mark.parametrize("end", [completion, failure, cancellation])
async def test_finished_job_frees_its_key(store: Store, end) -> None:
    """U4: finished work can be done again."""
    job = await add_and_claim(store, unique=KEY)
    await accept(store, end(job))

    assert await add(store, unique=KEY) != job.id


async def test_deleted_job_frees_its_key(store: Store) -> None:
    await store.delete_jobs([await add(store, unique=KEY)])

    await add(store, unique=KEY)


async def test_collisions_within_one_batch_are_told_row_by_row(store: Store) -> None:
    rows = [row(unique="a"), row(unique="b"), row(unique="a"), row(), row(unique="b")]
    rows.append(row(unique="a", on_conflict="reject"))
    inserted = await store.insert_jobs(rows)

    assert [one.outcome for one in inserted] == [
        *("inserted", "inserted", "existing", "inserted", "existing", "rejected")
    ]
    assert inserted[2].id == inserted[5].id == rows[0].id
    assert inserted[4].id == rows[1].id


@pytest.mark.requires("replaces")
async def test_later_row_of_a_batch_replaces_an_earlier_one(store: Store) -> None:
    rows = [row("a", unique=KEY), row("b", unique=KEY, on_conflict="replace")]
    rows.append(row("c", unique=KEY, on_conflict="follow"))
    inserted = await store.insert_jobs(rows)

    assert [one.outcome for one in inserted] == ["inserted", "replaced", "replaced"]
    assert {one.id for one in inserted} == {rows[0].id}
    assert (await get(store, rows[0].id)).kind == "c"


async def test_replace_takes_the_new_contents_in_the_old_place(
    store: Store, clock: FakeClock
) -> None:
    """U4: a newer operation on the same key (ingest, then delete) replaces the waiting one."""
    first = await insert(store, "ingest", {"v": 1}, unique=KEY, tags=("old",), headers={"a": 1})
    clock.advance(5)
    new = {"queue": "other", "priority": 9, "tags": ("new",), "max_attempts": 2, "max_crashes": 3}
    again = await insert(
        store, "delete", {"v": 2}, unique=KEY, on_conflict="replace", lease_seconds=7, **new
    )
    job = await get(store, first.id)

    assert (again.outcome, again.id, again.seq) == ("replaced", first.id, first.seq)
    assert (job.kind, job.payload, job.headers, job.tags) == ("delete", {"v": 2}, {}, ("new",))
    assert (job.queue, job.priority, job.max_attempts, job.max_crashes) == ("other", 9, 2, 3)
    assert (job.lease_seconds, job.created_at, job.seq) == (7, first.created_at, first.seq)


@pytest.mark.requires("replaces")
async def test_replace_moves_the_job_in_time(store: Store) -> None:
    first = await insert(store, unique=KEY)
    later = await insert(store, unique=KEY, on_conflict="replace", delay=60)
    sooner = await insert(store, unique=KEY, on_conflict="replace")

    assert (later.state, sooner.state) == (JobState.SCHEDULED, JobState.READY)
    assert sooner.run_at == first.run_at
    assert await state(store, first.id) == JobState.READY


@pytest.mark.requires("replaces")
async def test_replaced_job_starts_with_no_attempts_and_keeps_its_history(store: Store) -> None:
    job = await add_and_claim(store, unique=KEY)
    await accept(store, attempt(job))
    await insert(store, unique=KEY, on_conflict="replace")
    replaced = await get(store, job.id)

    assert (replaced.attempts, replaced.crashes) == (0, 0)
    assert [error.message for error in replaced.errors] == ["boom"]


@pytest.mark.requires("edits")
@pytest.mark.parametrize(("delay", "after"), [(0, JobState.READY), (60, JobState.SCHEDULED)])
async def test_replace_gives_a_paused_job_the_state_of_the_new_one(
    store: Store, delay: float, after: JobState
) -> None:
    """What a person enqueues now is meant to run: the pause was of the old contents."""
    job_id = await add(store, unique=KEY)
    await store.pause_jobs([job_id])
    again = await insert(store, unique=KEY, on_conflict="replace", delay=delay)

    assert (again.outcome, again.state, await state(store, job_id)) == ("replaced", after, after)


@pytest.mark.requires("replaces")
async def test_replace_leaves_a_running_job_alone(store: Store) -> None:
    job = await add_and_claim(store, "old", unique=KEY)
    again = await insert(store, "new", unique=KEY, on_conflict="replace")

    assert (again.outcome, again.id, again.state) == ("existing", job.id, JobState.ACTIVE)
    assert (await get(store, job.id)).kind == "old"
    await complete(store, job)


@pytest.mark.requires("groups")
async def test_replace_leaves_a_waiting_root_alone(store: Store) -> None:
    job = await add_and_claim(store, unique=KEY)
    await make_group(store, root=job.id, is_open=True)
    await complete(store, job)
    again = await insert(store, unique=KEY, on_conflict="replace")

    assert (again.outcome, again.state) == ("existing", JobState.WAITING)


@pytest.mark.requires("groups")
@pytest.mark.parametrize("mode", ["replace", "follow"])
async def test_replacing_by_a_job_of_another_group_is_refused(store: Store, mode) -> None:
    first = await add(store, "old", unique=KEY, group=(await make_group(store)).id)
    good = row()
    with pytest.raises(InvalidJob):
        await store.insert_jobs([good, row("new", unique=KEY, on_conflict=mode)])

    assert (await get(store, first)).kind == "old"
    assert not await exists(store, good.id)


@pytest.mark.requires("groups")
async def test_existing_member_is_not_counted_again(store: Store) -> None:
    group = await make_group(store)
    for mode in ("return", "reject", "replace", "follow"):
        await insert(store, unique=KEY, group=group.id, on_conflict=mode)

    assert (await get_group(store, group.id)).pending == 1


@pytest.mark.requires("replaces")
async def test_follower_is_held_while_the_first_runs(store: Store) -> None:
    """U4: work arriving while the same key is running is not lost."""
    job = await add_and_claim(store, unique=KEY)
    follower = await follow(store)

    assert (follower.outcome, follower.state) == ("inserted", JobState.HELD)
    assert follower.id != job.id
    assert await claim(store, 9) == []


@pytest.mark.requires("replaces")
async def test_follow_replaces_a_holder_that_has_not_started(store: Store) -> None:
    first = await add(store, "old", unique=KEY)
    again = await follow(store, "new")

    assert (again.outcome, again.id) == ("replaced", first)
    assert (await get(store, first)).kind == "new"


@pytest.mark.requires("replaces")
async def test_newer_follower_replaces_the_waiting_one(store: Store) -> None:
    """U4: one running and one waiting; a newer one replaces the waiting one."""
    job = await add_and_claim(store, unique=KEY)
    first = await follow(store, "ingest")
    second = await follow(store, "delete", priority=9)
    follower = await get(store, first.id)

    assert (second.outcome, second.id, second.state) == ("replaced", first.id, JobState.HELD)
    assert (follower.kind, follower.priority, follower.state) == ("delete", 9, JobState.HELD)
    await complete(store, job)


@pytest.mark.requires("groups")
async def test_follow_behind_a_waiting_root(store: Store) -> None:
    job = await add_and_claim(store, unique=KEY)
    group = await make_group(store, root=job.id, is_open=True)
    await complete(store, job)
    follower = await follow(store)
    assert follower.state == JobState.HELD

    await store.close_group(group.id)
    assert await state(store, job.id) == JobState.COMPLETED
    assert await state(store, follower.id) == JobState.READY


@pytest.mark.requires("replaces")
@pytest.mark.parametrize("end", [completion, failure, cancellation])
async def test_follower_takes_the_place_when_the_first_ends(store: Store, end) -> None:
    """U4"""
    job = await add_and_claim(store, unique=KEY)
    follower = await follow(store)
    await accept(store, end(job))

    assert ids(await claim(store, 9)) == [follower.id]


@pytest.mark.requires("replaces")
async def test_follower_that_took_the_place_holds_the_key(store: Store) -> None:
    job = await add_and_claim(store, unique=KEY)
    follower = await follow(store)
    await complete(store, job)

    assert (await insert(store, unique=KEY)).id == follower.id
    await claim_one(store)
    assert (await follow(store)).state == JobState.HELD


async def test_follower_not_yet_due_is_scheduled_when_it_takes_the_place(
    store: Store, clock: FakeClock
) -> None:
    job = await add_and_claim(store, unique=KEY)
    follower = await follow(store, delay=100)
    clock.advance(40)
    await complete(store, job)
    assert await state(store, follower.id) == JobState.SCHEDULED

    clock.advance(60)
    await store.stage_jobs()
    assert await state(store, follower.id) == JobState.READY


async def test_follower_that_became_due_meanwhile_is_ready(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store, unique=KEY)
    follower = await follow(store, delay=10)
    clock.advance(20)
    await complete(store, job)

    assert await state(store, follower.id) == JobState.READY


async def test_due_follower_is_not_staged_while_the_first_runs(
    store: Store, clock: FakeClock
) -> None:
    await add_and_claim(store, unique=KEY)
    follower = await follow(store, delay=10)
    clock.advance(20)

    assert await store.stage_jobs() == 0
    assert await state(store, follower.id) == JobState.HELD


@pytest.mark.requires("replaces")
@pytest.mark.parametrize("back", [attempt, snooze])
@pytest.mark.parametrize("delay", [0.0, 30.0])
async def test_first_going_back_to_wait_is_cancelled_for_its_follower(
    store: Store, back, delay: float
) -> None:
    job = await add_and_claim(store, unique=KEY)
    follower = await follow(store)
    await accept(store, back(job, delay))
    first = await get(store, job.id)

    assert (first.state, first.error) == (JobState.CANCELLED, f"replaced by job {follower.id}")
    assert ids(await claim(store, 9)) == [follower.id]


async def test_rescued_first_is_cancelled_for_its_follower(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store, unique=KEY)
    follower = await follow(store)
    clock.advance(61)
    [change] = await store.rescue_jobs()

    assert (change.id, change.after) == (job.id, JobState.CANCELLED)
    assert (await get(store, job.id)).error == f"replaced by job {follower.id}"
    assert ids(await claim(store, 9)) == [follower.id]


@pytest.mark.requires("replaces")
async def test_first_told_to_pause_is_cancelled_for_its_follower(store: Store) -> None:
    job = await add_and_claim(store, unique=KEY)
    follower = await follow(store)
    await store.pause_jobs([job.id])
    await accept(store, snooze(job))

    assert await state(store, job.id) == JobState.CANCELLED
    assert await state(store, follower.id) == JobState.READY


@pytest.mark.requires("replaces")
async def test_paused_follower_takes_the_place_and_stays_paused(store: Store) -> None:
    """A4: a paused job is not started by somebody else's end."""
    job = await add_and_claim(store, unique=KEY)
    follower = await follow(store)
    await store.pause_jobs([follower.id])
    await complete(store, job)
    assert await state(store, follower.id) == JobState.PAUSED

    await store.resume_jobs([follower.id])
    assert await state(store, follower.id) == JobState.READY


@pytest.mark.requires("replaces")
async def test_resumed_follower_is_held_again(store: Store) -> None:
    await add_and_claim(store, unique=KEY)
    follower = await follow(store)
    await store.pause_jobs([follower.id])
    changes = await store.resume_jobs([follower.id])

    assert changes[follower.id].after == JobState.HELD


@pytest.mark.requires("replaces")
async def test_cancelled_follower_makes_room_for_another(store: Store) -> None:
    job = await add_and_claim(store, unique=KEY)
    first = await follow(store)
    await store.cancel_jobs([first.id], "changed my mind")
    second = await follow(store)

    assert (second.outcome, second.state) == ("inserted", JobState.HELD)
    await complete(store, job)
    assert ids(await claim(store, 9)) == [second.id]


@pytest.mark.requires("groups")
async def test_deleted_waiting_job_hands_its_place_on(store: Store) -> None:
    """The follower of a waiting root takes the place when the root is cancelled and deleted."""
    job = await add_and_claim(store, unique=KEY)
    await make_group(store, root=job.id, is_open=True)
    await complete(store, job)
    follower = await follow(store)
    await store.cancel_jobs([job.id], "stop")
    await store.delete_jobs([job.id])

    assert await state(store, follower.id) == JobState.READY


@pytest.mark.requires("replaces")
async def test_other_modes_see_the_first_and_not_its_follower(store: Store) -> None:
    job = await add_and_claim(store, unique=KEY)
    await follow(store)
    again = [
        await insert(store, unique=KEY, on_conflict=m) for m in ("return", "reject", "replace")
    ]

    assert [one.outcome for one in again] == ["existing", "rejected", "existing"]
    assert {one.id for one in again} == {job.id}


@pytest.mark.requires("replaces")
async def test_follower_of_another_tenant_is_no_follower(store: Store) -> None:
    job = await add_and_claim(store, unique=KEY, tenant="acme")
    other = await follow(store, tenant="umbrella")
    assert (other.outcome, other.state) == ("inserted", JobState.READY)

    follower = await follow(store, tenant="acme")
    await complete(store, job)
    assert await state(store, follower.id) == JobState.READY


@pytest.mark.requires("replaces")
async def test_many_first_jobs_ended_in_one_call_hand_on_their_places(store: Store) -> None:
    for n in range(20):
        await add(store, unique=f"key-{n}")
    jobs = await claim(store, 20)
    rows = [row(unique=job.unique, on_conflict="follow") for job in jobs]
    assert {one.state for one in await store.insert_jobs(rows)} == {JobState.HELD}
    ends: list[Finish] = [completion(job) for job in jobs[:7]]
    ends += [attempt(job) for job in jobs[7:14]] + [failure(job) for job in jobs[14:]]
    await accept(store, *ends)

    assert set(ids(await claim(store, 99))) == {new.id for new in rows}


async def test_failed_job_can_be_retried_only_while_its_key_is_free(store: Store) -> None:
    job = await add_and_claim(store, unique=KEY)
    await fail(store, job)
    holder = await add(store, unique=KEY)
    blocked = (await store.retry_jobs([job.id]))[job.id]
    assert (blocked.after, blocked.blocked_by) == (JobState.FAILED, holder)
    assert blocked.is_refused

    await store.delete_jobs([holder])
    assert (await store.retry_jobs([job.id]))[job.id].after == JobState.READY


async def test_two_failed_jobs_of_a_key_retried_at_once_give_one(store: Store) -> None:
    failed = []
    for _ in range(2):
        job = await add_and_claim(store, unique=KEY)
        await fail(store, job)
        failed.append(job.id)
    changes = await store.retry_jobs(failed)

    assert {change.after for change in changes.values()} == {JobState.FAILED, JobState.READY}


@pytest.mark.requires("replaces")
async def test_retried_follower_stands_first_again(store: Store) -> None:
    job = await add_and_claim(store, unique=KEY)
    follower = await follow(store)
    await store.cancel_jobs([follower.id], "no")
    await complete(store, job)
    await store.retry_jobs([follower.id])

    assert ids(await claim(store, 9)) == [follower.id]
    assert (await insert(store, unique=KEY)).id == follower.id


@pytest.mark.requires("replaces")
@pytest.mark.parametrize("mode", ["return", "reject", "replace", "follow"])
async def test_concurrent_inserts_of_a_key_give_one_job(store: Store, open_another, mode) -> None:
    other = await open_another()
    inserts = [insert(s, unique=KEY, on_conflict=mode) for s in (store, other) * 10]
    outcomes = [one.outcome for one in await asyncio.gather(*inserts)]

    assert outcomes.count("inserted") == 1
    assert len(await claim(store, 99)) == 1


@pytest.mark.requires("replaces")
async def test_concurrent_followers_of_a_running_job_give_one(store: Store, open_another) -> None:
    other = await open_another()
    job = await add_and_claim(store, unique=KEY)
    outcomes = [one.outcome for one in await asyncio.gather(*map(follow, (store, other) * 10))]
    assert outcomes.count("inserted") == 1

    await complete(store, job)
    assert len(await claim(store, 99)) == 1


@pytest.mark.requires("replaces")
async def test_follower_inserted_while_the_first_ends_is_never_stuck(
    store: Store, open_another
) -> None:
    other = await open_another()
    for _ in range(20):
        job = await add_and_claim(store, unique=KEY)
        follower, _ = await asyncio.gather(follow(other), complete(store, job))
        await store.stage_jobs()

        if follower.outcome == "inserted":
            assert await state(store, follower.id) == JobState.READY
        await store.delete_jobs([follower.id])


async def test_batches_that_take_the_same_keys_crosswise_do_not_block_each_other(
    store: Store, open_another
) -> None:
    other = await open_another()
    keys = [f"key-{n}" for n in range(50)]
    forward = [row(unique=key) for key in keys]
    backward = [row(unique=key) for key in reversed(keys)]
    both = await asyncio.gather(store.insert_jobs(forward), other.insert_jobs(backward))

    outcomes = [one.outcome for inserted in both for one in inserted]
    assert (outcomes.count("inserted"), outcomes.count("existing")) == (50, 50)
