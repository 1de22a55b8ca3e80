"""Everything at once: several stores on one database do random verbs, and the sums stay true.

No order of events is expected here, only what must hold whatever the order: no verb fails for
another's sake, keys stay unique, groups count their members and end, nothing is left hanging.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from tests.builders import EVERYTHING, boom, counted, finish_of, get_group, ids, row, tallied, wish
from windrow.clock import FakeClock
from windrow.errors import GroupEnded, InvalidJob, JobNotFound
from windrow.ids import new_id
from windrow.queue.job import FINAL, LIVE, Job, JobState
from windrow.queue.records import GroupRow, JobRow
from windrow.queue.store import Store

STORES = 4
VERBS_EACH = 120
ENDS = (*(JobState.COMPLETED,) * 4, JobState.FAILED, JobState.CANCELLED, *(JobState.READY,) * 2)


class Actor:
    """One store and its dice; what all of them made is shared."""

    def __init__(self, store: Store, clock: FakeClock, seed: int, shared: Shared) -> None:
        self.store = store
        self.clock = clock
        self.dice = random.Random(seed)
        self.shared = shared
        self.running: list[Job] = []

    async def act(self) -> None:
        verbs: list[tuple[int, Callable[[], Awaitable[object]]]] = [
            (8, self.insert),
            (8, self.claim),
            (12, self.finish),
            (2, self.create_group),
            (1, self.end_group),
            (3, self.change_jobs),
            (2, self.maintain),
        ]
        weights, choices = zip(*verbs, strict=True)
        for _ in range(VERBS_EACH):
            [verb] = self.dice.choices(choices, weights)
            try:
                await verb()
            except (GroupEnded, InvalidJob, JobNotFound):
                continue  # somebody else was faster

    async def insert(self) -> None:
        inserted = await self.store.insert_jobs(
            [self.new() for _ in range(self.dice.randint(1, 6))]
        )
        self.shared.jobs += [one.id for one in inserted]

    def new(self) -> JobRow:
        unique = self.dice.choice([None, None, *"abcdef"])
        mode = self.dice.choice(["return", "replace", "follow", "follow"])
        group = self.dice.choice([None, *self.shared.groups[-4:]])
        return row(
            unique=unique,
            on_conflict=mode if unique else "return",
            group=group,
            priority=self.dice.randint(1, 3),
            delay=self.dice.choice([0, 0, 30]),
        )

    async def claim(self) -> None:
        self.running += await self.store.claim_jobs(wish(self.dice.randint(1, 8)))

    async def finish(self) -> None:
        self.dice.shuffle(self.running)
        now, self.running = self.running[:5], self.running[5:]
        ends = [
            finish_of(
                job,
                self.dice.choice(ENDS),
                error=boom(),
                then=tuple(self.new() for _ in range(self.dice.choice([0, 0, 1]))),
            )
            for job in now
        ]
        claim = wish(3) if self.dice.random() < 0.5 else None
        finished = await self.store.finish_jobs(ends, claim=claim)
        self.running += finished.claimed

    async def create_group(self) -> None:
        root = self.dice.choice(self.shared.jobs) if self.dice.random() < 0.5 else None
        then = row("then", queue="then")
        new = GroupRow(id=new_id(), root=root, then=then, is_open=self.dice.random() < 0.3)
        made = await self.store.create_group(new)
        if made.id == new.id:
            self.shared.groups.append(made.id)
            self.shared.then.append(then.id)

    async def end_group(self) -> None:
        group_id = self.dice.choice(self.shared.groups)
        if self.dice.random() < 0.5:
            await self.store.close_group(group_id)
        else:
            await self.store.cancel_group(group_id, "enough")

    async def change_jobs(self) -> None:
        some = self.dice.sample(self.shared.jobs, min(4, len(self.shared.jobs)))
        verbs = [self.store.pause_jobs, self.store.resume_jobs, self.store.retry_jobs]
        await self.dice.choice([*verbs, self.cancel])(some)

    async def cancel(self, some: list[str]) -> None:
        await self.store.cancel_jobs(some, "no")

    async def maintain(self) -> None:
        self.clock.advance(self.dice.choice([1, 10, 40]))
        await self.store.stage_jobs()
        await self.store.rescue_jobs()
        await self.store.fold_counts()


class Shared:
    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.groups: list[str] = []
        self.then: list[str] = []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.long
async def test_sums_stay_true_in_a_storm(
    store: Store, open_another, clock: FakeClock, seed: int
) -> None:
    shared = Shared()
    stores = [await open_another() for _ in range(STORES)]
    actors = [Actor(one, clock, 100 * seed + n, shared) for n, one in enumerate(stores)]
    await actors[0].insert()
    shared.groups.append((await store.create_group(GroupRow(id=new_id()))).id)
    await asyncio.gather(*(actor.act() for actor in actors))

    await check_sums(store, shared)
    await calm_down(store, clock, shared)
    await check_sums(store, shared)
    await check_ends(store, shared)


async def check_sums(store: Store, shared: Shared) -> None:
    jobs = await store.list_jobs(EVERYTHING, limit=100_000)
    assert await tallied(store) == await counted(store)
    keys = Counter(job.unique for job in jobs if job.unique and job.state in LIVE)
    assert max(keys.values(), default=0) <= 2
    pending = Counter(job.group for job in jobs if job.state in LIVE)
    for group_id in shared.groups:
        found = await get_group(store, group_id)
        assert found.pending == pending[group_id]
        assert sum(n for s, n in found.counts.items() if s not in FINAL) == found.pending


async def calm_down(store: Store, clock: FakeClock, shared: Shared) -> None:
    """Run everything to its end: nothing may be stuck."""
    for _ in range(20):
        clock.advance(100)
        await store.rescue_jobs()
        await store.stage_jobs()
        await store.resume_jobs(ids(await store.list_jobs(EVERYTHING, limit=100_000)))
        for job in await store.claim_jobs(wish(1000)):
            await store.finish_jobs([finish_of(job, JobState.COMPLETED)])
        for group_id in shared.groups:
            await store.close_group(group_id)


async def check_ends(store: Store, shared: Shared) -> None:
    jobs = {job.id: job for job in await store.list_jobs(EVERYTHING, limit=100_000)}
    assert {job.state for job in jobs.values()} <= FINAL
    ended = [await get_group(store, group_id) for group_id in shared.groups]
    assert {found.pending for found in ended} == {0}
    assert all(found.ended_at for found in ended)
    assert {job_id for job_id, job in jobs.items() if job.kind == "then"} == set(shared.then)
