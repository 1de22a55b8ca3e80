"""Claims of very many queues: they look at few of them, and still take the best jobs first."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.builders import add_many, claim, completion, ids, row, wish
from windrow.queue import heads
from windrow.queue.job import Job
from windrow.queue.records import JobRow
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("groups")

QUEUES = heads.MANY_QUEUES + 40


@pytest.fixture(autouse=True)
def long_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing is used until it has too few jobs, however slow the machine is."""
    monkeypatch.setattr(heads, "LISTING_SECONDS", 3600)


def rows_of(seed: int, most: int = 4) -> list[JobRow]:
    """Some jobs in each queue, in any order, of few priorities."""
    chance = random.Random(seed)
    rows = [
        row(queue=f"queue-{n:03}", priority=chance.choice([1, 5, 5, 9]))
        for n in range(QUEUES)
        for _ in range(chance.randint(1, most))
    ]
    chance.shuffle(rows)
    return rows


def best_first(rows: Sequence[JobRow]) -> list[str]:
    return [one.id for one in sorted(rows, key=lambda one: -one.priority)]


@pytest.mark.parametrize("limit", [1, 7, 60, 500])
async def test_claims_of_many_queues_take_the_best_jobs_in_their_order(
    store: Store, limit: int
) -> None:
    rows = rows_of(limit, most=2 if limit == 1 else 4)
    await store.insert_jobs(rows)
    claimed: list[Job] = []
    while jobs := await claim(store, limit):
        claimed += jobs
    assert ids(claimed) == best_first(rows)


async def test_ends_that_claim_of_many_queues_take_the_best_jobs_in_their_order(
    store: Store,
) -> None:
    rows = rows_of(1)
    await store.insert_jobs(rows)
    jobs: Sequence[Job] = await claim(store, 9)
    claimed: list[Job] = []
    while jobs:
        claimed += jobs
        finished = await store.finish_jobs(list(map(completion, jobs)), claim=wish(9))
        jobs = finished.claimed
    assert ids(claimed) == best_first(rows)


async def test_long_queue_among_many_is_claimed_from_again_and_again(store: Store) -> None:
    first = await add_many(store, 60, queue="long")
    rest = rows_of(2, most=1)
    await store.insert_jobs([one for one in rest if one.priority <= 5])
    claimed = [job for _ in range(6) for job in await claim(store, 10)]
    assert ids(claimed) == first


@pytest.mark.parametrize("with_kinds", [False, True])
async def test_queues_are_listed_again_only_when_they_have_too_few_jobs(
    store: Store, monkeypatch: pytest.MonkeyPatch, with_kinds: bool
) -> None:
    """To list very many takes long."""
    listed: list[float] = []
    relist = heads.Heads.relist

    def spy(self: heads.Heads, places: Any, took: float, **options: Any) -> None:
        listed.append(took)
        relist(self, places, took, **options)

    monkeypatch.setattr(heads.Heads, "relist", spy)
    await add_many(store, 200, queue="long", kind="mine")
    await store.insert_jobs(
        [row("other", queue=f"queue-{n:03}", priority=9) for n in range(QUEUES)]
    )
    kinds = ("mine",) if with_kinds else None
    jobs: Sequence[Job] = await claim(store, 20, kinds=kinds)
    for _ in range(4):
        ends = list(map(completion, jobs))
        jobs = (await store.finish_jobs(ends, claim=wish(20, kinds=kinds))).claimed
        assert len(jobs) == 20
    assert len(listed) == 1


async def test_queues_whose_jobs_are_of_another_kind_hide_nothing(store: Store) -> None:
    await store.insert_jobs([row("other", queue=one.queue) for one in rows_of(3)])
    rows = [row("mine", queue=f"queue-{n:03}") for n in range(0, QUEUES, 9)]
    await store.insert_jobs(rows)
    await store.insert_jobs([row("other", queue=one.queue, priority=9) for one in rows])

    claimed = [job for _ in range(3) for job in await claim(store, 5, kinds=("mine",))]
    assert ids(claimed) == [one.id for one in rows][: len(claimed)]
    assert len(claimed) == min(15, len(rows))


async def test_paused_queues_among_many_are_passed_over(store: Store) -> None:
    rows = rows_of(4, most=1)
    await store.insert_jobs(rows)
    await claim(store, 1)
    await store.pause_queue("queue-007")
    claimed: list[Job] = []
    while jobs := await claim(store, 10):
        claimed += jobs
    assert "queue-007" not in {job.queue for job in claimed}
    assert len(claimed) >= len(rows) - 2
    await store.resume_queue("queue-007")
    assert len(claimed) + len(await claim(store, 10)) == len(rows) - 1


async def test_jobs_that_come_meanwhile_are_claimed_when_others_are_too_few(
    store: Store, open_another
) -> None:
    rows = rows_of(5, most=1)
    await store.insert_jobs(rows)
    claimed = await claim(store, 10)
    other = await open_another()
    await other.insert_jobs(late := [row(queue="new"), row(queue="queue-003")])
    while jobs := await claim(store, 10):
        claimed += jobs
    assert sorted(ids(claimed)) == sorted(one.id for one in [*rows, *late])


@pytest.mark.parametrize("seed", range(3))
async def test_each_job_of_many_queues_is_claimed_once_by_many_at_a_time(
    store: Store, open_another, seed: int
) -> None:
    rows = [*rows_of(seed, most=6), *(row(queue="long") for _ in range(200))]
    half = len(rows) // 2
    await store.insert_jobs(rows[:half])
    stores = [store, await open_another()]
    claimed: list[Job] = []

    async def drain(one: Store, limit: int) -> None:
        jobs: Sequence[Job] = await claim(one, limit)
        while jobs:
            claimed.extend(jobs)
            ends = list(map(completion, jobs))
            jobs = (await one.finish_jobs(ends, claim=wish(limit))).claimed

    drains = [drain(one, limit) for one in stores for limit in (3, 20, 50)]
    await asyncio.gather(*drains, store.insert_jobs(rows[half:]))
    while jobs := await claim(stores[1], 10):
        claimed += jobs
    assert sorted(ids(claimed)) == sorted(one.id for one in rows)
