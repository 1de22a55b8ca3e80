"""`Fetcher`: a URL in, a `Resource` out, or an error that says what went wrong.

    async with Fetcher() as fetcher:
        resource = await fetcher.fetch("https://example.org/")

Any status is an answer (a 404 page is a page), except "ask me later": that is `RateLimited`.
Redirects are followed here, not by aiohttp, so that each is checked like the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Literal, Self

import aiohttp
from aiohttp import CookieJar, DummyCookieJar, TCPConnector
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from windrow.errors import FetchError, FetchTimeout, RateLimited
from windrow.ingest.document import Resource
from windrow.ingest.fetch import failures
from windrow.ingest.fetch.body import ACCEPT_ENCODING, read_body
from windrow.ingest.fetch.chain import REDIRECTS, Chain
from windrow.ingest.fetch.charset import detect_charset, is_text
from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.fetch.guard import Guard
from windrow.ingest.fetch.limits import FetchLimits
from windrow.ingest.fetch.resolver import Resolver
from windrow.ingest.fetch.retry_after import parse_retry_after
from windrow.ingest.fetch.target import limit_key, parse_url

USER_AGENT: Final = "Mozilla/5.0 (compatible; windrow)"
MOBILE_USER_AGENT: Final = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1 (compatible; windrow)"
)
ACCEPT: Final = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
TRIES: Final = 2  # for a connection; everything later is for the job's own retries
PAUSE_SECONDS: Final = 0.2  # between them


@dataclass(frozen=True, slots=True)
class Posted:
    """How a request with a body was answered."""

    status: int
    retry_after: float | None  # seconds


class Fetcher:
    """HTTP for many at once, over one pool of connections."""

    def __init__(
        self,
        *,
        guard: Guard | None = None,
        limits: FetchLimits | None = None,
        user_agent: str = USER_AGENT,
    ) -> None:
        self.guard = guard or Guard()
        self.limits = limits or FetchLimits()
        self._user_agent = user_agent
        self._resolver: Resolver | None = None
        self._guarded: aiohttp.ClientSession | None = None
        self._open: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._resolver = Resolver(self.limits.connect_seconds)
        self._guarded = self._session(self._resolver, is_guarded=True)
        # Hosts the operator allowed by name; connections are not shared with those of the others.
        self._open = self._session(self._resolver, is_guarded=False)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for session in (self._guarded, self._open):
            if session is not None:
                await session.close()
        if self._resolver is not None:
            await self._resolver.close()

    async def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        cookies: Mapping[str, str] | None = None,
        jar: CookieJar | None = None,
        credentials: Credentials | None = None,
        timeout: float | None = None,
        max_bytes: int | None = None,
        verify_tls: bool = True,
        mobile: bool = False,
        user_agent: str | None = None,
        etag: str | None = None,
        last_modified: str | None = None,
        method: Literal["GET", "HEAD"] = "GET",
        before_redirect: Callable[[], Awaitable[None]] | None = None,
    ) -> Resource:
        """What is at a URL.

        `headers` and `cookies` are sent to the URL's own origin only, wherever it redirects to, and
        each of the `credentials` to the origin it is bound to.
        Cookies that servers set live as long as this fetch, or in `jar` if one is given. With
        `etag` or `last_modified` of an earlier answer, the resource may be `is_unchanged`.
        `before_redirect` is called before each request but the first; what it raises ends the
        fetch.
        """
        agent = user_agent or (MOBILE_USER_AGENT if mobile else self._user_agent)
        own = {"Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING, "User-Agent": agent}
        if etag:
            own["If-None-Match"] = etag
        if last_modified:
            own["If-Modified-Since"] = last_modified
        chain = Chain(
            url, own=own, given=headers, cookies=cookies, jar=jar, credentials=credentials
        )
        seconds = self.limits.total_seconds if timeout is None else timeout
        cap = self.limits.max_bytes if max_bytes is None else max_bytes
        try:
            async with asyncio.timeout(seconds):
                return await self._follow(chain, method, verify_tls, cap, before_redirect)
        except TimeoutError as error:
            raise FetchTimeout(chain.asked, f"not there after {seconds:g} s") from error

    async def post(
        self, url: str, body: bytes, *, headers: Mapping[str, str], timeout: float
    ) -> Posted:
        """Send something to a URL, once: it may have come although this fails. Redirects are not
        followed, and the answer is not read. Raises FetchError."""
        target = parse_url(url)
        session = self._session_for(target)
        try:
            async with (
                asyncio.timeout(timeout),
                session.post(target, data=body, headers=headers, allow_redirects=False) as response,
            ):
                response.close()  # whatever else it says
                after = response.headers.get("Retry-After")
                return Posted(response.status, parse_retry_after(after))
        except TimeoutError as error:
            raise FetchTimeout(url, f"no answer after {timeout:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise failures.to_fetch_error(error, url) from error

    async def _follow(
        self,
        chain: Chain,
        method: str,
        verify_tls: bool,
        cap: int,
        before_redirect: Callable[[], Awaitable[None]] | None,
    ) -> Resource:
        """Request after request, until one answers with something else than a redirect."""
        while True:
            response = await self._request(chain, method, verify_tls)
            try:
                if set_cookies := response.headers.getall("Set-Cookie", None):
                    chain.keep_cookies(set_cookies)
                location = response.headers.get("Location")
                if location is None or response.status not in REDIRECTS:
                    return await self._receive(chain, response, method, cap)
                chain.follow(location, self.limits.max_redirects)
                await self._finish(response)
            except (aiohttp.ClientError, OSError) as error:
                raise failures.to_fetch_error(error, chain.asked) from error
            finally:
                response.release()  # closes the connection if there is still something in it
            if before_redirect is not None:
                await before_redirect()

    async def _request(self, chain: Chain, method: str, verify_tls: bool) -> aiohttp.ClientResponse:
        """Send one request; the answer's head is there, its body is not."""
        session = self._session_for(chain.url)
        tries = 1
        while True:
            try:
                return await session.request(
                    method,
                    chain.url,
                    headers=chain.headers(),
                    allow_redirects=False,
                    ssl=verify_tls or chain.shows_credentials,
                )
            except (aiohttp.ClientError, OSError) as error:
                failure = failures.to_fetch_error(error, chain.asked)
                if tries == TRIES or not _is_worth_another_try(failure):
                    raise failure from error
            tries += 1
            await asyncio.sleep(PAUSE_SECONDS)

    def _session_for(self, target: URL) -> aiohttp.ClientSession:
        """Raises Blocked if this may not be connected to, as far as its name tells."""
        session = self._open if self.guard.check(target) else self._guarded
        if session is None:
            raise RuntimeError("use a Fetcher as a context manager: async with Fetcher() as …")
        return session

    async def _receive(
        self, chain: Chain, response: aiohttp.ClientResponse, method: str, cap: int
    ) -> Resource:
        _raise_if_asked_too_often(chain, response)
        is_unchanged = response.status == 304
        has_body = method != "HEAD" and not is_unchanged
        body = await read_body(response, chain.asked, self.limits, cap) if has_body else b""
        said = response.headers.get("Content-Type", "")
        content_type = said.partition(";")[0].strip().lower()
        return Resource(
            url=chain.asked,
            final_url=str(chain.url),
            status=response.status,
            headers=_to_keep(response.headers),
            body=body,
            content_type=content_type,
            charset=detect_charset(body, said) if is_text(content_type, body) else None,
            redirects=tuple(chain.redirects),
            etag=response.headers.get("ETag"),
            last_modified=response.headers.get("Last-Modified"),
            is_unchanged=is_unchanged,
        )

    async def _finish(self, response: aiohttp.ClientResponse) -> None:
        """Read the few bytes of a redirect's body, so that its connection can be used again."""
        if response.content_length is not None and response.content_length <= 16_384:
            await response.content.read()

    def _session(self, resolver: Resolver, *, is_guarded: bool) -> aiohttp.ClientSession:
        limits = self.limits
        connector = TCPConnector(
            limit=limits.connections,
            limit_per_host=limits.connections_per_host,
            resolver=resolver,
            socket_factory=self.guard.open_socket if is_guarded else None,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(
                connect=None,
                sock_connect=limits.connect_seconds,
                sock_read=limits.silence_seconds,
            ),
            max_line_size=limits.max_header_bytes,
            max_field_size=limits.max_header_bytes,
            max_headers=limits.max_headers,
        )


def _is_worth_another_try(failure: FetchError) -> bool:
    return failure.transient and failure.code in failures.WORTH_ANOTHER_TRY


def _raise_if_asked_too_often(chain: Chain, response: aiohttp.ClientResponse) -> None:
    after = response.headers.get("Retry-After")
    if response.status == 429 or (response.status == 503 and after is not None):
        raise RateLimited(limit_key(chain.url), parse_retry_after(after))


def _to_keep(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The headers, in a form that can cross processes, without the secrets of this fetch."""
    kept = CIMultiDict(headers)
    if "Set-Cookie" in kept:
        kept.popall("Set-Cookie")
    return kept
