"""What the workers of the benchmarks run."""

from __future__ import annotations

import time

from windrow import Job, handler


@handler("bench.noop", queue="bench")
async def noop(job: Job) -> None: ...


@handler("bench.batch", queue="bench", batch=100)
async def batch(jobs: list[Job]) -> None: ...


@handler("bench.clock", queue="bench")
async def clock(job: Job) -> float:
    """The moment it began, by the clock that all processes of the machine share."""
    return time.monotonic()
