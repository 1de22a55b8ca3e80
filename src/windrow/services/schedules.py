"""Making schedules, looking at them, and stopping them for a while, or for good."""

from __future__ import annotations

from typing import Any, Unpack

from windrow.errors import ScheduleNotFound
from windrow.queue.records import Schedule
from windrow.queue.scheduling import ScheduleOptions
from windrow.services.jobs import open_queue
from windrow.settings import Settings


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
