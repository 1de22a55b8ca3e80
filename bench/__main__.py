"""`python -m bench`: drain and bulk enqueue of both stores as a ratio to their floor.

Rounds are interleaved (floor, Windrow, floor, …) and medians compared, because machines are noisy;
a run checks that every job was stored and finished exactly once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import msgspec

from bench import floor_postgres, floor_sqlite
from tests.postgres_server import PostgresServer, create_database, drop_database
from windrow.queue.ids import new_id
from windrow.queue.job import JobState
from windrow.queue.records import Claim, Finish, JobRow
from windrow.queue.store import Store, open_store

PAYLOAD = msgspec.json.encode({"url": "https://example.org/page", "text": "x" * 150})
DURABLE = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "max_connections": "50",
}


@dataclass
class Figures:
    """Seconds per round: bulk insert and drain, of the floor and of Windrow."""

    floor_fill: list[float] = field(default_factory=list)
    floor_drain: list[float] = field(default_factory=list)
    fill: list[float] = field(default_factory=list)
    drain: list[float] = field(default_factory=list)

    def summary(self, jobs: int) -> dict[str, float]:
        rate = {name: jobs / statistics.median(seconds) for name, seconds in vars(self).items()}
        return {
            "floor enqueue/s": round(rate["floor_fill"]),
            "enqueue/s": round(rate["fill"]),
            "enqueue ratio": round(rate["fill"] / rate["floor_fill"], 2),
            "floor drain/s": round(rate["floor_drain"]),
            "drain/s": round(rate["drain"]),
            "drain ratio": round(rate["drain"] / rate["floor_drain"], 2),
        }


async def fill(store: Store, jobs: int) -> float:
    """Bulk enqueue in chunks of 1,000; seconds, with encoding."""
    began = time.perf_counter()
    for start in range(0, jobs, 1000):
        await store.insert_jobs(
            [
                JobRow(
                    id=new_id(),
                    queue="bench",
                    kind="noop",
                    payload=msgspec.Raw(PAYLOAD),
                    priority=5,
                    max_attempts=5,
                    max_crashes=5,
                )
                for _ in range(min(1000, jobs - start))
            ]
        )
    return time.perf_counter() - began


async def drain(store: Store, batch: int, jobs: int) -> float:
    """Finish the last batch and claim the next in one transaction until nothing is left."""
    claim = Claim(queues=("bench",), limit=batch, seconds=60, worker="bench")
    seen: set[str] = set()
    began = time.perf_counter()
    claimed = await store.claim_jobs(claim)
    while claimed:
        seen.update(job.id for job in claimed)
        finishes = [Finish(job.id, job.lease_token or "", JobState.COMPLETED) for job in claimed]
        finished = await store.finish_jobs(finishes, claim=claim)
        assert not finished.lost
        claimed = list(finished.claimed)
    took = time.perf_counter() - began
    [info] = await store.list_queues()
    assert len(seen) == jobs
    assert dict(info.counts) == {JobState.COMPLETED: jobs}
    return took


async def measure_postgres(jobs: int, batch: int, rounds: int) -> Figures:
    figures = Figures()
    server = PostgresServer(settings=DURABLE)
    server.start()
    try:
        for _ in range(rounds):
            url = create_database(server.url())
            connection = await asyncpg.connect(url)
            figures.floor_fill.append(await floor_postgres.fill(connection, jobs, PAYLOAD.decode()))
            figures.floor_drain.append(await floor_postgres.drain(connection, batch))
            await connection.execute("DROP TABLE floor")
            store = await open_store(url)
            await store.migrate()
            figures.fill.append(await fill(store, jobs))
            await connection.execute("ANALYZE")
            figures.drain.append(await drain(store, batch, jobs))
            await store.close()
            await connection.close()
            drop_database(server.url(), url)
    finally:
        server.stop()
    return figures


async def measure_sqlite(jobs: int, batch: int, rounds: int) -> Figures:
    figures = Figures()
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
            connection = floor_sqlite.connect(Path(folder) / "floor.db")
            figures.floor_fill.append(floor_sqlite.fill(connection, jobs, PAYLOAD.decode()))
            figures.floor_drain.append(floor_sqlite.drain(connection, batch))
            connection.close()
            store = await open_store(f"sqlite:///{folder}/jobs.db")
            await store.migrate()
            figures.fill.append(await fill(store, jobs))
            figures.drain.append(await drain(store, batch, jobs))
            await store.close()
    return figures


async def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--jobs", type=int, default=40_000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    results = {}
    for name, measure in (("sqlite", measure_sqlite), ("postgres", measure_postgres)):
        if given.store in (name, "both"):
            figures = await measure(given.jobs, given.batch, given.rounds)
            results[name] = figures.summary(given.jobs)
    if given.json:
        print(json.dumps({"machine": platform.platform(), **vars(given), "results": results}))
        return
    for name, summary in results.items():
        print(f"{name}: {given.jobs} jobs, batch {given.batch}, medians of {given.rounds} rounds")
        for label, value in summary.items():
            print(f"  {label:<16} {value:>10,}")


if __name__ == "__main__":
    asyncio.run(main())
