"""Whether work is being done, for those who only want to know that; `health` says much more."""

from __future__ import annotations

import asyncio
from typing import Final

from windrow.errors import StoreError
from windrow.queue.job import JobState
from windrow.queue.queue import Queue

# Without the error, which may say more than everybody should read.
BROKEN: Final = "a part of a worker keeps failing: see `windrow doctor` and the worker's log"
READY_SECONDS: Final = 2.0
WAITING: Final = (JobState.READY, JobState.SCHEDULED, JobState.HELD)


async def find_trouble(queue: Queue) -> str | None:
    """Why jobs do not run, in a sentence; None if they do, or if there are none."""
    try:
        if workers := await queue.workers():
            return BROKEN if any(one.trouble for one in workers) else None
        counts = await queue.counts()
    except StoreError:
        return "the database does not answer"
    if any(counts[state] for state in WAITING):
        return "jobs wait, and no worker is alive: start `windrow worker`"
    return None


async def find_obstacle(queue: Queue) -> str | None:
    """Why the database cannot be used just now; None if it can. One small read."""
    reading = asyncio.create_task(_reads(queue))
    # Not `asyncio.timeout`: a driver that is cancelled waits for the server, which may hang.
    done, _ = await asyncio.wait([reading], timeout=READY_SECONDS)
    if not done:
        reading.cancel()
    return None if done and reading.result() else "the database does not answer"


async def _reads(queue: Queue) -> bool:
    try:
        await queue.store.schema_version()
    except StoreError:
        return False
    return True


async def render_metrics() -> tuple[bytes, str]:
    """The metrics of this process and of the queues it watches, and their media type."""
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    # In a thread: what collects asks the queue, in this loop, and waits for it.
    return await asyncio.to_thread(generate_latest), CONTENT_TYPE_LATEST
