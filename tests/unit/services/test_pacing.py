"""What the overview draws of the last hour."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from windrow.clock import FakeClock
from windrow.queue.job import NewJob
from windrow.queue.outcome import Done
from windrow.queue.queue import Queue
from windrow.queue.records import JobFilter
from windrow.services import pacing
from windrow.services.pacing import PaceKeeper


@pytest.fixture
async def queue(sqlite_template: Path, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Queue]:
    path = tmp_path / "jobs.db"
    path.write_bytes(sqlite_template.read_bytes())
    async with Queue.open(f"sqlite:///{path}", clock=clock) as queue:
        yield queue


async def run_jobs(queue: Queue, clock: FakeClock, count: int, tenant: str, seconds: int) -> None:
    """Jobs that wait a second and run for so many."""
    await queue.enqueue_many([NewJob("work", tenant=tenant) for _ in range(count)])
    clock.advance(1)
    lease = await queue.claim(None, limit=count, seconds=600)
    clock.advance(seconds)
    await lease.finish_many([(job, Done()) for job in lease.jobs])


async def test_each_minute_says_how_many_ended_and_how_long_they_took(
    queue: Queue, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "SAMPLE", 2)  # others are looked for farther back
    monkeypatch.setattr(pacing, "PATIENCE_SECONDS", 3600.0)
    keeper = PaceKeeper(queue)
    await run_jobs(queue, clock, 6, "a", seconds=4)
    clock.advance(120)
    await run_jobs(queue, clock, 3, "b", seconds=10)

    pace = await keeper.look()
    assert [(n, pace.ended[n]) for n in range(60) if pace.ended[n]] == [(57, 6), (59, 3)]
    assert (pace.waits[57], pace.runs[57]) == (1.0, 4.0)
    assert (pace.waits[59], pace.runs[59]) == (1.0, 10.0)
    own = await keeper.look("b")
    assert sum(own.ended) == 3
    assert own.runs[57] == 0.0

    clock.advance(3600)
    later = await keeper.look()
    assert sum(later.ended) == 0
    assert sum(later.runs) == 0.0


async def test_minutes_that_are_over_are_looked_for_once(
    queue: Queue, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "SAMPLE", 2)
    monkeypatch.setattr(pacing, "PATIENCE_SECONDS", 3600.0)
    steps: list[int] = []
    find_earlier = queue.store.find_earlier

    async def counted(wanted: JobFilter, count: int, **options: Any) -> str | None:
        steps.append(count)
        return await find_earlier(wanted, count, **options)

    monkeypatch.setattr(queue.store, "find_earlier", counted)
    for count in (3, 4, 5):
        clock.advance(60)
        await run_jobs(queue, clock, count, "a", seconds=1)
    keeper = PaceKeeper(queue)

    first = await keeper.look()
    assert steps == [5, 4, 3], "that of the first minute finds no job behind it"
    assert await keeper.look() == first
    assert steps == [5, 4, 3, 5, 3]


async def test_two_who_look_at_once_count_nothing_twice(queue: Queue, clock: FakeClock) -> None:
    keeper = PaceKeeper(queue)
    await run_jobs(queue, clock, 5, "a", seconds=1)

    paces = await asyncio.gather(keeper.look(), keeper.look())
    assert [sum(pace.ended) for pace in paces] == [5, 5]


async def test_what_was_not_reached_is_said_and_counted_at_the_next_look(
    queue: Queue, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr(pacing, "PAGE", 1)
    keeper = PaceKeeper(queue)
    for _ in range(2):
        await run_jobs(queue, clock, 3, "a", seconds=1)

    first, second = await keeper.look(), await keeper.look()
    assert (first.is_whole, sum(first.ended)) == (False, 3)
    assert (second.is_whole, sum(second.ended)) == (True, 6)
