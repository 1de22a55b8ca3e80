"""Following what happens to jobs and groups."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from windrow.queue.events import OLDEST, Event
from windrow.services.jobs import open_queue
from windrow.settings import Settings


async def follow_events(
    settings: Settings, after: str | None, *, follow: bool, **wanted: Any
) -> AsyncGenerator[Event, None]:
    """What happened after a cursor (None: all that is kept), or with `follow` what happens (None:
    from now on). The filters are those of `Queue.events`."""
    start = OLDEST if after is None and not follow else after
    async with open_queue(settings) as queue:
        async for event in queue.events(start, follow=follow, **wanted):
            yield event
