"""list_groups: pages of groups, newest first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import UNKNOWN_ID, add, add_many, claim_one, complete, make_group
from windrow.queue.job import JobState
from windrow.queue.records import GroupFilter
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("groups")

ANY = GroupFilter()


async def ids(store: Store, wanted: GroupFilter = ANY, **page: Any) -> list[str]:
    return [group.id for group in await store.list_groups(wanted, **page)]


async def test_groups_are_listed_newest_first_page_by_page(store: Store) -> None:
    made = [(await make_group(store)).id for _ in range(5)]
    made.reverse()
    assert await ids(store) == made
    assert await ids(store, limit=2) == made[:2]
    assert await ids(store, after=made[1], limit=2) == made[2:4]
    assert await ids(store, after=made[-1]) == []
    assert await ids(store, after=UNKNOWN_ID) == []


async def test_listing_tells_what_has_ended_and_how_many_are_left(store: Store) -> None:
    group = await make_group(store)
    await add_many(store, 3, group=group.id)
    await complete(store, await claim_one(store))

    [listed] = await store.list_groups(ANY)

    assert (listed.state, listed.pending) == ("active", 2)
    assert listed.counts == {JobState.COMPLETED: 1}
    assert listed.created_at == group.created_at


async def test_groups_of_a_state(store: Store) -> None:
    ended = await make_group(store)
    running = await make_group(store)
    cancelled = await make_group(store)
    await add(store, group=ended.id)
    await complete(store, await claim_one(store))
    await add(store, group=running.id)
    await add(store, group=cancelled.id)
    await store.cancel_group(cancelled.id, "enough")

    assert await ids(store, GroupFilter(state="active")) == [running.id]
    assert await ids(store, GroupFilter(state="completed")) == [ended.id]
    assert await ids(store, GroupFilter(state="cancelled")) == [cancelled.id]


async def test_paused_groups_and_those_of_a_tenant(store: Store) -> None:
    first = await make_group(store, tenant="acme")
    second = await make_group(store)
    await store.pause_group(second.id)

    assert await ids(store, GroupFilter(is_paused=True)) == [second.id]
    assert await ids(store, GroupFilter(tenant="acme")) == [first.id]
    assert await ids(store, GroupFilter(is_paused=True, tenant="acme")) == []
