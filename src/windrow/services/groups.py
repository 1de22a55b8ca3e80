"""What people ask of groups: how far they are, and to stop them for a while or for good."""

from __future__ import annotations

from typing import Any

from windrow.errors import GroupNotFound
from windrow.queue.ids import is_id, plain_id
from windrow.queue.queue import Queue
from windrow.queue.records import Group
from windrow.services.jobs import EXAMPLES, end_of_beginning, only_one, open_queue
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


async def find_group(queue: Queue, text: str) -> str:
    """The id that a person means: a whole one, or the beginning of just one group's."""
    if is_id(text):
        return plain_id(text)
    page = await queue.groups(after=end_of_beginning(text, GroupNotFound), limit=EXAMPLES)
    return only_one(text, [group.id for group in page], GroupNotFound)
