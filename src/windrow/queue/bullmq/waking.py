"""Who sleeps is woken by BullMQ's own event streams, one for each queue, whoever wrote to them.

One reader for all bells of a store follows the streams while there are bells. A delayed job becomes
due without an event: the claim that found nothing else says when, and a timer rings then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

from redis.asyncio.client import Pipeline

from windrow.errors import StoreError
from windrow.queue.bells import Belfry, Bell, Wish
from windrow.queue.bullmq.connection import Links, now_ms
from windrow.queue.bullmq.failures import wrapped_errors
from windrow.queue.bullmq.rows import our_id

logger = logging.getLogger(__name__)

# The reader asks anew after this, and then for queues that have come meanwhile too.
BLOCK_MS: Final = 1000
RETRY_SECONDS: Final = 1.0
WORK: Final = frozenset({"waiting", "delayed", "stalled", "resumed"})
ENDS: Final = frozenset({"completed", "failed", "removed"})


class Ears:
    def __init__(self, links: Links) -> None:
        self.belfry = Belfry()
        self._links = links
        self._places: dict[str, str] = {}  # how far each stream was read
        self._task: asyncio.Task[None] | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @asynccontextmanager
    async def listen(self, wish: Wish) -> AsyncIterator[Bell]:
        """A bell for what is wished: what is written after this has returned rings it."""
        bell = Bell()
        self.belfry.hang(bell, wish)
        try:
            await self._start(wish.queues or ())
            yield bell
        finally:
            self.belfry.take_down(bell)

    def ring_at(self, due: dict[str, int]) -> None:
        """Ring for delayed jobs of these queues, at these times."""
        loop = asyncio.get_running_loop()
        for queue, at in due.items():
            if (timer := self._timers.pop(queue, None)) is not None:
                timer.cancel()
            wait = max(0.0, (at - now_ms()) / 1000)
            self._timers[queue] = loop.call_later(wait, self.belfry.ring, (queue,))

    async def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _start(self, queues: Iterable[str]) -> None:
        """Follow from here on, at the latest: what came before is seen by looking."""
        await self._find_places([*await self._links.queues(), *queues])
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow(), name="windrow-bullmq-events")

    async def _find_places(self, queues: Iterable[str]) -> None:
        fresh = [queue for queue in dict.fromkeys(queues) if queue not in self._places]
        if not fresh:
            return

        async def fill(pipe: Pipeline) -> None:
            for queue in fresh:
                pipe.xrevrange(self._links.scripts(queue).keys["events"], count=1)

        for queue, last in zip(fresh, await self._links.together(fill), strict=True):
            self._places.setdefault(queue, last[0][0] if last else "0")

    async def _follow(self) -> None:
        while len(self.belfry):
            try:
                await self._find_places(await self._links.queues())
                await self._read()
            except StoreError as error:
                logger.warning("cannot follow the events of BullMQ: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
        self._places.clear()  # who listens again begins where the streams are then

    async def _read(self) -> None:
        if not self._places:
            await asyncio.sleep(BLOCK_MS / 1000)
            return
        queues = {self._links.scripts(one).keys["events"]: one for one in self._places}
        streams = {key: self._places[queue] for key, queue in queues.items()}
        with wrapped_errors():
            answer: Any = await self._links.client.xread(streams, block=BLOCK_MS)
        for key, entries in _pairs(answer):
            queue = queues[key]
            self._places[queue] = entries[-1][0]
            self._ring(queue, [fields for _, fields in entries])

    def _ring(self, queue: str, events: list[dict[str, str]]) -> None:
        kinds = {event.get("event") for event in events}
        ended = [
            our_id(queue, event["jobId"])
            for event in events
            if event.get("event") in ENDS and "jobId" in event
        ]
        self.belfry.ring([queue] if kinds & WORK else [], ended)


def _pairs(answer: Any) -> list[tuple[str, Any]]:
    """What XREAD says, which is a list or a dict by the protocol that is spoken."""
    if not answer:
        return []
    if isinstance(answer, dict):
        return [(key, entries[0] if entries else []) for key, entries in answer.items()]
    return [(key, entries) for key, entries in answer]
