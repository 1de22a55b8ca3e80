"""Rows, keys and groups are locked in one order, so that busy workers do not deadlock.

A deadlock is retried and loses nothing, but it costs a second (`deadlock_timeout`) before the
server breaks it. Here workers end runs of several groups and hand on jobs with unique keys,
producers add jobs with the same keys to the same groups, and somebody changes many jobs at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import psycopg
import pytest

from tests.builders import boom, finish_of, make_group, row, wish
from windrow.clock import Clock
from windrow.queue.job import JobState
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.records import JobRow
from windrow.queue.store import Store

TURNS = 60
ENDS = (JobState.COMPLETED, JobState.COMPLETED, JobState.READY)


class Busy:
    """One store of several on a database, and its dice."""

    def __init__(self, store: Store, groups: list[str], jobs: list[str], seed: int) -> None:
        self.store = store
        self.groups = groups
        self.jobs = jobs
        self.dice = random.Random(seed)

    def new(self) -> JobRow:
        return row(unique=self.dice.choice("abcdefgh"), group=self.dice.choice(self.groups))

    async def produce(self) -> None:
        for _ in range(TURNS):
            inserted = await self.store.insert_jobs([self.new() for _ in range(6)])
            self.jobs += [one.id for one in inserted]

    async def work(self) -> None:
        for _ in range(TURNS):
            running = await self.store.claim_jobs(wish(5))
            self.dice.shuffle(running)
            ends = [
                finish_of(job, self.dice.choice(ENDS), error=boom(), then=(self.new(), self.new()))
                for job in running
            ]
            await self.store.finish_jobs(ends)

    async def change(self) -> None:
        for _ in range(TURNS):
            some = self.dice.sample(self.jobs, min(8, len(self.jobs)))
            verbs = [self.store.pause_jobs, self.store.resume_jobs]
            await self.dice.choice(verbs)(some)


@pytest.mark.long
async def test_busy_workers_and_producers_do_not_deadlock(
    make_database: Callable[[], str],
) -> None:
    url = make_database()
    stores = [await PostgresStore.open(url, clock=Clock()) for _ in range(6)]
    await stores[0].migrate()
    groups = [(await make_group(stores[0], is_open=True)).id for _ in range(3)]
    jobs: list[str] = []
    crowd = [Busy(store, groups, jobs, seed) for seed, store in enumerate(stores)]
    await asyncio.gather(
        *(one.produce() for one in crowd[:2]),
        *(one.work() for one in crowd[2:5]),
        crowd[5].change(),
    )
    for store in stores:
        await store.close()

    assert deadlocks(url) == 0


def deadlocks(url: str) -> int:
    """How many the server has broken on a database so far."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert found is not None
    return int(found[0])
