"""The robots.txt of the origins that a worker meets, each asked for once in a while."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from windrow.errors import FetchError, RateLimited
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.web.robots import UNREACHABLE, Robots, robots_of_answer, robots_url
from windrow.ingest.web.urls import origin_of

KEPT_SECONDS: Final = 3600.0
KEPT_UNREACHABLE_SECONDS: Final = 60.0
KEPT_ORIGINS: Final = 2000
TIMEOUT_SECONDS: Final = 10.0
TRIES: Final = 3
PAUSE_SECONDS: Final = 0.5


@dataclass(slots=True)
class _Kept:
    until: float
    robots: Robots


class RobotsCache:
    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._asking: dict[str, asyncio.Task[Robots]] = {}

    async def of(self, url: str) -> Robots:
        """What the robots.txt for this URL says. Raises FetchError if its server cannot be reached
        at all, and RateLimited if it says so."""
        origin = origin_of(url)
        kept = self._kept.get(origin)
        if kept is not None and kept.until > time.monotonic():
            return kept.robots
        asking = self._asking.get(origin)
        if asking is None:
            asking = asyncio.create_task(self._ask(origin))
            self._asking[origin] = asking
            asking.add_done_callback(lambda _: self._asking.pop(origin, None))
        # Others wait for the same answer: that one of them is cancelled is not their concern.
        return await asyncio.shield(asking)

    async def of_stranger(self, url: str) -> Robots:
        """The same for a site that one only passes by: one that does not answer allows nothing."""
        try:
            return await self.of(url)
        except (FetchError, RateLimited):
            return UNREACHABLE

    async def _ask(self, origin: str) -> Robots:
        robots = UNREACHABLE
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(PAUSE_SECONDS * 2 ** (attempt - 1))
            answer = await self._fetcher.fetch(
                robots_url(origin), timeout=TIMEOUT_SECONDS, verify_tls=False
            )
            robots = robots_of_answer(answer.final_url, answer.status, answer.body)
            if robots.is_reachable:
                break
        self._keep(origin, robots)
        return robots

    def _keep(self, origin: str, robots: Robots) -> None:
        seconds = KEPT_SECONDS if robots.is_reachable else KEPT_UNREACHABLE_SECONDS
        self._kept[origin] = _Kept(time.monotonic() + seconds, robots)
        self._kept.move_to_end(origin)
        while len(self._kept) > KEPT_ORIGINS:
            self._kept.popitem(last=False)
