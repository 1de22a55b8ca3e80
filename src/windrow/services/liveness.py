"""Whether work is being done, for those who only want to know that; `health` says much more."""

from __future__ import annotations

import asyncio
from typing import Final

from windrow.errors import StoreError
from windrow.queue.job import JobState
from windrow.queue.queue import Queue

WAITING: Final = (JobState.READY, JobState.SCHEDULED, JobState.HELD)


async def find_trouble(queue: Queue) -> str | None:
    """Why jobs do not run, in a sentence; None if they do, or if there are none."""
    try:
        if await queue.workers():
            return None
        counts = await queue.counts()
    except StoreError:
        return "the database does not answer"
    if any(counts[state] for state in WAITING):
        return "jobs wait, and no worker is alive: start `windrow worker`"
    return None


async def render_metrics() -> tuple[bytes, str]:
    """The metrics of this process and of the queues it watches, and their media type."""
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    # In a thread: what collects asks the queue, in this loop, and waits for it.
    return await asyncio.to_thread(generate_latest), CONTENT_TYPE_LATEST
