"""elect_leader: one holder of a role at a time, by the database's clock and without a session."""

from __future__ import annotations

import asyncio

import pytest

from tests.conftest import OpenAnother
from tests.faults import FaultyStore
from windrow.clock import Clock, FakeClock
from windrow.errors import StoreUnavailable
from windrow.queue.store import Store


async def test_free_role_is_taken_and_others_are_refused(store: Store) -> None:
    assert await store.elect_leader("cron", "a", 10)
    assert not await store.elect_leader("cron", "b", 10)


async def test_roles_have_leaders_of_their_own(store: Store) -> None:
    assert await store.elect_leader("cron", "a", 10)
    assert await store.elect_leader("prune", "b", 10)


async def test_renewing_lasts_from_now(store: Store, clock: FakeClock) -> None:
    await store.elect_leader("cron", "a", 10)
    clock.advance(9)
    assert await store.elect_leader("cron", "a", 10)
    clock.advance(9)
    assert not await store.elect_leader("cron", "b", 10)


async def test_role_is_free_when_its_time_is_over(store: Store, clock: FakeClock) -> None:
    await store.elect_leader("cron", "a", 0.5)
    clock.advance(0.499999)
    assert not await store.elect_leader("cron", "b", 10)
    clock.advance(0.000001)
    assert await store.elect_leader("cron", "b", 10)
    assert not await store.elect_leader("cron", "a", 10)


async def test_resigning_frees_the_role_at_once(store: Store) -> None:
    await store.elect_leader("cron", "a", 10)
    assert not await store.resign_leader("cron", "b")
    assert not await store.elect_leader("cron", "b", 10)
    assert await store.resign_leader("cron", "a")
    assert not await store.resign_leader("cron", "a")
    assert await store.elect_leader("cron", "b", 10)


async def test_election_whose_reply_was_lost_is_repeated(store: Store) -> None:
    faulty = FaultyStore(store)
    faulty.lose_reply("elect_leader")
    with pytest.raises(StoreUnavailable):
        await faulty.elect_leader("cron", "a", 10)
    assert await faulty.elect_leader("cron", "a", 10)


async def test_of_many_who_race_one_wins(
    store: Store, open_another: OpenAnother, clock: FakeClock
) -> None:
    stores = [store, *[await open_another() for _ in range(3)]]
    for _ in range(20):
        won = await asyncio.gather(
            *(stores[n % 4].elect_leader("cron", f"worker-{n}", 10) for n in range(12))
        )
        assert won.count(True) == 1
        clock.advance(10)


async def test_the_databases_own_clock_counts_when_none_is_given(open_another: OpenAnother) -> None:
    real = await open_another(Clock())
    assert await real.elect_leader("cron", "a", 3600)
    assert not await real.elect_leader("cron", "b", 3600)
    assert await real.elect_leader("cron", "a", 0)
    assert await real.elect_leader("cron", "b", 3600)
