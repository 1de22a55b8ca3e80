"""Schedules: a cron line in a time zone, and an interval that fires while one looks on.

Schedules are rows. Any worker fires them, each slot once, however many workers there are.

    python examples/cron.py [URL of a database]
"""

from __future__ import annotations

import asyncio
import sys
from tempfile import TemporaryDirectory
from typing import Any

from windrow import Job, Queue, Worker, handler

TICKS = 3
SLOTS: list[str] = []
ENOUGH = asyncio.Event()


@handler("tick")
async def tick(job: Job, payload: dict[str, Any]) -> None:
    print(f"tick for the slot {job.headers['slot']}, {payload['note']}")
    SLOTS.append(job.headers["slot"])
    if len(SLOTS) >= TICKS:
        ENOUGH.set()


@handler("report")
async def report(job: Job) -> str:
    return "a night's work"


async def main(url: str) -> None:
    async with Queue.open(url) as queue:
        nightly = await queue.schedule(
            "nightly", "report", cron="30 2 * * *", timezone="Europe/Berlin"
        )
        print(f"nightly: {nightly.cron} in {nightly.timezone}, next at {nightly.next_at:%H:%M} UTC")
        await queue.schedule("ticking", "tick", {"note": "every second"}, every=1)

        worker = Worker(queue, [tick, report])
        working = asyncio.create_task(worker.run())
        await ENOUGH.wait()
        await queue.unschedule("ticking")
        worker.stop()
        await working
        print("every slot once:", len(SLOTS) == len(set(SLOTS)))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/jobs.db"))
