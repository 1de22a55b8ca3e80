"""A Windrow worker as people run it, beside clients that know nothing but a dialect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from windrow import Job, Queue, Worker, handler

WORK = 0.01  # seconds for a job: else the worker would leave little to the others


async def run_worker(
    url: str, queue: str, kinds: Sequence[str], seen: Callable[[Job], None], result: Any = None
) -> int:
    """Run the jobs of these kinds until none is left; how many it ran."""
    ran = 0

    async def work(job: Job) -> Any:
        nonlocal ran
        ran += 1
        seen(job)
        await asyncio.sleep(WORK)
        return result

    async with Queue.open(url) as opened:
        handlers = [handler(kind, queue=queue)(work) for kind in kinds]
        await Worker(opened, handlers, concurrency=8, queues=[queue]).run(until_idle=True)
    return ran
