"""Runs of jobs whose queue is elsewhere: their rows are there once, and the first end stands."""

from __future__ import annotations

import asyncio

import pytest

from windrow.errors import LeaseLost
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("job_transactions")
RACERS = 6


@pytest.fixture
async def far(store: Store) -> Store:
    await store.change_rows("create table effect (run integer not null)")
    return store


async def keep(far: Store, key: str, run: int, ended: str | None = None) -> str | None:
    tx = await far.begin()
    await tx.execute("insert into effect values ($1)", run)
    return await far.keep_far_run(key, run, ended, tx)


async def effects(far: Store) -> list[int]:
    found = await far.fetch_rows("select run from effect order by run")
    return [row["run"] for row in found]


async def test_a_run_may_write_until_it_has_ended_and_its_end_stands(far: Store) -> None:
    assert await keep(far, "job", 1) is None
    assert await keep(far, "job", 1) is None
    assert await far.find_far_ends(["job", "other"]) == {}
    assert await keep(far, "job", 2, '"the end"') is None
    for run in (1, 2, 3):
        assert await keep(far, "job", run, '"another"') == '"the end"'
        assert await keep(far, "job", run) == '"the end"'
    assert await effects(far) == [1, 1, 2]
    assert await far.find_far_ends(["job", "other"]) == {"job": '"the end"'}


async def test_a_run_that_is_behind_another_writes_nothing(far: Store) -> None:
    await keep(far, "job", 2)
    with pytest.raises(LeaseLost):
        await keep(far, "job", 1)
    with pytest.raises(LeaseLost):
        await keep(far, "job", 1, '"too late"')
    assert await keep(far, "job", 2, '"the end"') is None
    assert await effects(far) == [2, 2]


async def test_of_runs_that_end_at_once_one_does(far: Store) -> None:
    # No more of them than a store has connections: each holds one until it has ended.
    ends = await asyncio.gather(*(keep(far, "job", 1, f'"{n}"') for n in range(RACERS)))
    [first] = set(ends) - {None}
    assert ends.count(None) == 1
    assert ends.index(None) == int(str(first).strip('"'))
    assert await effects(far) == [1]


async def test_runs_are_listed_when_they_are_old_and_forgotten(far: Store) -> None:
    for key in ("c", "a", "b"):
        await keep(far, key, 1, '"end"')
    assert await far.list_far_runs(60, limit=10) == []
    assert await far.list_far_runs(0, limit=2) == ["a", "b"]
    assert await far.list_far_runs(0, after="b", limit=2) == ["c"]
    await far.drop_far_runs(["a", "c"])
    assert await far.list_far_runs(0, limit=10) == ["b"]
    assert await keep(far, "a", 1) is None, "it is another one"
