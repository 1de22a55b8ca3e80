"""What a site says of itself: the pages of its sitemaps and of its llms.txt, as they are read."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final

from windrow.errors import FetchError
from windrow.ingest.document import Resource
from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.web.sitemap import SitemapEntry, read_sitemap
from windrow.ingest.web.urls import normalise, origin_of, page_key, place_of

logger = logging.getLogger(__name__)

MAX_SITEMAPS: Final = 1000  # an index that leads to itself in ever new ways has an end
TIMEOUT_SECONDS: Final = 60.0

# Whether a sitemap may be requested, and by which other one it is named.
MayRead = Callable[[str, str], Awaitable[bool]]

NAMES: Final = ("llms.txt", "llms-full.txt")
MAX_LINKS: Final = 10_000

_LINK: Final = re.compile(
    r"\]\(\s*<?([^\s<>()]{1,2048}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,2048})?)>?"
    r"|(?<![(\w])(https?://[^\s<>()\[\]\"'`]{1,2048})"
)
_FENCE: Final = re.compile(r"^\s*(```|~~~)")


def sitemap_urls(start: str, listed: Iterable[str] = ()) -> list[str]:
    """Where the sitemaps for a start may be: those that robots.txt lists, then the usual places."""
    origin, path = origin_of(start), place_of(start).path
    usual = (f"{origin}{path.rpartition('/')[0]}/sitemap.xml", f"{origin}/sitemap.xml")
    return list(dict.fromkeys((*listed, *usual)))


class ShownHeaders:
    """Headers of somebody's own, which may be secret: for one site, and no other that it names."""

    def __init__(self, site: str, headers: Mapping[str, str]) -> None:
        self._origin = origin_of(site)
        self._headers = headers

    def to(self, url: str) -> Mapping[str, str] | None:
        return self._headers if self._headers and origin_of(url) == self._origin else None


async def read_sitemaps(
    fetcher: Fetcher,
    urls: Iterable[str],
    credentials: Credentials | None = None,
    shown: ShownHeaders | None = None,
    may_read: MayRead | None = None,
) -> AsyncGenerator[list[str], None]:
    """The pages of these sitemaps and of those they lead to: one list for each file that is asked
    for, also if it names none, so that the caller can stop before the next request. `may_read`
    is asked of each sitemap that another one names."""
    waiting = deque(urls)
    known = {page_key(url, similar=False) for url in waiting}
    while waiting:
        url = waiting.popleft()
        answer = await _ask(fetcher, url, credentials, None if shown is None else shown.to(url))
        entries = []
        if answer is not None and answer.status == 200:
            entries = await asyncio.to_thread(_entries, answer)
        for entry in entries:
            key = page_key(entry.url, similar=False)
            if entry.is_sitemap and key not in known and len(known) < MAX_SITEMAPS:
                known.add(key)
                if may_read is None or await may_read(entry.url, url):
                    waiting.append(entry.url)
        yield [entry.url for entry in entries if not entry.is_sitemap]


async def fetch_llms_txt(
    fetcher: Fetcher, url: str, credentials: Credentials | None = None
) -> list[str]:
    """The llms.txt at a URL and the pages that it names; nothing if there is no such file."""
    answer = await _ask(fetcher, url, credentials)
    if answer is None or answer.status != 200:
        return []
    text = answer.body.decode("utf-8", errors="replace")
    if not is_llms_txt(answer.content_type, text):
        return []
    return [url, *read_llms_txt(text, answer.final_url)]


async def _ask(
    fetcher: Fetcher,
    url: str,
    credentials: Credentials | None,
    headers: Mapping[str, str] | None = None,
) -> Resource | None:
    """What is there; None if there is no answer, which ends no crawl."""
    is_secret = headers is not None
    try:
        return await fetcher.fetch(
            url,
            headers=headers,
            credentials=credentials,
            timeout=TIMEOUT_SECONDS,
            verify_tls=is_secret,
        )
    except FetchError as error:
        logger.info("passed over: %s", error)
        return None


def _entries(answer: Resource) -> list[SitemapEntry]:
    return list(read_sitemap(answer.body, answer.final_url))


def llms_txt_urls(start: str) -> list[str]:
    """Where the files may be for a crawl that begins at `start`: beside it, and at the root."""
    origin, path = origin_of(start), place_of(start).path
    folders = dict.fromkeys((f"{origin}{path.rpartition('/')[0]}/", f"{origin}/"))
    return [f"{folder}{name}" for folder in folders for name in NAMES]


def read_llms_txt(text: str, url: str) -> list[str]:
    """The pages that the file at `url` names, each once, in its order; not those in its code."""
    found: dict[str, None] = {}
    for line in _prose(text):
        for link in _LINK.finditer(line):
            target = normalise((link[1] or link[2]).rstrip(".,;:!?*"), url)
            if target is not None:
                found[target] = None
        if len(found) >= MAX_LINKS:
            break
    return list(found)[:MAX_LINKS]


def is_llms_txt(content_type: str, text: str) -> bool:
    """Whether an answer is such a file, and not the page a site shows for whatever is asked."""
    if "html" in content_type:
        return False
    return bool(text.strip()) and not text.lstrip()[:200].lower().startswith(("<!doctype", "<html"))


def _prose(text: str) -> Iterator[str]:
    is_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield line
