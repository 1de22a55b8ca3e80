"""What a browser sends: with headers and credentials, and with `blockAds` without advertisements.

A browser sends what it is told to send to everybody, wherever a page or a redirect leads. So every
request is stopped before it is sent, a redirected one again, and is given what its origin may see:
headers go to the URL's own origin only, credentials each to its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from yarl import URL

from windrow.ingest.fetch.credentials import Credentials, put_headers
from windrow.ingest.fetch.target import parse_url

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page


log = logging.getLogger(__name__)

# Hosts that serve nothing else, with their subdomains. The large ones of both kinds: a page is read
# for its text, and a list of everybody would be out of date before it is long.
HOSTS: tuple[str, ...] = (
    "2mdn.net",
    "adform.net",
    "adnxs.com",
    "adsafeprotected.com",
    "adsrvr.org",
    "amazon-adsystem.com",
    "bat.bing.com",
    "bidswitch.net",
    "bluekai.com",
    "casalemedia.com",
    "clarity.ms",
    "connect.facebook.net",
    "criteo.com",
    "criteo.net",
    "demdex.net",
    "doubleclick.net",
    "doubleverify.com",
    "googleadservices.com",
    "googlesyndication.com",
    "googletagmanager.com",
    "googletagservices.com",
    "google-analytics.com",
    "hotjar.com",
    "krxd.net",
    "mathtag.com",
    "media.net",
    "moatads.com",
    "omtrdc.net",
    "openx.net",
    "outbrain.com",
    "pubmatic.com",
    "quantserve.com",
    "rlcdn.com",
    "rubiconproject.com",
    "scorecardresearch.com",
    "sharethrough.com",
    "smartadserver.com",
    "taboola.com",
    "teads.tv",
    "yieldmo.com",
)
_SCHEMES: Final = ("http", "https", "ws", "wss")


async def send_headers(
    context: BrowserContext,
    page: Page,
    url: str,
    headers: Mapping[str, str],
    credentials: Credentials | None,
) -> None:
    """Have these sent with what the page asks for: headers to the URL's own origin."""
    if not headers and not credentials:
        return
    session = await context.new_cdp_session(page)
    adding = _Adding(session, parse_url(url).origin(), headers, credentials)
    session.on("Fetch.requestPaused", adding.go_on)
    await session.send("Fetch.enable")


class _Adding:
    def __init__(
        self,
        session: CDPSession,
        origin: URL,
        headers: Mapping[str, str],
        credentials: Credentials | None,
    ) -> None:
        self._session = session
        self._origin = origin
        self._headers = headers
        self._credentials = credentials
        self._tasks: set[asyncio.Task[None]] = set()

    def go_on(self, paused: Mapping[str, Any]) -> None:
        task = asyncio.ensure_future(self._continue(paused))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _continue(self, paused: Mapping[str, Any]) -> None:
        from playwright.async_api import Error

        answer: dict[str, Any] = {"requestId": paused["requestId"]}
        request = paused["request"]
        if more := self._for(request["url"]):
            sent = dict(request["headers"])
            put_headers(sent, more)
            answer["headers"] = [{"name": name, "value": sent[name]} for name in sent]
        try:
            await self._session.send("Fetch.continueRequest", answer)
        except Error as error:
            log.debug("a request ended before it was sent: %s", error)

    def _for(self, url: str) -> dict[str, str]:
        target = URL(url)
        if target.scheme not in ("http", "https"):
            return {}
        more: dict[str, str] = {}
        if self._credentials is not None:
            put_headers(more, self._credentials.headers_for(target))
        if target.origin() == self._origin:
            put_headers(more, self._headers)
        return more


async def block_ads(context: BrowserContext, page: Page, url: str) -> None:
    """Have nothing sent there, unless that is where the page itself is."""
    session = await context.new_cdp_session(page)
    await session.send("Network.enable")
    await session.send("Network.setBlockedURLs", {"urls": blocked_urls(url)})


def blocked_urls(url: str) -> list[str]:
    host = urlsplit(url).hostname or ""
    return [
        f"{scheme}://{place}{rest}"
        for blocked in HOSTS
        if host != blocked and not host.endswith(f".{blocked}")
        for scheme in _SCHEMES
        for place in (blocked, f"*.{blocked}")
        for rest in ("/*", ":*")
    ]
