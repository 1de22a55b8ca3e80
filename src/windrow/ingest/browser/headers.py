"""Headers and credentials in a browser: added request by request, each to its own origin only.

A browser sends what it is told to send to everybody, wherever a page or a redirect leads. So every
request is stopped before it is sent, a redirected one again, and is given what its origin may see.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from yarl import URL

from windrow.ingest.fetch.credentials import Credentials, put_headers
from windrow.ingest.fetch.target import parse_url

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page

log = logging.getLogger(__name__)


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
