"""`python -m bench.pickup`: how soon an idle worker of another process begins a new job, and what
it costs while it is idle, on both stores.

The time runs from the moment before the enqueue call to the first line of the handler, by the clock
that all processes of the machine share; so it has the durable insert in it. Results are read when
all is done: a caller who waits for each would be woken beside the worker, by the same notice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.beds import DURABLE
from tests.postgres_server import PostgresServer
from windrow import Queue

PAUSE = 0.02  # seconds between two jobs: 50 a second
SETTLE = 2.0  # a worker's start is not its idling


async def measure(url: str, jobs: int, idle_seconds: float) -> dict[str, float]:
    async with Queue.open(url, migrate=True) as queue, worker(url) as pid:
        await done(url, [(await ask(queue))[0]])
        asked_at = dict([await ask(queue) for _ in range(jobs)])
        results = await done(url, list(asked_at))
        latencies = sorted(results[job_id] - asked_at[job_id] for job_id in asked_at)
        await asyncio.sleep(SETTLE)
        before, began = cpu_seconds(pid), time.monotonic()
        await asyncio.sleep(idle_seconds)
        idle = (cpu_seconds(pid) - before) / (time.monotonic() - began)
    return {
        "jobs": jobs,
        "p50 ms": round(statistics.median(latencies) * 1000, 2),
        "p99 ms": round(latencies[min(jobs - 1, round(jobs * 0.99))] * 1000, 2),
        "longest ms": round(latencies[-1] * 1000, 2),
        "idle % of a core": round(idle * 100, 3),
    }


async def ask(queue: Queue) -> tuple[str, float]:
    """A job, and the moment before it was enqueued."""
    await asyncio.sleep(PAUSE)
    asked_at = time.monotonic()
    job = await queue.enqueue("bench.clock", queue="bench")
    return job.id, asked_at


async def done(url: str, job_ids: list[str]) -> dict[str, float]:
    """The results of jobs, waited for by a queue of its own, which is closed: it sleeps no more."""
    async with Queue.open(url) as queue:
        jobs = await queue.wait_many(job_ids, timeout=30)
        return {job_id: job.result for job_id, job in jobs.items()}


@asynccontextmanager
async def worker(url: str) -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "windrow", "worker", "bench.handlers"),
        env={**os.environ, "WINDROW_DATABASE_URL": url},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        await process.wait()


def cpu_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure_all(jobs: int, idle_seconds: float) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
        sqlite = await measure(f"sqlite:///{folder}/jobs.db", jobs, idle_seconds)
    server = PostgresServer(settings=DURABLE)
    server.start()
    try:
        postgres = await measure(server.url(), jobs, idle_seconds)
    finally:
        server.stop()
    return {"sqlite": sqlite, "postgres": postgres}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.pickup", description=__doc__)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--idle-seconds", type=float, default=20.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    results = asyncio.run(measure_all(given.jobs, given.idle_seconds))
    if given.json:
        print(json.dumps(results))
        return
    for name, figures in results.items():
        print(name)
        for label, value in figures.items():
            print(f"  {label:<18} {value:>10,}")


if __name__ == "__main__":
    main()
