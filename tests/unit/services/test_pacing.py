"""What the overview draws of the last hour."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from windrow.clock import FakeClock
from windrow.queue.job import NewJob
from windrow.queue.outcome import Done
from windrow.queue.queue import Queue
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
