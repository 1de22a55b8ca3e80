"""`python -m bench.wake`: how soon a sleeper learns of another process's commit, and what sleeping
costs, on both stores.

Another process inserts a job and writes down when its commit was done; a sleeper of this one notes
when its bell rang. Both read the same clock of the machine. Then nothing happens for a while, and
the CPU time that the sleeping process used is its price.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bench.beds import DURABLE
from bench.contestant import payload
from tests.postgres_server import PostgresServer
from windrow import Queue

PAUSE = 0.05  # seconds between two wake-ups, so that the sleeper sleeps
LONG = 10.0  # a wake-up that takes longer was lost


@dataclass
class Figures:
    latencies: list[float] = field(default_factory=list)  # seconds
    idle_share: float = 0.0  # of a core

    def summary(self) -> dict[str, float]:
        ordered = sorted(self.latencies)
        highest = ordered[min(len(ordered) - 1, round(len(ordered) * 0.99))]
        return {
            "wake-ups": len(ordered),
            "p50 ms": round(statistics.median(ordered) * 1000, 2),
            "p99 ms": round(highest * 1000, 2),
            "longest ms": round(ordered[-1] * 1000, 2),
            "idle % of a core": round(self.idle_share * 100, 3),
        }


async def measure(url: str, wakes: int, idle_seconds: float) -> Figures:
    figures = Figures()
    async with Queue.open(url, migrate=True) as queue:
        async with producer(url) as ask, queue.store.listen_for_work(["bench"]) as bell:
            for n in range(wakes + 1):
                await asyncio.sleep(PAUSE)
                while await bell.wait(0.01):  # what is left of the last one
                    pass
                asking = asyncio.create_task(ask())
                if not await bell.wait(LONG):
                    raise RuntimeError("a wake-up was lost")
                rung_at = time.monotonic()
                committed_at = await asking
                if n:  # the first one warms up
                    figures.latencies.append(max(0.0, rung_at - committed_at))
                lease = await queue.claim(["bench"])
                await lease.complete(lease.jobs[0])
        async with queue.store.listen_for_work(["bench"]) as bell:
            before = time.process_time()
            began = time.monotonic()
            while (left := idle_seconds - (time.monotonic() - began)) > 0:
                await bell.wait(left)
            figures.idle_share = (time.process_time() - before) / (time.monotonic() - began)
    return figures


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Ask]:
    """Another process; call for an insert, and for the moment at which it was committed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.wake", "--produce", url),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process was started without pipes")
    yield Ask(process.stdin, process.stdout)
    process.stdin.close()
    await process.wait()


@dataclass
class Ask:
    to: asyncio.StreamWriter
    answers: asyncio.StreamReader

    async def __call__(self) -> float:
        self.to.write(b"insert\n")
        await self.to.drain()
        return float(await self.answers.readline())


def produce(url: str) -> None:
    """What the other process does: an insert for each line."""
    with Queue.sync(url) as queue:
        for _ in sys.stdin:
            queue.enqueue("noop", payload(0), queue="bench")
            print(time.monotonic(), flush=True)


async def measure_sqlite(wakes: int, idle_seconds: float) -> Figures:
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
        return await measure(f"sqlite:///{folder}/jobs.db", wakes, idle_seconds)


async def measure_postgres(wakes: int, idle_seconds: float) -> Figures:
    server = PostgresServer(settings=DURABLE)
    server.start()
    try:
        return await measure(server.url(), wakes, idle_seconds)
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.wake", description=__doc__)
    parser.add_argument("--wakes", type=int, default=200)
    parser.add_argument("--idle-seconds", type=float, default=20.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--produce", metavar="URL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.produce:
        produce(given.produce)
        return
    results = {}
    for name, measured in (("sqlite", measure_sqlite), ("postgres", measure_postgres)):
        results[name] = asyncio.run(measured(given.wakes, given.idle_seconds)).summary()
    if given.json:
        print(json.dumps({"machine": platform.platform(), "results": results}))
        return
    for name, summary in results.items():
        print(name)
        for label, value in summary.items():
            print(f"  {label:<18} {value:>10,}")


if __name__ == "__main__":
    main()
