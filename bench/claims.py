"""How long one claim takes in a queue that holds much that cannot be claimed."""

from __future__ import annotations

import asyncio
import statistics
import time

import psycopg

from bench.beds import Bed
from bench.drain import ask
from bench.own import QUEUE, Own, OwnProducer
from windrow import Queue
from windrow.queue.job import JobState
from windrow.queue.records import Claim, Finish

ROUNDS = 100
LIMIT = 10
CHUNK = 1000
AN_HOUR = 3600.0


def claim_ms(bed: Bed, contestant: Own, *, active: int = 0, scheduled: int = 0) -> float:
    """The median of claims of ten jobs, each finished before the next."""
    with bed.fresh() as url:
        ask("setup", contestant, url)
        asyncio.run(surround(url, contestant, active, scheduled))
        bed.analyze(url)
        if contestant.store == "postgres":
            write_out(url)
        return asyncio.run(measure(url)) * 1000


def write_out(url: str) -> None:
    """What the server would otherwise do while it is measured, and only where much was filled in:
    vacuum what is new, and write its pages."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM")
        connection.execute("CHECKPOINT")


async def surround(url: str, contestant: Own, active: int, scheduled: int) -> None:
    async with Queue.open(url) as queue:
        await fill(OwnProducer(queue, contestant.kind), active)
        await contestant.occupy(url, active)
        await fill(OwnProducer(queue, contestant.kind, delay=AN_HOUR), scheduled)
        await fill(OwnProducer(queue, contestant.kind), ROUNDS * LIMIT)


async def fill(producer: OwnProducer, jobs: int) -> None:
    for first in range(0, jobs, CHUNK):
        await producer.many(range(first, min(first + CHUNK, jobs)))


async def measure(url: str) -> float:
    took = []
    async with Queue.open(url) as queue:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            jobs = await queue.store.claim_jobs(Claim((QUEUE,), LIMIT, 60, "bench"))
            took.append(time.perf_counter() - began)
            ends = [Finish(job.id, job.lease_token or "", JobState.COMPLETED) for job in jobs]
            await queue.store.finish_jobs(ends)
    return statistics.median(took)
