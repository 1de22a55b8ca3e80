"""What keys allow: looking at it, changing it, and stopping a key for a while."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from windrow.queue.queue import Queue
from windrow.queue.records import LimitInfo
from windrow.services.jobs import open_queue
from windrow.settings import Settings


async def list_limits(settings: Settings) -> list[LimitInfo]:
    """Every key with a limit or with jobs."""
    async with open_queue(settings) as queue:
        return await queue.limits()


async def set_limit(settings: Settings, key: str, /, **allowed: Any) -> LimitInfo:
    """Make or change a limit, by the options of `Queue.set_limit`; the key as it is then."""
    async with open_queue(settings) as queue:
        await queue.set_limit(key, **allowed)
        return await _find(queue, key)


async def remove_limit(settings: Settings, key: str) -> bool:
    """Limit a key no longer; whether it was."""
    async with open_queue(settings) as queue:
        return await queue.remove_limit(key)


async def park_key(settings: Settings, key: str, until: datetime | float | None) -> LimitInfo:
    """Start no job with this key until a time or for so many seconds; None ends it."""
    async with open_queue(settings) as queue:
        await queue.park_key(key, until)
        return await _find(queue, key)


async def _find(queue: Queue, key: str) -> LimitInfo:
    found = {info.key: info for info in await queue.limits()}
    return found.get(key) or LimitInfo(key)
