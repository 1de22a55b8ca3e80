"""Follow-ups: `then` of a finish is inserted with it, in the same transaction, or not at all."""

from __future__ import annotations

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
    failure,
    get,
    get_group,
    ids,
    insert,
    make_group,
    row,
    snooze,
    state,
    wish,
)
from windrow.clock import FakeClock
from windrow.ids import new_id
from windrow.queue.job import JobState
from windrow.queue.records import Finished
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("groups")


def outcomes(finished: Finished) -> list[str]:
    return [one.outcome for one in finished.then]


async def test_follow_ups_are_inserted_with_the_completion(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    then = (row("index", {"n": 1}), row("mail", queue="post", delay=60))
    finished = await complete(store, job, then=then)

    assert [(one.id, one.outcome, one.state) for one in finished.then] == [
        (then[0].id, "inserted", JobState.READY),
        (then[1].id, "inserted", JobState.SCHEDULED),
    ]
    found = await get(store, then[0].id)
    assert (found.kind, found.payload, found.created_at) == ("index", {"n": 1}, clock.now())


@pytest.mark.parametrize("end", [failure, cancellation, snooze])
async def test_follow_ups_of_any_accepted_end_are_inserted(store: Store, end) -> None:
    job = await add_and_claim(store)
    then = row()
    await accept(store, end(job, then=(then,)))

    assert await exists(store, then.id)


async def test_stale_token_inserts_no_follow_ups(store: Store, clock: FakeClock) -> None:
    """N1: a lost lock changes nothing."""
    job = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    then = row()
    finished = await store.finish_jobs([completion(job, then=(then,))])

    assert finished.lost == (job.id,)
    assert set(outcomes(finished)) <= {"dropped"}
    assert not await exists(store, then.id)


@pytest.mark.parametrize("is_stale_first", [True, False])
@pytest.mark.parametrize("has_then", [True, False], ids=["handed on", "plain"])
async def test_of_two_runs_of_one_job_that_end_together_only_the_last_counts(
    store: Store, clock: FakeClock, is_stale_first: bool, has_then: bool
) -> None:
    """N1: by one worker that has lost a job and claimed it again."""
    stale = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    others = [await add(store) for _ in range(2)]
    good, *fresh = await claim(store, 3)
    assert ids([good, *fresh]) == [stale.id, *others]
    unwanted, wanted = row(), row()
    ends = [
        completion(stale, "stale", then=(unwanted,) if has_then else ()),
        completion(fresh[0]),
        completion(good, "good", then=(wanted,) if has_then else ()),
        completion(fresh[1]),
    ]
    given = ends if is_stale_first else ends[::-1]
    finished = await store.finish_jobs(given)
    again = await store.finish_jobs(given)  # its reply may have been lost, or that of a part

    assert (finished.lost, again.lost) == ((stale.id,), (stale.id,))
    assert set(outcomes(again)) <= {"existing", "dropped"}
    done = await get(store, stale.id)
    assert (done.state, done.result, done.runs) == (JobState.COMPLETED, "good", 2)
    assert [await state(store, one.id) for one in fresh] == [JobState.COMPLETED] * 2
    assert await exists(store, wanted.id) is has_then
    assert not await exists(store, unwanted.id)
    assert ids(await claim(store, 9)) == ([wanted.id] if has_then else [])


async def test_end_given_twice_in_one_call_is_one(store: Store) -> None:
    job = await add_and_claim(store)
    then = row()
    end = completion(job, "once", then=(then,))
    finished = await store.finish_jobs([end, end], claim=wish(9))

    assert finished.lost == ()
    assert sorted(outcomes(finished)) == ["existing", "inserted"]
    assert ids(finished.claimed) == [then.id]
    assert (await get(store, job.id)).result == "once"


async def test_repeated_finish_inserts_its_follow_ups_once(store: Store) -> None:
    job = await add_and_claim(store)
    end = completion(job, then=(row(), row(unique="key")))
    first = await accept(store, end)
    again = await accept(store, end)

    assert (outcomes(first), outcomes(again)) == (["inserted"] * 2, ["existing"] * 2)
    assert [one.id for one in again.then] == [one.id for one in first.then]
    assert ids(await claim(store, 9)) == [one.id for one in first.then]


async def test_repeated_finish_does_not_revive_follow_ups_that_ended(store: Store) -> None:
    job = await add_and_claim(store)
    end = completion(job, then=(row(),))
    await accept(store, end)
    await complete(store, await claim_one(store))

    assert outcomes(await accept(store, end)) == ["existing"]
    assert await claim(store, 9) == []


async def test_follow_ups_of_many_finishes_are_told_in_order(store: Store) -> None:
    for _ in range(3):
        await add(store)
    jobs = await claim(store, 3)
    rows = [row() for _ in range(5)]
    ends = [
        completion(jobs[0], then=rows[:2]),
        completion(jobs[1]),
        completion(jobs[2], then=rows[2:]),
    ]
    finished = await accept(store, *ends)

    assert [one.id for one in finished.then] == [new.id for new in rows]


async def test_follow_up_with_a_taken_key_is_told_and_fails_nothing(store: Store) -> None:
    holder = await add(store, unique="key", delay=60)
    job = await add_and_claim(store)
    then = tuple(row(unique="key", on_conflict=mode) for mode in ("return", "reject", "replace"))
    finished = await complete(store, job, then=then)

    assert outcomes(finished) == ["existing", "rejected", "replaced"]
    assert {one.id for one in finished.then} == {holder}
    assert await state(store, job.id) == JobState.COMPLETED


async def test_follow_up_that_may_not_replace_fails_nothing(store: Store) -> None:
    """A job of another group is not overwritten; of an insert this would be refused."""
    group = await make_group(store)
    holder = await add(store, "old", unique="key", delay=60, group=group.id)
    job = await add_and_claim(store)
    finished = await complete(store, job, then=(row("new", unique="key", on_conflict="replace"),))

    assert len(finished.then) == 1
    assert finished.then[0].outcome not in ("inserted", "replaced")
    assert (await get(store, holder)).kind == "old"
    assert await state(store, job.id) == JobState.COMPLETED


async def test_completed_job_frees_its_key_for_its_own_follow_up(store: Store) -> None:
    job = await add_and_claim(store, unique="key")
    finished = await complete(store, job, then=(row(unique="key"),))

    assert outcomes(finished) == ["inserted"]


@pytest.mark.parametrize("end", [completion, failure, cancellation, snooze])
async def test_follower_takes_the_place_before_a_follow_up_may(store: Store, end) -> None:
    """U4: who waited already is first."""
    job = await add_and_claim(store, unique="key")
    follower = await insert(store, unique="key", on_conflict="follow")
    finished = await accept(store, end(job, then=(row(unique="key"),)))

    assert [(one.outcome, one.id) for one in finished.then] == [("existing", follower.id)]
    assert await state(store, follower.id) == JobState.READY


async def test_root_of_an_ended_group_frees_its_key_for_its_own_follow_up(store: Store) -> None:
    root = await add_and_claim(store, unique="key")
    group = await make_group(store, root=root.id)
    await store.close_group(group.id)
    finished = await complete(store, root, then=(row(unique="key"),))

    assert outcomes(finished) == ["inserted"]
    assert await state(store, root.id) == JobState.COMPLETED


async def test_waiting_root_keeps_its_key_from_its_own_follow_up(store: Store) -> None:
    root = await add_and_claim(store, unique="key")
    await make_group(store, root=root.id)
    finished = await complete(store, root, then=(row(unique="key"),))

    assert [(one.outcome, one.id) for one in finished.then] == [("existing", root.id)]
    assert await state(store, root.id) == JobState.WAITING


async def test_follow_up_may_be_a_follower(store: Store) -> None:
    running = await add_and_claim(store, unique="key")
    job = await add_and_claim(store)
    then = row(unique="key", on_conflict="follow")
    [follower] = (await complete(store, job, then=(then,))).then
    assert (follower.outcome, follower.state) == ("inserted", JobState.HELD)

    await complete(store, running)
    assert await state(store, then.id) == JobState.READY


async def test_member_that_brings_more_members_keeps_its_group_going(store: Store) -> None:
    """N5: a crawl does not end while a page brings new ones."""
    group = await make_group(store)
    job = await add_and_claim(store, group=group.id)
    for _ in range(3):
        await complete(store, job, then=(row(group=group.id),))
        found = await get_group(store, group.id)
        assert (found.state, found.pending) == ("active", 1)
        job = await claim_one(store)

    await complete(store, job)
    assert (await get_group(store, group.id)).state == "completed"


async def test_root_may_bring_its_members_with_its_end(store: Store) -> None:
    root = await add_and_claim(store)
    group = await make_group(store, root=root.id)
    await complete(store, root, then=(row(group=group.id), row(group=group.id)))

    assert await state(store, root.id) == JobState.WAITING
    assert (await get_group(store, group.id)).pending == 2


async def test_follow_up_for_an_ended_group_is_dropped(store: Store) -> None:
    group = await make_group(store)
    await store.close_group(group.id)
    job = await add_and_claim(store)
    late, good = row(group=group.id), row()
    finished = await complete(store, job, then=(late, good))

    assert outcomes(finished) == ["dropped", "inserted"]
    assert not await exists(store, late.id)
    assert await state(store, job.id) == JobState.COMPLETED


async def test_follow_up_for_an_unknown_group_is_dropped(store: Store) -> None:
    job = await add_and_claim(store)
    finished = await complete(store, job, then=(row(group=new_id()),))

    assert outcomes(finished) == ["dropped"]
    assert await state(store, job.id) == JobState.COMPLETED


async def test_follow_up_for_a_group_being_cancelled_is_dropped(store: Store) -> None:
    group = await make_group(store)
    job = await add_and_claim(store, group=group.id)
    await store.cancel_group(group.id, "enough")
    finished = await complete(store, job, then=(row(group=group.id),))

    assert outcomes(finished) == ["dropped"]
    assert (await get_group(store, group.id)).state == "cancelled"


async def test_follow_up_for_a_group_that_ends_with_its_root_is_dropped(store: Store) -> None:
    """A failed root cancels its group, so what it wanted to add has no place any more."""
    root = await add_and_claim(store)
    group = await make_group(store, root=root.id)
    finished = await accept(store, failure(root, then=(row(group=group.id),)))
    found = await get_group(store, group.id)

    assert await state(store, root.id) == JobState.FAILED
    assert (found.state, found.pending) == ("cancelled", 0)
    assert outcomes(finished) == ["dropped"]


async def test_follow_up_for_a_group_below_one_that_ends_with_its_root_is_dropped(
    store: Store,
) -> None:
    root = await add_and_claim(store)
    outer = await make_group(store, root=root.id)
    member = await add_and_claim(store, group=outer.id)
    inner = await make_group(store, root=member.id)
    finished = await accept(store, failure(root, then=(row(group=inner.id),)))

    assert outcomes(finished) == ["dropped"]
    found = await get_group(store, inner.id)
    assert (found.state, found.pending, found.members) == ("cancelled", 0, 0)
    assert (await get(store, member.id)).stop_as == JobState.CANCELLED


async def test_follow_ups_may_be_claimed_in_the_same_call(store: Store) -> None:
    job = await add_and_claim(store)
    then = row()
    finished = await store.finish_jobs([completion(job, then=(then,))], claim=wish(5))
    claimed = ids(finished.claimed) or ids(await claim(store, 5))

    assert claimed == [then.id]


async def test_thousand_follow_ups_of_one_finish(store: Store) -> None:
    root = await add_and_claim(store)
    group = await make_group(store, root=root.id)
    rows = tuple(row(group=group.id, unique=f"page-{n}") for n in range(1000))
    finished = await complete(store, root, then=rows)

    assert set(outcomes(finished)) == {"inserted"}
    assert (await get_group(store, group.id)).pending == 1000


async def test_duplicate_pages_found_by_two_members_are_one_job(store: Store) -> None:
    group = await make_group(store)
    for _ in range(2):
        await add(store, group=group.id)
    jobs = await claim(store, 2)
    ends = [completion(job, then=(row(group=group.id, unique="page"),)) for job in jobs]
    finished = await accept(store, *ends)

    assert outcomes(finished) == ["inserted", "existing"]
    assert (await get_group(store, group.id)).pending == 1


async def test_attempt_with_no_follow_ups_tells_none(store: Store) -> None:
    job = await add_and_claim(store)

    assert (await accept(store, attempt(job))).then == ()
    assert (await insert(store)).outcome == "inserted"
