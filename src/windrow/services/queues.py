"""What people ask of queues: how they are, to stand still for a while, to take only so many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.queue.records import ErrorCount, OnFull, QueueInfo, ReadyKind, Retention, WorkerInfo
from windrow.services.jobs import open_queue
from windrow.settings import Settings

LOOK_AHEAD = 100  # so many of the jobs at the front of a queue are looked at for their kinds


@dataclass(frozen=True, slots=True)
class QueueStats:
    """A queue with what is around it: `next_kinds` are those of the first jobs in the line."""

    info: QueueInfo
    next_kinds: Sequence[ReadyKind]
    workers: Sequence[WorkerInfo]
    errors: Sequence[ErrorCount]
    retention: Retention


async def list_queues(settings: Settings) -> list[QueueInfo]:
    """Every queue with its counts."""
    async with open_queue(settings) as queue:
        return await queue.queues()


async def queue_stats(settings: Settings, names: Sequence[str] = ()) -> list[QueueStats]:
    """These queues, or all, with their workers, what is next in the line, and their errors."""
    async with open_queue(settings) as queue:
        infos = {info.name: info for info in await queue.queues()}
        unknown = {name: QueueInfo(name, False, {}, None) for name in names if name not in infos}
        kinds = await queue.store.list_ready_kinds(LOOK_AHEAD)
        workers = await queue.workers()
        retention = await queue.retention()
        return [
            QueueStats(
                info=(infos | unknown)[name],
                next_kinds=[one for one in kinds if one.queue == name],
                workers=[one for one in workers if one.queues is None or name in one.queues],
                errors=await queue.errors(name, limit=5),
                retention=retention.get(name, Retention()),
            )
            for name in names or infos
        ]


async def pause_queues(settings: Settings, names: Sequence[str]) -> list[QueueInfo]:
    """Stop claims from these queues; running jobs go on. How the queues are then."""
    async with open_queue(settings) as queue:
        for name in names:
            await queue.pause(name)
        return _named(await queue.queues(), names)


async def resume_queues(settings: Settings, names: Sequence[str]) -> list[QueueInfo]:
    """Let these queues go on. How they are then."""
    async with open_queue(settings) as queue:
        for name in names:
            await queue.resume(name)
        return _named(await queue.queues(), names)


async def set_queue(
    settings: Settings, name: str, *, max_depth: int | None, on_full: OnFull
) -> QueueInfo:
    """Bound how many jobs may wait in a queue, or (None) no longer; the queue as it is then."""
    async with open_queue(settings) as queue:
        await queue.set_queue(name, max_depth=max_depth, on_full=on_full)
        return _named(await queue.queues(), [name])[0]


def _named(infos: Sequence[QueueInfo], names: Sequence[str]) -> list[QueueInfo]:
    found = {info.name: info for info in infos}
    return [found.get(name) or QueueInfo(name, False, {}, None) for name in names]
