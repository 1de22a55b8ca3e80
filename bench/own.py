"""Windrow: a worker with plain handlers, one with batch handlers, and the raw claim/finish loop.

The workers are `windrow worker bench.handlers`, with its default settings.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from bench import counting
from bench.contestant import StoreName, payload
from bench.record import note_many
from windrow import NewJob, Queue
from windrow.queue.job import JobState
from windrow.queue.opening import open_store
from windrow.queue.records import Claim, Finish

QUEUE = "bench"
BATCH = 100
IDLE = 0.002
OCCUPIED_SECONDS = 3600
LEFT = """
SELECT (SELECT count(*) FROM windrow.job_live)
     + (SELECT count(*) FROM windrow.job_finished WHERE state IN ('failed', 'cancelled'))
"""


@dataclass
class OwnProducer:
    queue: Queue
    kind: str
    delay: float | None = None

    async def one(self, number: int) -> None:
        await self.queue.enqueue(self.kind, payload(number), queue=QUEUE, delay=self.delay)

    async def many(self, numbers: Sequence[int]) -> None:
        await self.queue.enqueue_many(
            [
                NewJob(self.kind, payload(number), queue=QUEUE, delay=self.delay)
                for number in numbers
            ]
        )


@dataclass
class Own:
    name: str
    store: StoreName
    kind: str
    settings: str
    is_raw: bool = False
    delay: float | None = None
    packages: Sequence[str] = ("windrow",)
    has_bulk: bool = True
    drains_only: bool = False  # what else there is, is as it is with plain handlers

    async def setup(self, url: str) -> None:
        async with Queue.open(url, migrate=True):
            pass

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[OwnProducer]:
        async with Queue.open(url) as queue:
            yield OwnProducer(queue, self.kind, self.delay)

    def work(self, url: str) -> None:
        if self.is_raw:
            asyncio.run(self._drain(url))
        os.environ["WINDROW_DATABASE_URL"] = url
        os.execv(sys.executable, [sys.executable, "-m", "windrow", "worker", "bench.handlers"])  # noqa: S606

    async def _drain(self, url: str) -> None:
        """Finish the last batch and claim the next in one transaction."""
        store = await open_store(url)
        claim = Claim(queues=(QUEUE,), limit=BATCH, seconds=60, worker="bench")
        claimed = await store.claim_jobs(claim)
        while True:
            if not claimed:
                await asyncio.sleep(IDLE)
                claimed = await store.claim_jobs(claim)
                continue
            note_many([job.payload["n"] for job in claimed])
            ends = [Finish(job.id, job.lease_token or "", JobState.COMPLETED) for job in claimed]
            claimed = list((await store.finish_jobs(ends, claim=claim)).claimed)

    def left(self, url: str) -> int:
        """Asked past the queue's own code: opening a queue would be timed with the drain."""
        if self.store == "sqlite":
            return counting.in_sqlite(url, LEFT.replace("windrow.", "windrow_"))
        return counting.in_postgres(url, LEFT)

    async def occupy(self, url: str, jobs: int) -> None:
        """Take so many jobs into work, and leave them there. Their numbers come last: the queue
        holds nothing else yet."""
        store = await open_store(url)
        for start in range(0, jobs, 1000):
            limit = min(1000, jobs - start)
            await store.claim_jobs(Claim((QUEUE,), limit, OCCUPIED_SECONDS, "elsewhere"))
        await store.close()


def of_store(store: StoreName) -> list[Own]:
    plain = Own(f"windrow {store}", store, "bench.noop", "defaults; plain async handlers")
    return [
        plain,
        replace(
            plain,
            name=f"windrow {store}, batches",
            kind="bench.batch",
            settings="defaults; handlers of batches",
            drains_only=True,
        ),
        replace(
            plain,
            name=f"windrow {store}, raw loop",
            settings=f"claim + finish {BATCH}",
            is_raw=True,
            drains_only=True,
        ),
    ]


CONTESTANTS = [*of_store("postgres"), *of_store("sqlite")]
