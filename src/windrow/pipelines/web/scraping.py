"""One page: fetched, or remembered from an earlier scrape, and turned into a document."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from windrow.errors import IngestError, ScrapeFailed
from windrow.ingest.browser.browser import needs_browser, why_browser
from windrow.ingest.browser.rendered_page import NotAPage
from windrow.ingest.convert import convert
from windrow.ingest.document import Document, Resource
from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.options import Format, ScrapeOptions

if TYPE_CHECKING:
    from windrow.pipelines.web.context import Web

# What is larger is converted in a thread; of the usual page the thread would cost more than it
# saves, because the conversion takes about a millisecond.
SMALL_BYTES: Final = 64 * 1024
_LINKS: Final = Format(type="links")
_MARKDOWN: Final = Format(type="markdown")


@dataclass(frozen=True, slots=True)
class Scraped:
    resource: Resource
    document: Document
    links: list[str]  # every address the page leads to, asked for or not
    text: str | None = None  # as markdown, for the index; asked for or not


async def scrape(
    web: Web,
    url: str,
    options: ScrapeOptions,
    *,
    job_id: str,
    credentials: Credentials | None = None,
    before_redirect: Callable[[], Awaitable[None]] | None = None,
) -> Scraped:
    """The page at a URL, in a browser if what is asked for needs one. Raises ScrapeFailed, whose
    message begins with a code, and RateLimited."""
    if needs_browser(options):
        return await _render(web, url, options, job_id, credentials)
    resource = await fetch_page(
        web.fetcher, url, options, credentials=credentials, before_redirect=before_redirect
    )
    return await make_document(resource, options, job_id=job_id)


async def fetch_page(
    fetcher: Fetcher,
    url: str,
    options: ScrapeOptions,
    *,
    credentials: Credentials | None = None,
    etag: str | None = None,
    last_modified: str | None = None,
    before_redirect: Callable[[], Awaitable[None]] | None = None,
) -> Resource:
    """What is at a URL, or, with what an earlier answer had, that it is still the same."""
    with scrape_failures():
        return await fetcher.fetch(
            url,
            headers=options.sent_headers or None,
            credentials=credentials,
            timeout=None if options.timeout is None else options.timeout / 1000,
            verify_tls=options.verifies_tls,
            mobile=options.mobile,
            etag=etag,
            last_modified=last_modified,
            before_redirect=before_redirect,
        )


async def make_document(resource: Resource, options: ScrapeOptions, *, job_id: str) -> Scraped:
    with scrape_failures():
        document = await _convert(resource, _for_crawl_and_index(options))
    document.metadata.scrape_id = job_id
    for missing in options.unmet:
        document.warn(missing)
    links = document.links or []
    if not options.wants("links"):
        document.links = None
    text = document.markdown
    if not options.wants_markdown:
        document.markdown = None
    return Scraped(resource, document, links, text)


@contextmanager
def scrape_failures() -> Iterator[None]:
    """What goes wrong with a page, as the failure of a scrape."""
    try:
        yield
    except IngestError as error:
        raise ScrapeFailed(error) from error


async def _render(
    web: Web, url: str, options: ScrapeOptions, job_id: str, credentials: Credentials | None
) -> Scraped:
    try:
        with scrape_failures():
            rendered = await web.browser.render(url, options, credentials=credentials)
    except NotAPage:
        resource = await fetch_page(web.fetcher, url, options, credentials=credentials)
        scraped = await make_document(resource, options, job_id=job_id)
        scraped.document.warn(f"This is no page, so {why_browser(options)} had nothing to work on.")
        return scraped
    scraped = await make_document(rendered.resource, options, job_id=job_id)
    scraped.document.screenshot = rendered.screenshot
    scraped.document.actions = rendered.actions
    return scraped


async def _convert(resource: Resource, options: ScrapeOptions) -> Document:
    if len(resource.body) <= SMALL_BYTES and "html" in resource.content_type:
        return convert(resource, options)
    return await asyncio.to_thread(convert, resource, options)


def _for_crawl_and_index(options: ScrapeOptions) -> ScrapeOptions:
    """The options with the formats that Windrow needs itself: links to follow, text to index."""
    if options.wants("rawBase64"):
        return options
    more = [] if options.wants("links") else [_LINKS]
    if options.is_indexed and not options.wants_markdown:
        more.append(_MARKDOWN)
    return msgspec.structs.replace(options, formats=[*options.formats, *more])
