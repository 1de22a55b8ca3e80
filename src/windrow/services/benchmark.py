"""How many jobs a second a database does: jobs without work, enqueued and run in this process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from windrow.errors import ConfigError
from windrow.ids import new_id
from windrow.queue.job import Job, NewJob
from windrow.queue.queue import Queue
from windrow.services.jobs import open_queue
from windrow.settings import Settings
from windrow.worker.registry import handler
from windrow.worker.worker import Worker

MAX_JOBS: Final = 1_000_000
BATCH: Final = 1_000
CONCURRENCY: Final = 100
PREFIX: Final = "windrow-bench"


@dataclass(frozen=True, slots=True)
class Rates:
    """What was measured, in jobs a second."""

    jobs: int
    enqueued: float
    run: float


async def measure_rates(settings: Settings, count: int) -> Rates:
    """Enqueue so many jobs in batches, then run them. They have a queue and a kind of their own,
    and are deleted at the end, also if this is interrupted."""
    if not 1 <= count <= MAX_JOBS:
        raise ConfigError(f"the number of jobs is from 1 to {MAX_JOBS}, not {count}")
    name = f"{PREFIX}-{new_id()}"

    @handler(name, queue=name)
    async def nothing(job: Job) -> None:
        return None

    async with open_queue(settings, migrate=None) as queue, _cleaned_up(queue, name):
        began = time.perf_counter()
        for start in range(0, count, BATCH):
            size = min(BATCH, count - start)
            await queue.enqueue_many([NewJob(name) for _ in range(size)])
        enqueued = time.perf_counter()
        worker = Worker(
            queue, [nothing], queues=[name], concurrency=CONCURRENCY, announce=False, log_runs=False
        )
        await worker.run(until_idle=True)
        ended = time.perf_counter()
    return Rates(count, count / (enqueued - began), count / (ended - enqueued))


@asynccontextmanager
async def _cleaned_up(queue: Queue, name: str) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await queue.cancel_all(queue=name)
        await queue.delete_all(queue=name)
