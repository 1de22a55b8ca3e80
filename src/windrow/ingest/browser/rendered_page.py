"""From what a browser shows to a `Resource`, as if it had been fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from multidict import CIMultiDict

from windrow.errors import Blocked, FetchError, RateLimited
from windrow.ingest.document import Resource
from windrow.ingest.fetch import codes
from windrow.ingest.fetch.charset import detect_charset, is_text
from windrow.ingest.fetch.guard import ForbiddenAddress
from windrow.ingest.fetch.proxy import PROXY_STATUS
from windrow.ingest.fetch.retry_after import parse_retry_after
from windrow.ingest.fetch.target import limit_key

if TYPE_CHECKING:
    from playwright.async_api import Page, Response

HTML: Final = ("text/html", "application/xhtml+xml", "")


class NotAPage(Exception):
    """A file, which a browser would download, or show in a page of its own."""


async def check_answer(response: Response, url: str) -> None:
    """Raise unless there is a page, or text, to go on with."""
    headers = CIMultiDict(await response.all_headers())
    _raise_if_refused(response, headers, url)
    content_type = _content_type(headers)
    if content_type not in HTML and not is_text(content_type):
        raise NotAPage(content_type)


async def read_page(page: Page, response: Response, url: str, most_bytes: int) -> Resource:
    """The page as it is now; of text that is no page, what the server sent."""
    headers = CIMultiDict(await response.all_headers())
    headers.popall("Set-Cookie", None)
    content_type = _content_type(headers)
    if content_type in HTML:
        body, charset = (await page.content()).encode(), "utf-8"
    else:
        body = await response.body()
        charset = detect_charset(body, headers.get("Content-Type", ""))
    if len(body) > most_bytes:
        raise FetchError(codes.TOO_LARGE, url, f"is larger than {most_bytes} bytes")
    return Resource(
        url=url,
        final_url=page.url,
        status=response.status,
        body=body,
        content_type=content_type or "text/html",
        charset=charset,
        headers=headers,
        redirects=_redirects(response),
    )


def _raise_if_refused(response: Response, headers: CIMultiDict[str], url: str) -> None:
    """The proxy's own answers are none of the site's; it gives such to plain requests only."""
    status = response.status
    if PROXY_STATUS in headers and response.url.startswith("http://"):
        if status == 403:
            raise Blocked(url, str(ForbiddenAddress()))
        is_unknown = "dns_error" in headers[PROXY_STATUS]
        code = codes.DNS if is_unknown else codes.UNREACHABLE
        raise FetchError(code, url, "no connection", transient=not is_unknown)
    after = headers.get("Retry-After")
    if status == 429 or (status == 503 and after is not None):
        raise RateLimited(limit_key(url), parse_retry_after(after))


def _content_type(headers: CIMultiDict[str]) -> str:
    return headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _redirects(response: Response) -> tuple[str, ...]:
    left: list[str] = []
    request = response.request.redirected_from
    while request is not None:
        left.append(request.url)
        request = request.redirected_from
    return tuple(reversed(left))
