"""The robots.txt of the origins that a worker meets, each asked for once in a while."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from yarl import URL

from windrow.errors import FetchError, RateLimited
from windrow.ingest.fetch.credentials import Credentials
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


@dataclass(frozen=True, slots=True)
class _Key:
    """Whom a site lets in it may tell something else."""

    origin: str
    shown: int  # stands for what the origin is shown of somebody's credentials; 0: nothing


class RobotsCache:
    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._asking: dict[_Key, asyncio.Task[Robots]] = {}

    async def of(self, url: str, credentials: Credentials | None = None) -> Robots:
        """What the robots.txt for this URL says. Raises FetchError if its server cannot be reached
        at all, and RateLimited if it says so."""
        origin = origin_of(url)
        key = _Key(origin, _shown(origin, credentials))
        kept = self._kept.get(key)
        if kept is not None and kept.until > time.monotonic():
            return kept.robots
        asking = self._asking.get(key)
        if asking is None:
            asking = asyncio.create_task(self._ask(key, credentials))
            self._asking[key] = asking
            asking.add_done_callback(lambda _: self._asking.pop(key, None))
        # Others wait for the same answer: that one of them is cancelled is not their concern.
        return await asyncio.shield(asking)

    async def of_stranger(self, url: str, credentials: Credentials | None = None) -> Robots:
        """The same for a site that one only passes by: one that does not answer allows nothing."""
        try:
            return await self.of(url, credentials)
        except (FetchError, RateLimited):
            return UNREACHABLE

    async def _ask(self, key: _Key, credentials: Credentials | None) -> Robots:
        robots = UNREACHABLE
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(PAUSE_SECONDS * 2 ** (attempt - 1))
            answer = await self._fetcher.fetch(
                robots_url(key.origin),
                credentials=credentials,
                timeout=TIMEOUT_SECONDS,
                verify_tls=False,
            )
            robots = robots_of_answer(answer.final_url, answer.status, answer.body)
            if robots.is_reachable:
                break
        self._keep(key, robots)
        return robots

    def _keep(self, key: _Key, robots: Robots) -> None:
        seconds = KEPT_SECONDS if robots.is_reachable else KEPT_UNREACHABLE_SECONDS
        self._kept[key] = _Kept(time.monotonic() + seconds, robots)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT_ORIGINS:
            self._kept.popitem(last=False)


def _shown(origin: str, credentials: Credentials | None) -> int:
    headers = credentials.headers_for(URL(origin)) if credentials else {}
    return hash(frozenset(headers.items())) or 1 if headers else 0
