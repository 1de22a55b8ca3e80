"""What the processes of the load tests do: `python -m tests.trust.load VERB OPTIONS`, the options
as JSON.

Each run of a handler is written down as eight bytes, the job's number, in a file that all of them
append to: what ran, and how often, is known without asking the queue. Time may be compressed, so
that hours of retention pass within seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
import time
from array import array
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from windrow import Job, NewJob, Queue, Worker, handler
from windrow.clock import Clock

NUMBER = struct.Struct("=q")
CHUNK = 1_000
DAY = 86_400.0


class CompressedClock(Clock):
    """Since `epoch`, so many seconds pass in each second."""

    def __init__(self, epoch: float, speed: float) -> None:
        self._epoch = epoch
        self._speed = speed

    def now(self) -> datetime:
        passed = time.time() - self._epoch
        return datetime.fromtimestamp(self._epoch, UTC) + timedelta(seconds=passed * self._speed)


class Record:
    """The numbers of the jobs that ran."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def add(self, numbers: Sequence[int]) -> None:
        os.write(self._file, array("q", numbers).tobytes())

    def __len__(self) -> int:
        return self._path.stat().st_size // NUMBER.size

    def judge(self, jobs: int) -> tuple[int, int]:
        """How many of the jobs never ran, and how many runs there were too many."""
        numbers = array("q", self._path.read_bytes())
        return jobs - len(set(numbers)), len(numbers) - len(set(numbers))


async def produce(
    url: str, *, jobs: int, ahead: int, per_second: int, record: str, **time_of: float
) -> None:
    """Enqueue so many jobs, no more than `per_second`, and keep no more than `ahead` waiting."""
    done = Record(record)
    began = time.monotonic()
    async with Queue.open(url, clock=_clock(time_of)) as queue:
        for first in range(0, jobs, CHUNK):
            await asyncio.sleep(began + first / per_second - time.monotonic())
            while first - len(done) > ahead:
                await asyncio.sleep(0.01)
            await queue.enqueue_many(
                [NewJob("load", {"n": n}, retention=60) for n in range(first, first + CHUNK)]
            )


async def drain(url: str, *, jobs: int, record: str, **time_of: float) -> None:
    """One worker, by batches, until all have run. It leaves maintenance to `maintain`."""
    done = Record(record)

    @handler("load", batch=200)
    async def load(batch: list[Job]) -> None:
        done.add([job.payload["n"] for job in batch])

    async with Queue.open(url, clock=_clock(time_of)) as queue:
        worker = Worker(queue, [load], concurrency=1_000, lease=DAY, maintain=False)
        await _until(done, jobs, worker)


async def maintain(url: str, *, jobs: int, record: str, **time_of: float) -> None:
    """What the leader of the workers does once a minute, as often as the compressed clock asks."""
    done = Record(record)
    async with Queue.open(url, clock=_clock(time_of)) as queue:
        while len(done) < jobs:
            await queue.prune()
            await queue.store.fold_counts()
            await asyncio.sleep(0.5)


async def work_in_many(url: str, *, workers: int, jobs: int, record: str) -> None:
    """Many workers, each with connections of its own, until all jobs have run."""
    done = Record(record)

    @handler("load")
    async def load(job: Job) -> None:
        done.add([job.payload["n"]])

    async with AsyncExitStack() as stack:
        queues = [await stack.enter_async_context(Queue.open(url)) for _ in range(workers)]
        print(json.dumps("open"), flush=True)
        await asyncio.gather(
            *(_until(done, jobs, Worker(queue, [load], concurrency=5)) for queue in queues)
        )


async def _until(done: Record, jobs: int, worker: Worker) -> None:
    running = asyncio.create_task(worker.run())
    while len(done) < jobs and not running.done():
        await asyncio.sleep(0.1)
    worker.stop()
    await running


def _clock(time_of: dict[str, float]) -> Clock:
    return CompressedClock(**time_of) if time_of else Clock()


def main() -> None:
    verb, options = sys.argv[1], json.loads(sys.argv[2])
    verbs: dict[str, Any] = {
        "produce": produce,
        "drain": drain,
        "maintain": maintain,
        "work_in_many": work_in_many,
    }
    asyncio.run(verbs[verb](**options))


if __name__ == "__main__":
    main()
