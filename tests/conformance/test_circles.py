"""A job may not follow one that waits for it: the two would never end, nor would their group (N5).

A group waits for its members, a root for its group, a follower for the job whose key it wants. Only
a new follower can close a circle of these: whatever else is new has nothing yet that it waits for.
"""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.builders import (
    accept,
    add,
    add_and_claim,
    claim,
    complete,
    completion,
    exists,
    fail,
    get_group,
    insert,
    make_group,
    row,
    state,
)
from windrow.errors import GroupEnded, InvalidJob
from windrow.queue.job import FINAL, Job, JobState
from windrow.queue.records import Group, Inserted
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("groups")


async def start_root(store: Store, key: str | None = None, **fields) -> tuple[Job, Group]:
    """A running root job, whose key is to be followed, and its group."""
    root = await add_and_claim(store, unique=key, **fields)
    return root, await make_group(store, root=root.id)


async def follow(store: Store, key: str, **fields) -> Inserted:
    return await insert(store, unique=key, on_conflict="follow", **fields)


async def end_everything(store: Store) -> None:
    """Complete what can be claimed, until there is nothing more."""
    while jobs := await claim(store, 100):
        await accept(store, *map(completion, jobs))


@pytest.mark.parametrize("is_waiting", [False, True])
async def test_member_cannot_follow_the_root_of_its_group(store: Store, is_waiting: bool) -> None:
    root, group = await start_root(store, "k")
    member = await add(store, group=group.id)
    if is_waiting:
        await complete(store, root)
    with pytest.raises(InvalidJob, match=f"job {root.id}.*group {group.id}.*wait for each other"):
        await follow(store, "k", group=group.id)

    if not is_waiting:
        await complete(store, root)
    await end_everything(store)
    assert await state(store, member) == await state(store, root.id) == JobState.COMPLETED
    assert (await get_group(store, group.id)).state == "completed"


async def test_refused_follower_leaves_nothing_of_its_batch(store: Store) -> None:
    _, group = await start_root(store, "k")
    rows = [row(group=group.id), row(unique="k", on_conflict="follow", group=group.id)]
    with pytest.raises(InvalidJob):
        await store.insert_jobs(rows)

    assert not any([await exists(store, one.id) for one in rows])
    assert (await get_group(store, group.id)).pending == 0


async def test_follow_up_that_would_wait_for_itself_is_dropped(store: Store) -> None:
    root, group = await start_root(store, "k")
    member = await add_and_claim(store, group=group.id)
    follower = row(unique="k", on_conflict="follow", group=group.id)
    finished = await complete(store, member, then=(follower,))

    assert [(one.id, one.outcome) for one in finished.then] == [(follower.id, "dropped")]
    await complete(store, root)
    assert await state(store, root.id) == JobState.COMPLETED


async def test_follow_up_that_would_replace_a_job_of_another_group_is_dropped(store: Store) -> None:
    holder = await add(store, unique="k", priority=1)
    group = await make_group(store, is_open=True)
    job = await add_and_claim(store, priority=9)
    new = row(unique="k", on_conflict="replace", group=group.id)
    finished = await complete(store, job, then=(new,))

    assert [(one.id, one.outcome) for one in finished.then] == [(new.id, "dropped")]
    assert (await store.get_jobs([holder]))[holder].group is None


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_member_of_a_nested_group_cannot_follow_a_root_above(
    store: Store, depth: int
) -> None:
    _, group = await start_root(store, "k")
    inner = group
    for _ in range(depth):
        _, inner = await start_root(store, group=inner.id)
    with pytest.raises(InvalidJob, match="wait for each other"):
        await follow(store, "k", group=inner.id)

    outside = await make_group(store)
    assert (await follow(store, "k", group=outside.id)).state == JobState.HELD


async def test_root_below_can_be_followed_from_above(store: Store) -> None:
    _, group = await start_root(store)
    below, inner = await start_root(store, "k", group=group.id)
    follower = await follow(store, "k", group=group.id)
    await add(store, group=inner.id)
    await complete(store, below)

    await end_everything(store)
    assert await state(store, follower.id) == JobState.COMPLETED
    assert (await get_group(store, inner.id)).state == "completed"


async def test_two_followers_cannot_close_a_circle(store: Store) -> None:
    _, first = await start_root(store, "k")
    _, second = await start_root(store, "l")
    await follow(store, "l", group=first.id)
    with pytest.raises(InvalidJob, match="wait for each other"):
        await follow(store, "k", group=second.id)


async def test_two_followers_of_one_batch_cannot_close_a_circle(store: Store) -> None:
    _, first = await start_root(store, "k")
    _, second = await start_root(store, "l")
    rows = [
        row(unique="l", on_conflict="follow", group=first.id),
        row(unique="k", on_conflict="follow", group=second.id),
    ]
    with pytest.raises(InvalidJob, match="wait for each other"):
        await store.insert_jobs(rows)

    job = await add_and_claim(store)
    finished = await complete(store, job, then=tuple(rows))
    assert [one.outcome for one in finished.then] == ["inserted", "dropped"]


async def test_follower_in_a_group_may_come_behind_others_of_its_key(store: Store) -> None:
    root, group = await start_root(store, "k")
    outside = await make_group(store)
    rows = [
        row(unique="k"),
        row(unique="k", on_conflict="replace", group=outside.id),
        row(unique="k", on_conflict="follow", group=outside.id),
    ]
    inserted = await store.insert_jobs(rows)

    assert [one.outcome for one in inserted] == ["existing", "existing", "inserted"]
    assert [one.id for one in inserted] == [root.id, root.id, rows[2].id]
    with pytest.raises(InvalidJob, match="another group"):
        await store.insert_jobs(
            [row(unique="k"), row(unique="k", on_conflict="follow", group=group.id)]
        )


async def test_job_that_became_a_root_after_it_was_followed_closes_no_circle(store: Store) -> None:
    outer, group = await start_root(store)
    holder = await add_and_claim(store, unique="k", group=group.id)
    follower = await follow(store, "k", group=group.id)
    inner = await make_group(store, root=holder.id)
    with pytest.raises(InvalidJob):
        await insert(store, unique="k", on_conflict="follow", group=inner.id)  # of another group
    await add(store, group=inner.id)

    await accept(store, completion(outer), completion(holder))
    await end_everything(store)
    assert await state(store, follower.id) == await state(store, outer.id) == JobState.COMPLETED


async def test_newer_follower_of_the_same_group_is_still_taken(store: Store) -> None:
    _, group = await start_root(store, "k")
    outside = await make_group(store)
    first = await follow(store, "k", group=outside.id)
    again = await follow(store, "k", group=outside.id)
    with pytest.raises(InvalidJob, match="another group"):
        await follow(store, "k", group=group.id)

    assert (again.id, again.outcome) == (first.id, "replaced")


async def test_retried_root_closes_no_circle(store: Store) -> None:
    """Its group is cancelled with it, and so are the groups of running members."""
    outer, group = await start_root(store, "k")
    keeper = await add_and_claim(store, group=group.id)
    failed, middle = await start_root(store, group=group.id)
    told, inner = await start_root(store, group=middle.id)
    with pytest.raises(InvalidJob, match="wait for each other"):
        await follow(store, "k", group=inner.id)
    await fail(store, failed)
    for ended in (inner, middle):
        with pytest.raises((GroupEnded, InvalidJob)):
            await follow(store, "k", group=ended.id)
    await store.retry_jobs([failed.id])

    await accept(store, completion(outer), completion(told), completion(keeper))
    await store.close_group(inner.id)
    await end_everything(store)
    jobs = await store.get_jobs([outer.id, keeper.id, failed.id, told.id])
    assert {job.state for job in jobs.values()} <= FINAL


async def test_root_of_an_ended_group_can_be_followed_from_what_is_left_of_it(store: Store) -> None:
    root, group = await start_root(store, "k")
    failed, middle = await start_root(store, group=group.id)
    told, inner = await start_root(store, group=middle.id)
    await fail(store, failed)
    assert (await get_group(store, group.id)).state == "completed"
    assert (await get_group(store, inner.id)).state == "cancelled"
    follower = row(unique="k", on_conflict="follow")
    await accept(store, msgspec.structs.replace(completion(told), then=(follower,)))
    await accept(store, completion(root))

    await end_everything(store)
    assert await state(store, follower.id) == await state(store, told.id) == JobState.COMPLETED


async def test_followers_inserted_at_once_close_no_circle(store: Store, open_another) -> None:
    others = [await open_another() for _ in range(2)]
    for turn in range(10):
        _, first = await start_root(store, f"k{turn}")
        _, second = await start_root(store, f"l{turn}")
        _, below = await start_root(store, group=second.id)
        outcomes = await asyncio.gather(
            follow(others[0], f"l{turn}", group=first.id),
            follow(others[1], f"k{turn}", group=below.id),
            return_exceptions=True,
        )
        assert sorted(type(one).__name__ for one in outcomes) == ["Inserted", "InvalidJob"]
