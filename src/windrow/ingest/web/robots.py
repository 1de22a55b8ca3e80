"""robots.txt: what a site lets a crawler do (RFC 9309, with Crawl-delay and Sitemap).

A site without one (4xx) allows everything. One whose robots.txt cannot be had (5xx, 429, no answer)
allows nothing: nobody knows what it would have said. `RobotsCache` asks each origin once an hour.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from protego import Protego
from yarl import URL

from windrow.errors import FetchError, RateLimited
from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.web.urls import normalise, origin_of

DEFAULT_AGENT: Final = "Windrow"
# RFC 9309 asks for 500 KiB at the least; what comes after is not read.
MAX_BYTES: Final = 512 * 1024
# A site that asks for more would never be done.
MAX_CRAWL_DELAY_SECONDS: Final = 60.0

KEPT_SECONDS: Final = 3600.0
KEPT_UNREACHABLE_SECONDS: Final = 60.0
KEPT_ORIGINS: Final = 2000
TIMEOUT_SECONDS: Final = 10.0
TRIES: Final = 3
PAUSE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Robots:
    """What the robots.txt of one origin says."""

    sitemaps: tuple[str, ...] = ()
    is_reachable: bool = True
    rules: Any = field(default=None, repr=False)  # Protego's; None: there are none

    def allows(self, url: str, agent: str | None = None) -> bool:
        if self.rules is None:
            return self.is_reachable
        return bool(self.rules.can_fetch(url, agent or DEFAULT_AGENT))

    def crawl_delay(self, agent: str | None = None) -> float | None:
        """Seconds between two requests, if it asks for any; at most a minute."""
        if self.rules is None:
            return None
        asked = self.rules.crawl_delay(agent or DEFAULT_AGENT)
        return min(float(asked), MAX_CRAWL_DELAY_SECONDS) if asked and asked > 0 else None


ALLOWS_ALL: Final = Robots()
UNREACHABLE: Final = Robots(is_reachable=False)


def robots_url(url: str) -> str:
    """Where the robots.txt for a normalised URL is."""
    return f"{origin_of(url)}/robots.txt"


def robots_of_answer(url: str, status: int, body: bytes) -> Robots:
    """What the answer to a request for a robots.txt means."""
    if 200 <= status < 300:
        return read_robots(body, url)
    if 400 <= status < 500 and status != 429:
        return ALLOWS_ALL
    return UNREACHABLE


def read_robots(body: bytes, url: str) -> Robots:
    """A robots.txt that was found at `url`. Lines that mean nothing are passed over."""
    text = body[:MAX_BYTES].decode("utf-8-sig", errors="replace")
    rules = Protego.parse(text)
    found = (normalise(sitemap, url) for sitemap in rules.sitemaps)
    return Robots(sitemaps=tuple(dict.fromkeys(one for one in found if one)), rules=rules)


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
