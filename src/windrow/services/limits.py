"""What keys allow: looking at it, changing it, and stopping a key for a while."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from windrow.queue.queue import Queue
from windrow.queue.records import LimitInfo, QueueInfo, ReadyKind, WorkerInfo
from windrow.services.jobs import open_queue
from windrow.settings import Settings

MOST_KINDS: Final = 3  # named of those that no worker takes


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


def untaken(kinds: Sequence[ReadyKind], workers: Sequence[WorkerInfo]) -> list[ReadyKind]:
    """Kinds of ready jobs that none of the workers takes."""
    return [one for one in kinds if not any(w.takes(one.queue, one.kind) for w in workers)]


def describe_places(
    limit: LimitInfo,
    queues: Sequence[QueueInfo],
    workers: Sequence[WorkerInfo],
    kinds: Sequence[ReadyKind],
) -> str:
    """Who has the places of a limit that is full."""
    places = [f"{limit.in_use} of {limit.active} are in use"]
    if limit.ready:
        one = "1 place is" if limit.ready == 1 else f"{limit.ready} places are"
        places.append(f"{one} taken by {describe_ready(limit, queues, workers, kinds)}")
    return "; ".join(places)


def describe_ready(
    limit: LimitInfo,
    queues: Sequence[QueueInfo],
    workers: Sequence[WorkerInfo],
    kinds: Sequence[ReadyKind],
) -> str:
    """Where the ready jobs of a key are, and what keeps them from being claimed. `kinds`: those of
    the first ready jobs of each queue."""
    paused = {queue.name for queue in queues if queue.is_paused}
    nobodys = untaken(kinds, workers)
    described = [
        _describe_queue(name, name in paused, workers, [k.kind for k in nobodys if k.queue == name])
        for name in sorted(limit.ready_queues)
    ]
    return f"ready jobs of {', '.join(described)}"


def _describe_queue(
    name: str, is_paused: bool, workers: Sequence[WorkerInfo], untaken_kinds: Sequence[str]
) -> str:
    if is_paused:
        return f"the paused queue {name}"
    if not any(worker.queues is None or name in worker.queues for worker in workers):
        return f"the queue {name}, which no worker takes"
    if untaken_kinds:
        more = "" if len(untaken_kinds) <= MOST_KINDS else " and others"
        shown = ", ".join(f"`{kind}`" for kind in untaken_kinds[:MOST_KINDS])
        return f"the queue {name}, where no worker takes {shown}{more}"
    return f"the queue {name}"
