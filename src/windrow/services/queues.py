"""What people ask of queues, of the limits on keys and of schedules: how they are, to stand still
for a while, to take or to allow only so many, to make jobs at their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Unpack

from windrow.errors import ScheduleNotFound
from windrow.queue.queue import Queue
from windrow.queue.records import (
    ErrorCount,
    LimitInfo,
    OnFull,
    QueueInfo,
    ReadyKind,
    Retention,
    Schedule,
    WorkerInfo,
)
from windrow.queue.scheduling import ScheduleOptions
from windrow.services.jobs import open_queue
from windrow.settings import Settings

LOOK_AHEAD = 100  # so many of the jobs at the front of a queue are looked at for their kinds
MOST_KINDS: Final = 3  # named of those that no worker takes


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


async def list_limits(settings: Settings) -> list[LimitInfo]:
    """Every key with a limit or with jobs."""
    async with open_queue(settings) as queue:
        return await queue.limits()


async def set_limit(settings: Settings, key: str, /, **allowed: Any) -> LimitInfo:
    """Make or change a limit, by the options of `Queue.set_limit`; the key as it is then."""
    async with open_queue(settings) as queue:
        await queue.set_limit(key, **allowed)
        return await _read_limit(queue, key)


async def remove_limit(settings: Settings, key: str) -> bool:
    """Limit a key no longer; whether it was."""
    async with open_queue(settings) as queue:
        return await queue.remove_limit(key)


async def park_key(settings: Settings, key: str, until: datetime | float | None) -> LimitInfo:
    """Start no job with this key until a time or for so many seconds; None ends it."""
    async with open_queue(settings) as queue:
        await queue.park_key(key, until)
        return await _read_limit(queue, key)


async def _read_limit(queue: Queue, key: str) -> LimitInfo:
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


async def put_schedule(
    settings: Settings,
    name: str,
    kind: str,
    /,
    payload: Any = None,
    **options: Unpack[ScheduleOptions],
) -> Schedule:
    """Make a schedule, or change the one of that name; options are those of `Queue.schedule`."""
    async with open_queue(settings) as queue:
        return await queue.schedule(name, kind, payload, **options)


async def list_schedules(settings: Settings) -> list[Schedule]:
    """All schedules, by name."""
    async with open_queue(settings) as queue:
        return await queue.schedules()


async def get_schedule(settings: Settings, name: str) -> Schedule:
    """One schedule. Raises ScheduleNotFound."""
    for schedule in await list_schedules(settings):
        if schedule.name == name:
            return schedule
    raise ScheduleNotFound(name)


async def pause_schedule(settings: Settings, name: str) -> Schedule:
    """Fire no more of its slots. Raises ScheduleNotFound."""
    async with open_queue(settings) as queue:
        return await queue.pause_schedule(name)


async def resume_schedule(settings: Settings, name: str) -> Schedule:
    """Go on with its next slot from now. Raises ScheduleNotFound."""
    async with open_queue(settings) as queue:
        return await queue.resume_schedule(name)


async def remove_schedule(settings: Settings, name: str) -> None:
    """Forget it; its jobs stay. Raises ScheduleNotFound."""
    async with open_queue(settings) as queue:
        if not await queue.unschedule(name):
            raise ScheduleNotFound(name)
