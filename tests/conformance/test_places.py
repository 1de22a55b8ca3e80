"""Places of a limit that their jobs cannot use go to jobs that can."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.builders import (
    add,
    add_many,
    claim,
    claim_one,
    complete,
    counted,
    ids,
    make_group,
    row,
    state,
    states,
    tallied,
    wish,
)
from windrow.clock import FakeClock
from windrow.ids import new_id
from windrow.queue.job import JobState
from windrow.queue.limits import PATIENCE_SECONDS, UNSERVED_SECONDS
from windrow.queue.records import LimitInfo, LimitRow, WorkerRow
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("limits")

S = JobState
LATER = PATIENCE_SECONDS + 1


async def info(store: Store, key: str = "acme") -> LimitInfo:
    return {one.key: one for one in await store.list_limits()}[key]


def worker(*, queues: tuple[str, ...] | None = None, kinds: tuple[str, ...]) -> WorkerRow:
    return WorkerRow(new_id(), "w", "host", 1, queues, kinds, 10)


async def several(store: Store, count: int, kind: str, **fields: Any) -> list[str]:
    rows = [row(kind, **fields) for _ in range(count)]
    return [one.id for one in await store.insert_jobs(rows)]


async def test_jobs_of_a_paused_queue_give_their_places_to_others_at_once(store: Store) -> None:
    await store.set_limit(LimitRow("acme", active=2))
    stuck = await add_many(store, 2, queue="reports", limits=("acme",))
    assert await store.promote_jobs() == 2
    await store.pause_queue("reports")
    waiting = await add_many(store, 3, limits=("acme",))

    assert await store.promote_jobs() == 2
    assert await states(store, stuck) == [S.HELD, S.HELD]
    assert sorted(ids(await claim(store, 9))) == sorted(waiting[:2])
    assert (await info(store)).in_use == 2
    assert await tallied(store) == await counted(store)


async def test_jobs_of_a_paused_queue_keep_places_that_nobody_wants(store: Store) -> None:
    await store.set_limit(LimitRow("acme", active=2))
    job_id = await add(store, queue="reports", limits=("acme",))
    await store.promote_jobs()
    await store.pause_queue("reports")
    await add(store, limits=("acme",))

    assert await store.promote_jobs() == 1
    assert await state(store, job_id) is S.READY


async def test_held_jobs_of_a_paused_queue_are_passed_over_until_it_is_resumed(
    store: Store,
) -> None:
    await store.set_limit(LimitRow("acme", active=1))
    await store.pause_queue("reports")
    await add_many(store, 300, queue="reports", limits=("acme", "host"))
    runnable = await add(store, limits=("acme",))

    assert await store.promote_jobs() == 1
    assert await state(store, runnable) is S.READY
    await complete(store, await claim_one(store))
    assert await store.promote_jobs() == 0
    await store.resume_queue("reports")
    assert await store.promote_jobs() == 1


async def test_members_of_a_paused_group_give_their_places_to_others(store: Store) -> None:
    await store.set_limit(LimitRow("acme", active=1))
    group = (await make_group(store, is_open=True)).id
    member = await add(store, group=group, limits=("acme",))
    await store.promote_jobs()
    await store.pause_group(group)
    other = await add(store, limits=("acme",))

    assert await store.promote_jobs() == 1
    assert await states(store, [member, other]) == [S.HELD, S.READY]


async def test_job_whose_other_key_is_parked_gives_its_place_to_others(store: Store) -> None:
    await store.set_limit(LimitRow("acme", active=1))
    stuck = await add(store, limits=("acme", "api"))
    await store.promote_jobs()
    await store.park_key("api", seconds=600)
    other = await add(store, limits=("acme",))

    assert await store.promote_jobs() == 1
    assert await states(store, [stuck, other]) == [S.HELD, S.READY]


async def test_job_that_nobody_claims_gives_its_place_to_another_kind_in_time(
    store: Store, clock: FakeClock
) -> None:
    await store.set_limit(LimitRow("acme", active=2))
    stuck = await several(store, 2, "unknown", limits=("acme",))
    await store.promote_jobs()
    waiting = await several(store, 3, "known", limits=("acme",))

    assert await store.promote_jobs() == 0
    clock.advance(LATER)
    assert await store.promote_jobs() == 2
    assert await states(store, stuck) == [S.HELD, S.HELD]
    assert sorted(ids(await claim(store, 9, kinds=("known",)))) == sorted(waiting[:2])


async def test_jobs_of_one_kind_do_not_take_each_others_places(
    store: Store, clock: FakeClock
) -> None:
    """They wait for the same worker: it would be a change without an end."""
    await store.set_limit(LimitRow("acme", active=1))
    first, second = await add_many(store, 2, limits=("acme",))
    await store.promote_jobs()
    clock.advance(LATER)

    assert await store.promote_jobs() == 0
    assert await states(store, [first, second]) == [S.READY, S.HELD]


async def test_many_jobs_that_nobody_serves_do_not_hide_a_few_that_can_run(
    store: Store, clock: FakeClock
) -> None:
    await store.set_limit(LimitRow("acme", active=1))
    await several(store, 500, "unknown", limits=("acme",))
    await store.promote_jobs()
    waiting = await several(store, 3, "known", limits=("acme", "host"))
    clock.advance(LATER)
    await store.promote_jobs()
    for job_id in waiting:
        assert await store.promote_jobs() <= 1
        job = await claim_one(store, kinds=("known",))
        assert job.id == job_id
        await complete(store, job)


@pytest.mark.parametrize("is_paused", [True, False])
async def test_keys_of_very_many_jobs_that_cannot_run_hide_no_key_whose_job_can(
    store: Store, clock: FakeClock, is_paused: bool
) -> None:
    await store.set_limit(LimitRow("acme", active=2))
    rows = [row("unknown", queue="reports", limits=(f"host-{n}", "acme")) for n in range(500)]
    await store.insert_jobs(rows)
    await store.promote_jobs(rounds=10)
    known = await several(store, 2, "known", limits=("the-last-host", "acme"))
    if is_paused:
        await store.pause_queue("reports")
    clock.advance(LATER)

    assert await store.promote_jobs(rounds=10) == 2
    assert await states(store, known) == [S.READY, S.READY]
    assert (await info(store)).taken == 2


async def test_lane_that_nobody_serves_gets_the_places_that_are_left(
    store: Store, clock: FakeClock
) -> None:
    await store.set_limit(LimitRow("acme", active=1))
    stuck = await add(store, "unknown", limits=("acme",))
    await store.promote_jobs()
    await add(store, "known", limits=("acme",))
    clock.advance(LATER)
    await store.promote_jobs()
    await complete(store, await claim_one(store, kinds=("known",)))

    assert await store.promote_jobs() == 1
    assert await state(store, stuck) is S.READY
    newer = await add(store, "known", limits=("acme",))
    assert await store.promote_jobs() == 1, "its place is wanted again, at once"
    assert await states(store, [stuck, newer]) == [S.HELD, S.READY]


@pytest.mark.parametrize("way", ["worker", "claim", "time"])
async def test_lane_takes_part_again_once_somebody_asks_for_its_jobs(
    store: Store, clock: FakeClock, way: str
) -> None:
    await store.set_limit(LimitRow("acme", active=1))
    stuck = await add(store, "unknown", limits=("acme",))
    await store.promote_jobs()
    first, second = await several(store, 2, "known", limits=("acme",))
    clock.advance(LATER)
    await store.promote_jobs()
    running = await claim_one(store, kinds=("known",))
    if way == "worker":
        await store.register_worker(worker(kinds=("unknown", "known")), 30)
    elif way == "claim":
        asked = replace(wish(1), kinds=("unknown",))
        assert await store.promote_jobs(claim=asked) == 0
    else:
        clock.advance(UNSERVED_SECONDS + 1)
    await complete(store, running)

    assert running.id == first
    assert await store.promote_jobs() == 1
    assert await states(store, [stuck, second]) == [S.READY, S.HELD]


async def test_kind_that_a_worker_takes_goes_before_those_that_none_takes(
    store: Store, clock: FakeClock
) -> None:
    """However many kinds nobody serves, each would keep the place for some seconds."""
    await store.set_limit(LimitRow("acme", active=1))
    await store.register_worker(worker(kinds=("known",)), 60)
    for kind in ("one", "two", "three"):
        await add(store, kind, limits=("acme",))
    await store.promote_jobs()
    known = await add(store, "known", limits=("acme",))
    clock.advance(LATER)

    assert await store.promote_jobs() == 1
    assert await state(store, known) is S.READY


async def test_loop_that_asks_goes_before_kinds_that_workers_do_not_take(
    store: Store, clock: FakeClock
) -> None:
    await store.set_limit(LimitRow("acme", active=1))
    await store.register_worker(worker(queues=("other",), kinds=("x",)), 60)
    await add(store, "unknown", limits=("acme",))
    await store.promote_jobs()
    mine = await add(store, "mine", limits=("acme",))
    clock.advance(LATER)

    assert await store.promote_jobs(claim=replace(wish(1), kinds=("mine",))) == 1
    assert await state(store, mine) is S.READY


async def test_tenants_whose_loop_is_gone_do_not_keep_others_from_a_shared_limit(
    store: Store, clock: FakeClock
) -> None:
    await store.set_limit(LimitRow("host", active=1))
    await add_many(store, 5, tenant="gone", limits=("host",))
    await store.promote_jobs()
    own = await add(store, tenant="here", limits=("host",))
    clock.advance(LATER)

    assert await store.promote_jobs(claim=replace(wish(1), tenants=("here",))) == 1
    assert await state(store, own) is S.READY


async def test_token_of_a_job_that_did_not_start_is_given_back(
    store: Store, clock: FakeClock
) -> None:
    await store.set_limit(LimitRow("acme", per_second=0.001, burst=1))
    await add(store, queue="reports", limits=("acme",))
    await store.promote_jobs()
    await store.pause_queue("reports")
    await add_many(store, 2, limits=("acme",))

    assert await store.promote_jobs() == 1
    assert len(await claim(store, 9)) == 1
    clock.advance(LATER)
    assert await store.promote_jobs() == 0, "one start took the only token"


async def test_jobs_that_cannot_run_do_not_fill_the_window_of_a_key_without_limit(
    store: Store, clock: FakeClock
) -> None:
    await several(store, 60, "unknown", limits=("acme",))
    await store.promote_jobs()
    known = await add(store, "known", limits=("acme",))
    clock.advance(LATER)

    assert await store.promote_jobs() == 1
    assert await state(store, known) is S.READY


async def test_job_that_gave_its_place_back_is_first_again_in_its_old_place(
    store: Store, clock: FakeClock
) -> None:
    """Else a job of a busy queue would begin at the end of the line each time, and never run."""
    await store.set_limit(LimitRow("acme", active=1))
    stuck = await add(store, "slow", limits=("acme",))
    await store.promote_jobs()
    behind = await add(store, "slow")
    await add(store, "slow", limits=("acme",))
    await add(store, "known", limits=("acme",))
    clock.advance(LATER)
    await store.promote_jobs()
    await complete(store, await claim_one(store, kinds=("known",)))
    assert await store.promote_jobs() == 1

    assert ids(await claim(store, 9, kinds=("slow",))) == [stuck, behind]


async def test_job_claimed_while_others_want_its_place_keeps_it(
    store: Store, clock: FakeClock
) -> None:
    await store.set_limit(LimitRow("acme", active=1))
    slow = await add(store, "slow", limits=("acme",))
    await store.promote_jobs()
    await add(store, "known", limits=("acme",))
    clock.advance(LATER)
    assert ids(await claim(store, kinds=("slow",))) == [slow]

    assert await store.promote_jobs() == 0
    assert (await info(store)).taken == 1
