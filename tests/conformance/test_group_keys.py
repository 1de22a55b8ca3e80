"""Group keys and caps: a group takes each key once, and no more members than it may have."""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import (
    UNKNOWN_ID,
    accept,
    add,
    add_and_claim,
    claim,
    claim_one,
    complete,
    completion,
    exists,
    failure,
    get_group,
    insert,
    make_group,
    row,
    state,
    wish,
)
from tests.callers import Caller
from tests.conformance.conftest import RunSql
from windrow.clock import FakeClock
from windrow.errors import GroupEnded, GroupNotFound
from windrow.ids import new_id
from windrow.queue.checks import hash_group_key
from windrow.queue.job import JobState
from windrow.queue.records import Finish, Finished, Inserted, JobRow
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("groups")

A, B, C, D = (hash_group_key(f"https://example.org/{page}") for page in "abcd")


def page(group: str, key: str | None = None, **fields) -> JobRow:
    return row("page", group=group, group_key=key, **fields)


def outcomes(inserted: list[Inserted] | tuple[Inserted, ...]) -> list[str]:
    return [one.outcome for one in inserted]


async def test_a_key_is_taken_once(store: Store) -> None:
    group, other = await make_group(store), await make_group(store)
    first = await add(store, group=group.id, group_key=A)
    again = await insert(store, group=group.id, group_key=A)
    assert (again.outcome, again.id) == ("left_out", first)
    assert (await get_group(store, group.id)).pending == 1

    assert (await insert(store, group=group.id, group_key=B)).outcome == "inserted"
    assert (await insert(store, group=other.id, group_key=A)).outcome == "inserted"


async def test_a_key_stays_taken_when_its_job_has_ended_or_is_deleted(store: Store) -> None:
    group = await make_group(store, is_open=True)
    job = await add_and_claim(store, group=group.id, group_key=A)
    await accept(store, failure(job))
    assert (await insert(store, group=group.id, group_key=A)).outcome == "left_out"

    await store.delete_jobs([job.id])
    again = await insert(store, group=group.id, group_key=A)
    assert (again.outcome, again.id) == ("left_out", job.id)
    assert not await exists(store, job.id)
    assert (await get_group(store, group.id)).members == 1


async def test_the_first_of_a_batch_get_in(store: Store) -> None:
    group = await make_group(store, max_jobs=3)
    rows = [page(group.id, key) for key in (A, A, B, None, C)]
    inserted = await store.insert_jobs(rows)
    found = await get_group(store, group.id)
    assert (found.members, found.max_jobs, found.pending) == (3, 3, 3)
    taken = {one.id for one in inserted if one.outcome == "inserted"}
    assert taken == {rows[0].id, rows[2].id, rows[3].id}
    assert (inserted[1].outcome, inserted[1].id) == ("left_out", rows[0].id)


async def test_a_key_that_found_no_room_is_not_taken(store: Store, run_sql: RunSql) -> None:
    group = await make_group(store, max_jobs=1)
    await store.insert_jobs([page(group.id, A), page(group.id, B)])
    assert run_sql("select count(*) from windrow.group_key") == [(1,)]


async def test_a_full_group_takes_nobody_however_its_members_ended(store: Store) -> None:
    group = await make_group(store, max_jobs=2, is_open=True)
    inserted = await store.insert_jobs([page(group.id) for _ in range(3)])
    assert outcomes(inserted) == ["inserted", "inserted", "left_out"]
    await store.delete_jobs([inserted[0].id])
    await complete(store, await claim_one(store))

    assert (await insert(store, group=group.id)).outcome == "left_out"
    assert (await insert(store, group=group.id, group_key=A)).outcome == "left_out"
    assert (await get_group(store, group.id)).members == 2


async def test_a_unique_key_that_is_held_needs_no_room(store: Store) -> None:
    group = await make_group(store, max_jobs=2)
    holder = await add(store, group=group.id, unique="u")
    inserted = await store.insert_jobs(
        [page(group.id, unique="u"), page(group.id, unique="v"), page(group.id, unique="w")]
    )
    assert outcomes(inserted) == ["existing", "inserted", "left_out"]
    assert inserted[0].id == holder
    free = await insert(store, unique="w")
    assert free.outcome == "inserted"


@pytest.mark.parametrize("claims", [False, True])
async def test_follow_ups_are_left_out_in_the_completing_transaction(
    store: Store, claims: bool
) -> None:
    group = await make_group(store, max_jobs=4)
    job = await add_and_claim(store, group=group.id, group_key=A)
    then = (page(group.id, A), page(group.id, B), page(group.id, B), page(group.id, C))
    full = (page(group.id, D), page(group.id), page(group.id))
    ended = await store.finish_jobs(
        [completion(job, then=then + full)], claim=wish(10) if claims else None
    )
    assert outcomes(ended.then)[:4] == ["left_out", "inserted", "left_out", "inserted"]
    assert outcomes(ended.then)[4:] == ["inserted", "left_out", "left_out"]
    found = await get_group(store, group.id)
    assert (found.members, found.state) == (4, "active")
    assert len(ended.claimed or await claim(store, 10)) == 3


async def test_a_refused_finish_takes_no_keys(store: Store) -> None:
    group = await make_group(store)
    job = await add_and_claim(store, group=group.id)
    stale = Finish(job.id, new_id(), JobState.COMPLETED, then=(page(group.id, A),))
    ended: Finished = await store.finish_jobs([stale])
    assert ended.lost == (job.id,)
    assert (await insert(store, group=group.id, group_key=A)).outcome == "inserted"


async def test_a_repeated_insert_is_recognised_by_its_id(store: Store) -> None:
    group = await make_group(store, max_jobs=1)
    new = page(group.id, A, may_exist=True)
    assert outcomes(await store.insert_jobs([new])) == ["inserted"]
    assert outcomes(await store.insert_jobs([new])) == ["existing"]
    await complete(store, await claim_one(store))
    assert outcomes(await store.insert_jobs([new])) == ["existing"]


async def test_a_repeated_finish_is_accepted_and_adds_nothing(store: Store) -> None:
    group = await make_group(store, is_open=True)
    job = await add_and_claim(store, group=group.id)
    end = completion(job, then=(page(group.id, A, id=new_id()),))
    await store.finish_jobs([end])
    again = await store.finish_jobs([end])
    assert again.lost == ()
    assert (await get_group(store, group.id)).members == 2


async def test_keys_of_an_insert_that_fails_are_free(store: Store) -> None:
    group, over = await make_group(store), await make_group(store)
    await store.close_group(over.id)
    with pytest.raises(GroupEnded):
        await store.insert_jobs([page(group.id, A), page(over.id, A)])
    assert (await insert(store, group=group.id, group_key=A)).outcome == "inserted"


async def test_keys_are_kept_for_a_job(store: Store) -> None:
    group = await make_group(store)
    mine = await add(store, group=group.id, group_key=A)
    other = await add(store, group=group.id, group_key=B)
    assert await store.keep_group_keys(group.id, [A, B, C], mine) == {A, C}
    assert await store.keep_group_keys(group.id, [A, B, C], mine) == {A, C}
    assert await store.keep_group_keys(group.id, [A, B, C, D], other) == {B, D}
    assert await store.keep_group_keys(group.id, [], other) == set()
    kept = await insert(store, group=group.id, group_key=C)
    assert (kept.outcome, kept.id) == ("left_out", mine)
    assert (await get_group(store, group.id)).members == 2


@pytest.mark.parametrize("group_id", [UNKNOWN_ID, "no uuid"])
async def test_no_keys_are_kept_in_an_unknown_group(store: Store, group_id: str) -> None:
    with pytest.raises(GroupNotFound):
        await store.keep_group_keys(group_id, [A], new_id())


async def test_keys_go_with_the_group(store: Store, clock: FakeClock, run_sql: RunSql) -> None:
    group = await make_group(store, retention_seconds=60)
    kept = await make_group(store)
    job = await add_and_claim(store, group=group.id, group_key=A)
    await add(store, group=kept.id, group_key=A)
    await store.keep_group_keys(group.id, [B, C], job.id)
    await complete(store, job)

    clock.advance(61)
    while not (await store.prune_jobs()).is_done:
        pass
    assert await store.get_group(group.id) is None
    assert run_sql("select count(*) from windrow.group_key") == [(1,)]


async def test_the_root_of_a_capped_group_ends_when_its_members_have(store: Store) -> None:
    root = await add_and_claim(store, "crawl")
    group = await make_group(store, root=root.id, max_jobs=1)
    await complete(store, root, then=(page(group.id, A), page(group.id, B)))
    assert await state(store, root.id) == JobState.WAITING
    await complete(store, await claim_one(store))
    assert await state(store, root.id) == JobState.COMPLETED


async def test_inserts_at_once_share_the_keys_and_the_room(store: Store) -> None:
    group = await make_group(store, max_jobs=20)
    keys = [hash_group_key(str(n)) for n in range(30)]
    batches = [[page(group.id, key) for key in keys[n : n + 15]] for n in range(0, 16, 3)]
    done = await asyncio.gather(*map(store.insert_jobs, batches))
    taken = [one.id for inserted in done for one in inserted if one.outcome == "inserted"]
    assert len(taken) == len(set(taken)) == 20
    assert (await get_group(store, group.id)).members == 20


@pytest.mark.requires("transactional_insert")
async def test_keys_in_a_callers_transaction_are_the_callers(store: Store, caller: Caller) -> None:
    group = await make_group(store, max_jobs=3)
    keys = (A, A, None, None, None)
    inserted = await store.insert_jobs([page(group.id, k) for k in keys], tx=caller.connection)
    assert sorted(outcomes(inserted)) == ["inserted"] * 3 + ["left_out"] * 2
    await caller.rollback()

    assert (await get_group(store, group.id)).members == 0
    assert (await insert(store, group=group.id, group_key=A)).outcome == "inserted"
