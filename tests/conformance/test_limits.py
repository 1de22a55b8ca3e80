"""Limits per key (N6): at most so many at once, at most so many a second, fair between keys."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import (
    add,
    add_failed,
    add_many,
    attempt,
    claim,
    claim_one,
    complete,
    counted,
    counts,
    fail,
    get,
    get_group,
    ids,
    insert,
    make_group,
    row,
    snooze,
    state,
    states,
    tallied,
    wish,
)
from tests.callers import Caller
from tests.conftest import OpenAnother
from windrow.clock import FakeClock
from windrow.errors import InvalidJob
from windrow.queue.job import JobState
from windrow.queue.limits import WINDOW
from windrow.queue.records import LimitInfo, LimitRow
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("limits")

S = JobState


async def limit(store: Store, key: str = "api", **settings: object) -> None:
    await store.set_limit(LimitRow(key, **settings))  # type: ignore[arg-type]


async def info(store: Store, key: str = "api") -> LimitInfo:
    return {one.key: one for one in await store.list_limits()}[key]


async def test_job_with_limits_is_held_until_it_is_promoted(store: Store) -> None:
    job_id = await add(store, limits=("api",))

    assert await state(store, job_id) is S.HELD
    assert await claim(store) == []
    assert await store.promote_jobs() == 1
    [job] = await claim(store)
    assert (job.id, job.limits) == (job_id, ("api",))


async def test_many_copied_jobs_with_limits_are_held_too(store: Store) -> None:
    job_ids = await add_many(store, 120, limits=("api", "host"), max_hold_seconds=9)

    assert set(await states(store, job_ids)) == {S.HELD}
    job = await get(store, job_ids[7])
    assert (job.limits, job.max_hold_seconds) == (("api", "host"), 9)


async def test_no_more_run_than_the_limit_allows(store: Store) -> None:
    await limit(store, active=2)
    await add_many(store, 5, limits=("api",))

    assert await store.promote_jobs() == 2
    first, second = await claim(store, 5)
    assert await store.promote_jobs() == 0
    await complete(store, first)
    assert await store.promote_jobs(["api"]) == 1
    assert len(await claim(store, 5)) == 1
    assert await store.promote_jobs() == 0
    assert second.state is S.ACTIVE


async def test_every_key_of_a_job_must_have_room(store: Store) -> None:
    await limit(store, "tenant", active=5)
    await limit(store, "host", active=1)
    blocked = await add_many(store, 2, limits=("tenant", "host"))
    free = await add(store, limits=("tenant",))

    assert await store.promote_jobs() == 2
    assert await states(store, [*blocked, free]) == [S.READY, S.HELD, S.READY]
    assert (await info(store, "host")).taken == 1
    assert (await info(store, "tenant")).taken == 2


async def test_zero_active_stops_a_key(store: Store) -> None:
    await limit(store, active=0)
    await add(store, limits=("api",))

    assert await store.promote_jobs() == 0


@pytest.mark.parametrize("way", ["snooze", "retry later", "rescue", "failed and retried", "pause"])
async def test_job_that_comes_back_is_held_again(store: Store, clock: FakeClock, way: str) -> None:
    await limit(store, active=1)
    job_id = await add(store, limits=("api",))
    await store.promote_jobs()
    if way == "pause":
        await store.pause_jobs([job_id])
        [change] = (await store.resume_jobs([job_id])).values()
        assert change.after is S.HELD
    else:
        job = await claim_one(store, seconds=5)
        if way == "snooze":
            await store.finish_jobs([snooze(job)])
        elif way == "retry later":
            await store.finish_jobs([attempt(job, delay=10)])
            assert await state(store, job_id) is S.SCHEDULED
            clock.advance(11)
            assert await store.stage_jobs() == 1
        elif way == "rescue":
            clock.advance(6)
            [change] = await store.rescue_jobs()
            assert change.after is S.HELD
        else:
            await fail(store, job)
            [change] = (await store.retry_jobs([job_id])).values()
            assert change.after is S.HELD

    assert await state(store, job_id) is S.HELD
    assert (await get(store, job_id)).limits == ("api",)
    assert await store.promote_jobs() == 1


async def test_scheduled_job_that_is_hastened_is_held(store: Store) -> None:
    job_id = await add(store, limits=("api",), delay=60)
    [change] = (await store.retry_jobs([job_id])).values()

    assert change.after is S.HELD
    assert await state(store, job_id) is S.HELD


async def test_edited_time_moves_a_held_job_and_back(store: Store, clock: FakeClock) -> None:
    job_id = await add(store, limits=("api",))
    later = await store.edit_job(job_id, {"run_at": clock.now() + timedelta(minutes=1)})
    now = await store.edit_job(job_id, {"run_at": clock.now()})

    assert (later.after, now.after) == (S.SCHEDULED, S.HELD)


async def test_follower_with_limits_is_first_a_follower_and_then_held(store: Store) -> None:
    first = await add(store, unique="k", limits=("api",))
    await store.promote_jobs()
    running = await claim_one(store)
    follower = (await insert(store, unique="k", on_conflict="follow", limits=("api",))).id

    assert await store.promote_jobs() == 0
    await complete(store, running)
    assert first == running.id
    assert await state(store, follower) is S.HELD
    assert await store.promote_jobs() == 1
    assert await state(store, follower) is S.READY


async def test_replaced_job_counts_under_its_new_keys_only(store: Store) -> None:
    await limit(store, "old", active=1)
    job_id = await add(store, unique="k", limits=("old",))
    await store.promote_jobs()
    replaced = await insert(store, unique="k", on_conflict="replace", limits=("new",))

    assert (replaced.outcome, replaced.state) == ("replaced", S.HELD)
    assert await store.promote_jobs() == 1
    assert await state(store, job_id) is S.READY
    found = {one.key: one.taken for one in await store.list_limits()}
    assert (found["old"], found["new"]) == (0, 1)
    await add(store, limits=("old",))
    assert await store.promote_jobs() == 1


async def test_edited_keys_are_those_a_ready_job_is_held_by(store: Store) -> None:
    await limit(store, "old", active=1)
    await limit(store, "new", active=0)
    job_id = await add(store, limits=("old",))
    await store.promote_jobs()
    change = await store.edit_job(job_id, {"limits": ("new", "old"), "max_hold_seconds": 60})
    job = await get(store, job_id)

    assert (change.before, change.after) == (S.READY, S.HELD)
    assert (job.limits, job.max_hold_seconds) == (("new", "old"), 60)
    assert await store.promote_jobs() == 0
    assert ((await info(store, "old")).taken, (await info(store, "new")).held) == (0, 1)
    await limit(store, "new", active=1)
    assert await store.promote_jobs() == 1
    assert (await claim_one(store)).id == job_id
    assert await tallied(store) == await counted(store)


async def test_job_without_keys_is_held_once_it_is_given_some(store: Store) -> None:
    await limit(store, active=1)
    first, second = await add_many(store, 2)
    for job_id in (first, second):
        assert (await store.edit_job(job_id, {"limits": ("api",)})).after is S.HELD

    assert await claim(store, 9) == []
    assert await store.promote_jobs() == 1
    assert ids(await claim(store, 9)) == [first]


async def test_job_whose_keys_are_taken_away_is_held_no_more(store: Store) -> None:
    await limit(store, active=0)
    job_id = await add(store, limits=("api", "acme"), max_hold_seconds=60)
    change = await store.edit_job(job_id, {"limits": ()})
    job = await claim_one(store)

    assert (change.before, change.after) == (S.HELD, S.READY)
    assert (job.id, job.limits, job.max_hold_seconds) == (job_id, (), None)
    assert await store.promote_jobs() == 0
    assert await tallied(store) == await counted(store)


async def test_ready_job_whose_keys_are_taken_away_leaves_its_slot(store: Store) -> None:
    await limit(store, active=1)
    job_id, other = await add_many(store, 2, limits=("api",))
    await store.promote_jobs()

    assert (await store.edit_job(job_id, {"limits": ()})).after is S.READY
    assert await store.promote_jobs() == 1
    assert sorted(ids(await claim(store, 9))) == sorted([job_id, other])


async def test_naming_the_same_keys_again_leaves_a_ready_job_in_the_line(store: Store) -> None:
    job_id = await add(store, limits=("a", "b"))
    await store.promote_jobs()

    assert (await store.edit_job(job_id, {"limits": ("a", "b")})).after is S.READY
    assert (await store.edit_job(job_id, {"limits": ("b", "a")})).after is S.HELD


async def test_edited_keys_count_from_when_the_job_comes_back(
    store: Store, clock: FakeClock
) -> None:
    """Paused, scheduled and failed jobs keep their state, and are held when they would be ready."""
    paused, later = await add(store), await add(store, delay=60)
    await store.pause_jobs([paused])
    failed = await add_failed(store)
    for job_id, kept in ((paused, S.PAUSED), (later, S.SCHEDULED), (failed, S.FAILED)):
        assert (await store.edit_job(job_id, {"limits": ("api",)})).after is kept

    clock.advance(60)
    await store.resume_jobs([paused])
    await store.stage_jobs()
    await store.retry_jobs([failed])
    assert await states(store, [paused, later, failed]) == [S.HELD] * 3
    for job_id in (paused, later, failed):
        await store.edit_job(job_id, {"limits": ()})
    assert await states(store, [paused, later, failed]) == [S.READY] * 3


async def test_follower_whose_keys_are_edited_still_follows(store: Store) -> None:
    await add(store, unique="k")
    running = await claim_one(store)
    follower = (await insert(store, unique="k", on_conflict="follow", limits=("api",))).id

    assert (await store.edit_job(follower, {"limits": ()})).after is S.HELD
    assert await claim(store) == []
    await complete(store, running)
    assert await state(store, follower) is S.READY


async def test_time_held_begins_when_a_ready_job_is_given_keys(
    store: Store, clock: FakeClock
) -> None:
    await limit(store, active=0)
    job_id = await add(store)
    clock.advance(3600)
    await store.edit_job(job_id, {"limits": ("api",), "max_hold_seconds": 60})

    assert await store.expire_jobs() == []
    clock.advance(61)
    assert [change.id for change in await store.expire_jobs()] == [job_id]


async def test_max_hold_can_be_edited_only_beside_limits(store: Store, clock: FakeClock) -> None:
    await limit(store, active=0)
    plain, held = await add(store), await add(store, limits=("api",))
    with pytest.raises(InvalidJob, match="max_hold is for jobs with limits"):
        await store.edit_job(plain, {"max_hold_seconds": 60, "priority": 9})

    assert (await get(store, plain)).priority == 5
    await store.edit_job(held, {"max_hold_seconds": 60})
    await store.edit_job(held, {"priority": 9})
    clock.advance(61)
    assert [change.id for change in await store.expire_jobs()] == [held]


async def test_edits_and_promotions_and_lower_limits_at_once_lose_no_job(
    store: Store, open_another: OpenAnother
) -> None:
    """A job that loses its keys while a lower limit holds it again would be held by nobody."""
    other = await open_another()
    job_ids = await add_many(store, 20, limits=("api",))
    for _ in range(5):
        await limit(store, active=20)
        await store.promote_jobs()
        await asyncio.gather(
            limit(other, active=2),
            *(store.edit_job(job_id, {"limits": ()}) for job_id in job_ids),
        )
        assert await states(store, job_ids) == [S.READY] * 20
        for job_id in job_ids:
            await store.edit_job(job_id, {"limits": ("api",)})


async def test_lower_limit_holds_ready_jobs_again_and_lets_active_ones_run(store: Store) -> None:
    await limit(store, active=6)
    job_ids = await add_many(store, 6, limits=("api",))
    await store.promote_jobs()
    running = await claim(store, 3)
    await limit(store, active=2)

    assert Counter(await states(store, job_ids)) == {S.ACTIVE: 3, S.HELD: 3}
    await complete(store, running[0])
    await complete(store, running[1])
    assert await store.promote_jobs() == 1
    assert (await info(store)).taken == 2


async def test_lower_limit_holds_the_last_in_the_line_again(store: Store) -> None:
    await limit(store, active=3)
    job_ids = await add_many(store, 3, limits=("api",))
    await store.promote_jobs()
    await limit(store, active=1)

    assert await states(store, job_ids) == [S.READY, S.HELD, S.HELD]


async def test_removed_limit_limits_no_more(store: Store) -> None:
    await limit(store, active=1)
    await add_many(store, 3, limits=("api",))
    await store.promote_jobs()

    assert await store.remove_limit("api") is True
    assert await store.remove_limit("api") is False
    assert await store.promote_jobs() == 2


async def test_rate_is_a_bucket_that_refills_with_time(store: Store, clock: FakeClock) -> None:
    await limit(store, per_second=2, burst=3)
    await add_many(store, 50, limits=("api",))
    started = []
    for _ in range(21):
        await store.promote_jobs()
        started += [clock.now()] * len(await claim(store, 50))
        clock.advance(0.5)

    assert len(started) == 3 + 2 * 10
    for first in started:
        within = [at for at in started if timedelta() <= at - first <= timedelta(seconds=2)]
        assert len(within) <= 3 + 2 * 2


async def test_idle_rate_saves_up_no_more_than_its_burst(store: Store, clock: FakeClock) -> None:
    await limit(store, per_second=10, burst=4)
    await add_many(store, 30, limits=("api",))
    await store.promote_jobs()
    clock.advance(3600)

    # Four lie ready unclaimed: with more they could all start at once.
    assert await store.promote_jobs() == 0
    assert len(await claim(store, 30)) == 4
    assert await store.promote_jobs() == 0
    clock.advance(3600)
    assert await store.promote_jobs() == 4


async def test_jobs_that_lay_ready_leave_no_room_for_as_many_more(
    store: Store, clock: FakeClock
) -> None:
    """Nobody looked while they lay there: when they start, their tokens are not there twice."""
    await limit(store, per_second=1, burst=5)
    await add_many(store, 30, limits=("api",))
    await store.promote_jobs()
    clock.advance(3600)
    for job in await claim(store, 5):
        await complete(store, job)

    assert await store.promote_jobs() == 0
    clock.advance(1)
    assert await store.promote_jobs() == 1


async def test_slow_rate_lets_one_go_each_time(store: Store, clock: FakeClock) -> None:
    await limit(store, per_second=0.1)
    await add_many(store, 3, limits=("api",))
    gone = []
    for _ in range(30):
        await store.promote_jobs()
        gone.append(len(await claim(store, 3)))
        clock.advance(1)

    assert gone == [1, *[0] * 9, 1, *[0] * 9, 1, *[0] * 9]


async def test_parked_key_starts_nothing_until_its_time(store: Store, clock: FakeClock) -> None:
    ready = await add(store, limits=("host", "api"))
    await store.promote_jobs()
    held = await add(store, limits=("host", "api"))
    plain = await add(store)
    await store.park_key("api", seconds=30)

    assert await store.promote_jobs() == 0
    assert ids(await claim(store, 5)) == [plain]
    assert await states(store, [ready, held]) == [S.READY, S.HELD]
    assert (await info(store)).parked_until == clock.now() + timedelta(seconds=30)
    clock.advance(30)
    assert await store.promote_jobs() == 1
    assert ids(await claim(store, 5)) == [ready, held]


async def test_parked_key_is_passed_over_by_every_kind_of_claim(store: Store) -> None:
    await add(store, limits=("api",))
    await add(store, limits=("api",), queue="other")
    await store.promote_jobs()
    running = await claim_one(store, "default")
    await add_many(store, 2, limits=("api",))
    await store.promote_jobs()
    await store.park_key("api", seconds=30)

    finished = await store.finish_jobs([], claim=wish(5, "default", "other"))
    assert finished.claimed == ()
    assert await claim(store, 5, "default", "other") == []
    await complete(store, running)


async def test_parked_key_is_freed_at_once(store: Store, clock: FakeClock) -> None:
    job_id = await add(store, limits=("api",))
    await store.park_key("api", until=clock.now() + timedelta(days=1))
    assert await store.promote_jobs() == 0
    await store.park_key("api")

    assert await store.promote_jobs() == 1
    assert ids(await claim(store)) == [job_id]


async def test_crashed_job_leaves_its_slot(store: Store, clock: FakeClock) -> None:
    await limit(store, active=1)
    await add(store, limits=("api",), max_crashes=1)
    other = await add(store, limits=("api",))
    await store.promote_jobs()
    await claim_one(store, seconds=5)
    clock.advance(6)

    assert await store.promote_jobs() == 0
    await store.rescue_jobs()
    assert await store.promote_jobs() == 1
    assert await state(store, other) is S.READY


@pytest.mark.parametrize("way", ["cancel", "delete", "pause"])
async def test_ready_job_that_is_taken_away_leaves_its_slot(store: Store, way: str) -> None:
    await limit(store, active=1)
    job_id = await add(store, limits=("api",))
    await add(store, limits=("api",))
    await store.promote_jobs()
    if way == "cancel":
        await store.cancel_jobs([job_id], "no")
    elif way == "delete":
        await store.delete_jobs([job_id])
    else:
        await store.pause_jobs([job_id])

    assert await store.promote_jobs() == 1


@pytest.mark.long
async def test_one_keys_many_jobs_do_not_starve_anothers_few(store: Store) -> None:
    many = await add_many(store, 300, limits=("many",))
    few = await add_many(store, 10, limits=("few",))
    order = await drain(store)

    assert set(order) == {*many, *few}
    # At most a window of the others was in the line when they came.
    assert max(order.index(job_id) for job_id in few) < WINDOW + 2 * 10 + 1


async def test_key_that_was_idle_saves_up_no_turns(store: Store) -> None:
    await limit(store, "shared", active=1)
    await add_many(store, 30, limits=("a", "shared"))
    await drain(store)
    first = set(await add_many(store, 20, limits=("a", "shared")))
    await add_many(store, 20, limits=("b", "shared"))
    order = await drain(store)

    assert sum(job_id in first for job_id in order[:20]) == pytest.approx(10, abs=1)


async def drain(store: Store) -> list[str]:
    """Run everything, one job at a time; the order in which they ended."""
    order = []
    await store.promote_jobs()
    while jobs := await claim(store, 1):
        await complete(store, jobs[0])
        order.append(jobs[0].id)
        await store.promote_jobs()
    return order


async def test_within_a_key_the_urgent_go_first(store: Store) -> None:
    await limit(store, active=1)
    await add(store, limits=("api",))
    await store.promote_jobs()
    late = await add(store, limits=("api",), priority=1)
    urgent = await add(store, limits=("api",), priority=9)

    assert (await drain(store))[1:] == [urgent, late]


async def test_seq_stays_unless_a_promotion_gives_a_higher_one(store: Store) -> None:
    limited, plain = await insert(store, limits=("api",)), await insert(store)
    await store.promote_jobs()
    later = await insert(store)
    found = await store.get_jobs([limited.id, plain.id])

    assert limited.seq <= found[limited.id].seq < later.seq
    assert limited.seq < plain.seq == found[plain.id].seq
    await claim(store, 5)
    again = await store.get_jobs([limited.id, plain.id])
    assert {i: job.seq for i, job in again.items()} == {i: job.seq for i, job in found.items()}


async def test_promoted_jobs_take_their_place_behind_those_that_wait(store: Store) -> None:
    held = await add(store, limits=("api",))
    plain = await add(store)
    await store.promote_jobs()
    later = await add(store)

    assert ids(await claim(store, 5)) == [plain, held, later]


async def test_more_keys_than_are_looked_at_at_once_all_get_their_turn(store: Store) -> None:
    await store.insert_jobs([row(limits=(f"key-{n:04}",)) for n in range(450)])

    assert [await store.promote_jobs() for _ in range(4)] == [200, 200, 50, 0]


async def test_job_that_is_held_too_long_fails_and_says_why(store: Store, clock: FakeClock) -> None:
    await limit(store, active=0)
    group = await make_group(store)
    job_id = await add(store, limits=("api",), max_hold_seconds=60, group=group.id)
    patient = await add(store, limits=("api",), max_hold_seconds=600)
    endless = await add(store, limits=("api",))
    clock.advance(59)
    assert await store.expire_jobs() == []
    clock.advance(2)
    [change] = await store.expire_jobs()

    assert (change.id, change.before, change.after) == (job_id, S.HELD, S.FAILED)
    job = await get(store, job_id)
    assert job.error == "held too long: waited 60 s for room under api (limit 0 active)"
    assert job.finished_at == clock.now()
    assert [error.reason for error in job.errors] == ["hold"]
    assert (await get_group(store, group.id)).ended_at == clock.now()
    clock.advance(3600)
    assert [change.id for change in await store.expire_jobs()] == [patient]
    assert await state(store, endless) is S.HELD


async def test_time_before_a_job_is_due_or_paused_is_not_time_held(
    store: Store, clock: FakeClock
) -> None:
    await limit(store, active=0)
    scheduled = await add(store, limits=("api",), max_hold_seconds=60, delay=100)
    paused = await add(store, limits=("api",), max_hold_seconds=60)
    await store.pause_jobs([paused])
    clock.advance(100)
    await store.stage_jobs()
    await store.resume_jobs([paused])
    clock.advance(59)
    assert await store.expire_jobs() == []
    clock.advance(2)

    assert {change.id for change in await store.expire_jobs()} == {scheduled, paused}


async def test_limits_tell_what_is_in_use_and_what_is_held(store: Store) -> None:
    await limit(store, active=2, per_second=50, burst=7)
    await add_many(store, 5, limits=("api", "host"))
    await store.promote_jobs()
    await claim_one(store)
    places: Any = {"in_use": 1, "ready": 1, "ready_queues": ("default",), "held": 3}

    assert await info(store) == LimitInfo("api", 2, 50, 7, **places)
    assert await info(store, "host") == LimitInfo("host", **places)
    assert (await counts(store))[S.HELD] == 3


async def test_finish_job_of_a_group_and_follow_ups_keep_their_limits(store: Store) -> None:
    group = await make_group(store, then=row("then", limits=("api",)))
    await add(store, group=group.id)
    job = await claim_one(store)
    await complete(store, job, then=(row("next", limits=("api",)),))

    assert (await counts(store))[S.HELD] == 2
    assert await store.promote_jobs() == 2


async def prune_all(store: Store, limit: int = 1000) -> int:
    """Forget the keys nobody uses, batch by batch; how many."""
    count, after = await store.prune_limits("", limit)
    while after:
        more, after = await store.prune_limits(after, limit)
        count += more
    return count


async def test_keys_that_nobody_uses_are_forgotten(store: Store, clock: FakeClock) -> None:
    await limit(store, "set", active=1)
    await limit(store, "heavy", per_second=2)
    await store.park_key("parked", seconds=60)
    for key in ("ready", "active", "done", "set", "heavy"):
        await add(store, key, limits=(key,))
    await store.promote_jobs()
    await claim(store, 1, kinds=("active",))
    [done] = await claim(store, 1, kinds=("done",))
    await complete(store, done)

    assert await prune_all(store) == 1
    clock.advance(60)
    assert await prune_all(store) == 1  # parked no more
    assert await prune_all(store) == 0
    assert [one.key for one in await store.list_limits()] == ["active", "heavy", "ready", "set"]


async def test_key_that_jobs_are_held_under_is_kept(store: Store) -> None:
    await limit(store, "full", active=0)
    await add(store, limits=("lane", "full"))
    await store.promote_jobs()
    assert await prune_all(store) == 0
    await limit(store, "full", active=1)
    await store.promote_jobs()
    await complete(store, await claim_one(store))

    assert await prune_all(store) == 1
    await store.remove_limit("full")
    assert await prune_all(store) == 1


async def test_forgotten_key_counts_its_next_jobs_as_before(store: Store) -> None:
    for _ in range(3):
        job_ids = await add_many(store, 3, limits=("api",))
        assert await store.promote_jobs() == 3
        for job in await claim(store, 9):
            await complete(store, job)
        assert await prune_all(store) == 1
        assert await states(store, job_ids) == [S.COMPLETED] * 3


async def test_limit_that_was_removed_leaves_no_slots_behind(store: Store) -> None:
    """Slots are counted under their key's lock, so the key goes when they have gone."""
    await limit(store, active=1)
    await add(store, limits=("api",))
    await store.promote_jobs()
    job = await claim_one(store)
    assert await store.remove_limit("api")
    assert not await store.remove_limit("api")
    assert await prune_all(store) == 0
    assert (await info(store)).taken == 1
    await complete(store, job)

    assert await prune_all(store) == 1


@pytest.mark.parametrize("at_once", [1, 2, 1000])
async def test_keys_are_forgotten_in_batches(store: Store, at_once: int) -> None:
    for n in range(5):
        await limit(store, f"set-{n}", active=1)
        await add(store, limits=(f"used-{n}",))
        await add(store, "done", limits=(f"done-{n}",))
    await store.promote_jobs()
    for job in await claim(store, 9, kinds=("done",)):
        await complete(store, job)

    assert await prune_all(store, at_once) == 5
    assert len(await store.list_limits()) == 10


async def test_keys_are_forgotten_by_several_at_once_while_they_are_set(
    store: Store, open_another: OpenAnother
) -> None:
    others = [await open_another() for _ in range(3)]
    for round in range(1, 11):
        await asyncio.gather(
            *(other.prune_limits() for other in others),
            limit(store, active=1),
            add(others[0], limits=("api",)),
            add(others[1], limits=("api",)),
            *(other.promote_jobs() for other in others),
            *(other.prune_limits() for other in others),
        )
        await store.promote_jobs()
        now = await info(store)
        assert (now.active, now.taken, now.held) == (1, 1, 1), round
        await store.remove_limit("api")
        await store.promote_jobs()
        for job in await claim(store, 9):
            await complete(store, job)
        pruned = await asyncio.gather(*(prune_all(other) for other in others))
        assert sum(pruned) + await prune_all(store) == 1
        assert await store.list_limits() == []


async def test_slots_are_not_lost_while_keys_are_forgotten(
    store: Store, open_another: OpenAnother
) -> None:
    """A job that is held and promoted again meanwhile must still be counted."""
    other, third = await open_another(), await open_another()
    job_ids = await add_many(store, 20, limits=("api",))
    await store.promote_jobs()

    async def come_and_go(some: list[str]) -> None:
        for _ in range(10):
            await store.pause_jobs(some)
            await store.resume_jobs(some)
            await store.promote_jobs(["api"])

    async def prune() -> None:
        for _ in range(30):
            await other.prune_limits()
            await third.prune_limits()

    await asyncio.gather(come_and_go(job_ids[:10]), come_and_go(job_ids[10:]), prune())
    await store.promote_jobs()
    assert await counts(store) == {S.READY: 20}
    await limit(store, active=3)
    assert await counts(store) == {S.READY: 3, S.HELD: 17}


@pytest.mark.requires("many_machines")
async def test_open_transaction_of_a_caller_keeps_nobody_of_the_key_waiting(
    store: Store, caller: Caller
) -> None:
    """N6: it has inserted jobs of the key, and replaced one; the key's other jobs run on."""
    await limit(store, active=2)
    await add(store, limits=("api",), unique="k", priority=9)
    free = await add_many(store, 3, limits=("api",))
    rows = [
        *(row(limits=("api",)) for _ in range(3)),
        row(limits=("api",), unique="k", on_conflict="replace"),
    ]
    await store.insert_jobs(rows, tx=caller.connection)

    async with asyncio.timeout(60):
        await limit(store, active=3)
        assert await store.promote_jobs() == 2  # the one it replaces is passed over
        first, second = await claim(store, 5)
        await complete(store, first)
        assert await store.promote_jobs(["api"]) == 1
        assert {first.id, second.id} < set(free)
    await caller.commit()
    assert (await counts(store))[S.HELD] == 4


async def test_claims_and_promotions_at_once_keep_to_the_limit(
    store: Store, open_another: OpenAnother
) -> None:
    await limit(store, active=3)
    await add_many(store, 60, limits=("api", "host"))
    others = [store, await open_another(), await open_another()]

    async def run(one: Store) -> int:
        most = 0
        while True:
            await one.promote_jobs()
            jobs = await claim(one, 2)
            if not jobs and not (await counts(one)).get(S.HELD):
                return most
            most = max(most, (await info(one)).taken)
            for job in jobs:
                await complete(one, job)

    assert max(await asyncio.gather(*(run(one) for one in others))) <= 3


async def test_limits_can_be_listed_without_counting_what_is_held(store: Store) -> None:
    await limit(store, "host", active=1)
    await add_many(store, 3, limits=("host",))
    await add(store, limits=("other",))
    await store.promote_jobs(["host"])

    [host] = await store.list_limits(counts_held=False)

    assert (host.key, host.taken, host.held) == ("host", 1, 0)
    assert {one.key: one.held for one in await store.list_limits()} == {"host": 2, "other": 1}
