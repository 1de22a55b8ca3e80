"""`blockAds` in a browser: what goes to servers of advertisements and of trackers is not sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

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
