"""Lost replies: a verb that committed is repeated, and nothing happens twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from msgspec.structs import replace
from msgspec.structs import replace as replace_row

from tests.builders import (
    accept,
    add,
    add_and_claim,
    add_many,
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
    make_group,
    row,
    snooze,
    state,
    wish,
)
from tests.faults import FaultyStore
from windrow.clock import FakeClock
from windrow.errors import StoreUnavailable
from windrow.queue.job import JobState
from windrow.queue.records import Finish, Finished, JobRow
from windrow.queue.store import Store

T = TypeVar("T")


@pytest.fixture
def faulty(store: Store) -> FaultyStore:
    return FaultyStore(store)


async def stubbornly(call: Callable[[], Awaitable[T]]) -> T:
    """What a client does: ask again until there is an answer."""
    for _ in range(50):
        try:
            return await call()
        except StoreUnavailable:
            continue
    raise AssertionError("no answer after 50 tries")


async def insert_stubbornly(store: Store, rows: list[JobRow]):
    sent = iter([rows])
    again = [replace_row(new, may_exist=True) for new in rows]
    return await stubbornly(lambda: store.insert_jobs(next(sent, again)))


async def test_insert_that_never_arrived_is_made_by_the_repetition(faulty: FaultyStore) -> None:
    faulty.fail_before("insert_jobs")
    [inserted] = await insert_stubbornly(faulty, [row()])

    assert inserted.outcome == "inserted"
    assert len(await claim(faulty.store, 9)) == 1


@pytest.mark.requires("groups")
async def test_insert_whose_reply_was_lost_is_not_doubled(faulty: FaultyStore) -> None:
    group = await make_group(faulty.store)
    rows = [row(), row(unique="key"), row(group=group.id)]
    faulty.lose_reply("insert_jobs")
    inserted = await insert_stubbornly(faulty, rows)

    assert [(one.id, one.outcome) for one in inserted] == [(new.id, "existing") for new in rows]
    assert (await get_group(faulty.store, group.id)).pending == 1
    assert ids(await claim(faulty.store, 9)) == [new.id for new in rows]


async def test_insert_repeated_after_the_job_has_finished_is_not_doubled(
    faulty: FaultyStore,
) -> None:
    new = row(unique="key")
    faulty.lose_reply("insert_jobs")
    with pytest.raises(StoreUnavailable):
        await faulty.insert_jobs([new])
    await complete(faulty.store, await claim_one(faulty.store))
    [again] = await faulty.insert_jobs([replace_row(new, may_exist=True)])

    assert (again.id, again.outcome, again.state) == (new.id, "existing", JobState.COMPLETED)
    assert await claim(faulty.store, 9) == []


@pytest.mark.requires("groups")
async def test_insert_repeated_after_its_group_has_ended_is_recognised(faulty: FaultyStore) -> None:
    """N5: the member did its work; that the group has ended since is no error of the insert."""
    group = await make_group(faulty.store)
    new = row(group=group.id)
    faulty.lose_reply("insert_jobs")
    with pytest.raises(StoreUnavailable):
        await faulty.insert_jobs([new])
    await complete(faulty.store, await claim_one(faulty.store))
    [again] = await faulty.insert_jobs([replace_row(new, may_exist=True)])

    assert (again.outcome, again.state) == ("existing", JobState.COMPLETED)


@pytest.mark.requires("replaces")
async def test_repeated_follower_is_recognised(faulty: FaultyStore) -> None:
    job = await add_and_claim(faulty.store, unique="key")
    new = row(unique="key", on_conflict="follow")
    faulty.lose_reply("insert_jobs")
    [again] = await insert_stubbornly(faulty, [new])

    assert (again.id, again.outcome, again.state) == (new.id, "existing", JobState.HELD)
    await complete(faulty.store, job)
    assert ids(await claim(faulty.store, 9)) == [new.id]


@pytest.mark.requires("replaces")
async def test_repeated_follower_does_not_follow_itself(faulty: FaultyStore) -> None:
    job = await add_and_claim(faulty.store, unique="key")
    new = row(unique="key", on_conflict="follow", may_exist=True)
    await faulty.insert_jobs([new])
    await complete(faulty.store, job)
    await claim_one(faulty.store)
    [again] = await faulty.insert_jobs([new])

    assert (again.id, again.outcome, again.state) == (new.id, "existing", JobState.ACTIVE)
    assert not await claim(faulty.store, 9)


@pytest.mark.parametrize("end", [completion, failure, cancellation, attempt, snooze])
async def test_finish_whose_reply_was_lost_is_accepted_once(faulty: FaultyStore, end) -> None:
    """N1"""
    job = await add_and_claim(faulty.store)
    faulty.lose_reply("finish_jobs")
    finished = await stubbornly(lambda: faulty.finish_jobs([end(job)]))
    found = await get(faulty.store, job.id)

    assert (finished.lost, faulty.calls("finish_jobs")) == ((), 2)
    assert found.state == end(job).state
    assert (found.attempts, len(found.errors)) == (
        *(int(end(job).uses_attempt), int(end(job).error is not None)),
    )


@pytest.mark.parametrize("end", [completion, failure, cancellation, attempt, snooze])
async def test_finish_that_never_arrived_is_made_by_the_repetition(
    faulty: FaultyStore, end
) -> None:
    job = await add_and_claim(faulty.store)
    faulty.fail_before("finish_jobs")
    finished = await stubbornly(lambda: faulty.finish_jobs([end(job)]))

    assert finished.lost == ()
    assert await state(faulty.store, job.id) == end(job).state


@pytest.mark.requires("groups")
async def test_follow_ups_and_group_counts_are_not_repeated(faulty: FaultyStore) -> None:
    """N5"""
    group = await make_group(faulty.store, then=row("report", queue="reports"))
    job = await add_and_claim(faulty.store, group=group.id)
    end = completion(job, then=(row(group=group.id), row(unique="key", queue="other")))
    faulty.lose_reply("finish_jobs")
    finished: Finished = await stubbornly(lambda: faulty.finish_jobs([end]))
    found = await get_group(faulty.store, group.id)

    assert [(one.id, one.outcome) for one in finished.then] == [
        (new.id, "existing") for new in end.then
    ]
    assert (found.pending, found.counts) == (1, {JobState.COMPLETED: 1, JobState.READY: 1})


@pytest.mark.requires("groups")
async def test_last_finish_of_a_group_repeated_ends_it_once(faulty: FaultyStore) -> None:
    """N5: the finish job exactly once."""
    then = row("report")
    group = await make_group(faulty.store, then=then)
    job = await add_and_claim(faulty.store, group=group.id)
    faulty.lose_reply("finish_jobs")
    await stubbornly(lambda: faulty.finish_jobs([completion(job)]))

    assert (await get_group(faulty.store, group.id)).state == "completed"
    assert ids(await claim(faulty.store, 9)) == [then.id]


@pytest.mark.requires("groups")
async def test_finish_of_a_root_repeated_leaves_it_waiting(faulty: FaultyStore) -> None:
    root = await add_and_claim(faulty.store)
    group = await make_group(faulty.store, root=root.id)
    end = completion(root, "kickoff", then=(row(group=group.id),))
    faulty.lose_reply("finish_jobs")
    await stubbornly(lambda: faulty.finish_jobs([end]))

    assert await state(faulty.store, root.id) == JobState.WAITING
    assert (await get_group(faulty.store, group.id)).pending == 1


@pytest.mark.requires("replaces")
async def test_finish_repeated_after_a_follower_took_the_place_is_accepted(
    faulty: FaultyStore,
) -> None:
    """U4"""
    job = await add_and_claim(faulty.store, unique="key")
    follower = row(unique="key", on_conflict="follow")
    await faulty.insert_jobs([follower])
    faulty.lose_reply("finish_jobs")
    finished = await stubbornly(lambda: faulty.finish_jobs([snooze(job)]))

    assert finished.lost == ()
    assert await state(faulty.store, job.id) == JobState.CANCELLED
    assert ids(await claim(faulty.store, 9)) == [follower.id]


async def test_batch_is_repeated_with_some_of_it_new(faulty: FaultyStore) -> None:
    await add_many(faulty.store, 4)
    jobs = await claim(faulty.store, 4)
    ends: list[Finish] = [completion(jobs[0]), failure(jobs[1]), attempt(jobs[2], 30)]
    faulty.lose_reply("finish_jobs")
    with pytest.raises(StoreUnavailable):
        await faulty.finish_jobs(ends)
    finished = await faulty.finish_jobs([*ends, snooze(jobs[3])])

    assert finished.lost == ()
    assert (await get(faulty.store, jobs[2].id)).attempts == 1
    assert await state(faulty.store, jobs[3].id) == JobState.READY


async def test_jobs_of_a_claim_whose_reply_was_lost_are_rescued(
    faulty: FaultyStore, clock: FakeClock
) -> None:
    """N2, U6: nobody holds them, so the lease runs out and they run again."""
    job_ids = await add_many(faulty.store, 3)
    faulty.lose_reply("claim_jobs")
    with pytest.raises(StoreUnavailable):
        await faulty.claim_jobs(wish(9))
    assert await claim(faulty.store, 9) == []

    clock.advance(61)
    assert len(await faulty.rescue_jobs()) == 3
    assert ids(await claim(faulty.store, 9)) == job_ids


async def test_jobs_claimed_with_a_finish_whose_reply_was_lost_are_rescued(
    faulty: FaultyStore, clock: FakeClock
) -> None:
    first, second, third = await add_many(faulty.store, 3)
    job = await claim_one(faulty.store)
    faulty.lose_reply("finish_jobs")
    finished = await stubbornly(lambda: faulty.finish_jobs([completion(job)], claim=wish(1)))
    assert (finished.lost, ids(finished.claimed)) == ((), [third])

    clock.advance(61)
    assert {change.id for change in await faulty.rescue_jobs()} == {second, third}
    assert await state(faulty.store, first) == JobState.COMPLETED


@pytest.mark.requires("groups")
async def test_lost_replies_of_other_verbs_may_be_repeated(faulty: FaultyStore) -> None:
    store = faulty.store
    job_id, group = await add(store), await make_group(store, then=row("report"))
    for verb in ("pause_jobs", "resume_jobs", "cancel_jobs", "retry_jobs", "close_group"):
        faulty.lose_reply(verb)
    await stubbornly(lambda: faulty.pause_jobs([job_id]))
    assert await state(store, job_id) == JobState.PAUSED
    await stubbornly(lambda: faulty.resume_jobs([job_id]))
    await stubbornly(lambda: faulty.cancel_jobs([job_id], "no"))
    assert [error.message for error in (await get(store, job_id)).errors] == ["no"]
    await stubbornly(lambda: faulty.retry_jobs([job_id]))
    await stubbornly(lambda: faulty.close_group(group.id))

    assert await state(store, job_id) == JobState.READY
    assert len(await claim(store, 9)) == 2


async def test_renewal_whose_reply_was_lost_may_be_repeated(faulty: FaultyStore) -> None:
    job = await add_and_claim(faulty.store)
    faulty.lose_reply("extend_leases")

    assert (await stubbornly(lambda: faulty.extend_leases([job.lease_token]))).held == {job.id}


async def test_finish_delayed_past_the_rescue_changes_nothing(
    faulty: FaultyStore, clock: FakeClock
) -> None:
    """N1, N2: the message of a worker that everybody believed dead arrives at last."""
    job = await add_and_claim(faulty.store)
    arrived = asyncio.Event()
    faulty.delay("finish_jobs", until=arrived)
    then = row()
    late = asyncio.ensure_future(faulty.finish_jobs([completion(job, "late", then=(then,))]))
    await asyncio.sleep(0)
    clock.advance(61)
    await faulty.rescue_jobs()
    new = await claim_one(faulty.store)
    arrived.set()

    assert (await late).lost == (job.id,)
    assert not await exists(faulty.store, then.id)
    await accept(faulty.store, completion(new))


@pytest.mark.parametrize("seed", range(5))
async def test_random_faults_lose_and_double_nothing(
    faulty: FaultyStore, clock: FakeClock, seed: int
) -> None:
    """A whole life under faults: every job is completed once and brings one follow-up."""
    store = faulty.store
    group = await make_group(store, then=row("report", queue="reports"))
    faulty.at_random(seed, rate=0.3, verbs=["insert_jobs", "claim_jobs", "finish_jobs"])
    rows = [row(group=group.id, max_crashes=99) for _ in range(20)]
    await insert_stubbornly(faulty, rows)
    for _ in range(60):
        for job in await stubbornly(lambda: faulty.claim_jobs(wish(4, "default"))):
            end = completion(job, job.id, then=(row("index", queue="index"),))
            await stubbornly(lambda end=end: faulty.finish_jobs([end]))  # type: ignore[misc]
        clock.advance(61)
        await store.rescue_jobs()

    found = await store.get_jobs([new.id for new in rows])
    assert {job.state for job in found.values()} == {JobState.COMPLETED}
    assert len(await claim(store, 99, "index")) == 20
    assert len(await claim(store, 99, "reports")) == 1


async def test_repetition_of_a_changed_row_is_the_first_one(faulty: FaultyStore) -> None:
    new = row("first")
    await faulty.insert_jobs([new])
    await faulty.insert_jobs([replace_row(new, kind="second", may_exist=True)])

    assert (await get(faulty.store, new.id)).kind == "first"


async def test_finish_with_anothers_token_is_no_repetition(faulty: FaultyStore) -> None:
    job = await add_and_claim(faulty.store)
    await complete(faulty.store, job)
    other = await add_and_claim(faulty.store)
    crossed = replace(completion(other), id=job.id)

    assert (await faulty.finish_jobs([crossed])).lost == (job.id,)
