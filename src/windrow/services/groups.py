"""What people ask of groups: how far they are, and to stop them for a while or for good."""

from __future__ import annotations

from typing import Any

from windrow.queue.records import Group
from windrow.services.finding import find_group
from windrow.services.jobs import open_queue
from windrow.settings import Settings


async def list_groups(settings: Settings, /, **wanted: Any) -> list[Group]:
    """Groups, newest first; the filters are those of `Queue.groups`."""
    async with open_queue(settings) as queue:
        return await queue.groups(**wanted)


async def get_group(settings: Settings, group_id: str) -> Group:
    """One group with its members by state. Raises GroupNotFound."""
    async with open_queue(settings) as queue:
        return await queue.group(await find_group(queue, group_id))


async def pause_group(settings: Settings, group_id: str) -> Group:
    """Start no more of its jobs. Raises GroupNotFound."""
    async with open_queue(settings) as queue:
        return await queue.pause_group(await find_group(queue, group_id))


async def resume_group(settings: Settings, group_id: str) -> Group:
    """Let it go on. Raises GroupNotFound."""
    async with open_queue(settings) as queue:
        return await queue.resume_group(await find_group(queue, group_id))


async def cancel_group(settings: Settings, group_id: str, reason: str) -> Group:
    """Cancel what waits, tell what runs. Raises GroupNotFound."""
    async with open_queue(settings) as queue:
        return await queue.cancel_group(await find_group(queue, group_id), reason=reason)
