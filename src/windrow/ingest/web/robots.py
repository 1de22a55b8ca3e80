"""robots.txt: what a site lets a crawler do (RFC 9309, with Crawl-delay and Sitemap).

A site without one (4xx) allows everything. One whose robots.txt cannot be had (5xx, 429, no answer)
allows nothing: nobody knows what it would have said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from protego import Protego

from windrow.ingest.web.urls import normalise, origin_of

DEFAULT_AGENT: Final = "Windrow"
# RFC 9309 asks for 500 KiB at the least; what comes after is not read.
MAX_BYTES: Final = 512 * 1024
# A site that asks for more would never be done.
MAX_CRAWL_DELAY_SECONDS: Final = 60.0


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
