"""What is set for a queue as a whole."""

from __future__ import annotations

from windrow.queue.records import OnFull, QueueInfo
from windrow.services.jobs import open_queue
from windrow.settings import Settings


async def set_queue(
    settings: Settings, name: str, *, max_depth: int | None, on_full: OnFull
) -> QueueInfo:
    """Bound how many jobs may wait in a queue, or (None) no longer; the queue as it is then."""
    async with open_queue(settings) as queue:
        await queue.set_queue(name, max_depth=max_depth, on_full=on_full)
        found = {info.name: info for info in await queue.queues()}
        return found.get(name) or QueueInfo(name, False, {}, None)
