"""What the workers of the benchmarks run."""

from __future__ import annotations

import asyncio
import time

from bench.record import note, note_many
from windrow import Job, handler


@handler("bench.noop", queue="bench")
async def noop(job: Job) -> None:
    note(job.payload["n"])


@handler("bench.batch", queue="bench", batch=100)
async def batch(jobs: list[Job]) -> None:
    note_many([job.payload["n"] for job in jobs])


@handler("bench.clock", queue="bench")
async def clock(job: Job) -> float:
    """The moment it began, by the clock that all processes of the machine share."""
    return time.monotonic()


@handler("bench.stay", queue="bench")
async def stay(job: Job) -> None:
    """Keeps its place in the worker until that is stopped."""
    await asyncio.Event().wait()
