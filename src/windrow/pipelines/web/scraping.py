"""One page: fetched, or remembered from an earlier scrape, and turned into a document."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import msgspec

from windrow.errors import IngestError, ScrapeFailed
from windrow.ingest.convert import convert
from windrow.ingest.document import Document, Resource
from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.options import Format, ScrapeOptions

# What is larger is converted in a thread; of the usual page the thread would cost more than it
# saves, because the conversion takes about a millisecond.
SMALL_BYTES: Final = 64 * 1024
_LINKS: Final = Format(type="links")


@dataclass(frozen=True, slots=True)
class Scraped:
    resource: Resource
    document: Document
    links: list[str]  # every address the page leads to, asked for or not


async def scrape(
    fetcher: Fetcher,
    url: str,
    options: ScrapeOptions,
    *,
    job_id: str,
    credentials: Credentials | None = None,
) -> Scraped:
    """The page at a URL. Raises ScrapeFailed, whose message begins with a code, and RateLimited."""
    resource = await fetch_page(fetcher, url, options, credentials=credentials)
    return await make_document(resource, options, job_id=job_id)


async def fetch_page(
    fetcher: Fetcher,
    url: str,
    options: ScrapeOptions,
    *,
    credentials: Credentials | None = None,
    etag: str | None = None,
    last_modified: str | None = None,
) -> Resource:
    """What is at a URL, or, with what an earlier answer had, that it is still the same."""
    try:
        return await fetcher.fetch(
            url,
            headers=options.headers or None,
            credentials=credentials,
            timeout=None if options.timeout is None else options.timeout / 1000,
            verify_tls=options.verifies_tls,
            mobile=options.mobile,
            etag=etag,
            last_modified=last_modified,
        )
    except IngestError as error:
        raise ScrapeFailed(error) from error


async def make_document(resource: Resource, options: ScrapeOptions, *, job_id: str) -> Scraped:
    try:
        document = await _convert(resource, _with_links(options))
    except IngestError as error:
        raise ScrapeFailed(error) from error
    document.metadata.scrape_id = job_id
    links = document.links or []
    if not options.wants("links"):
        document.links = None
    return Scraped(resource, document, links)


async def _convert(resource: Resource, options: ScrapeOptions) -> Document:
    if len(resource.body) <= SMALL_BYTES and "html" in resource.content_type:
        return convert(resource, options)
    return await asyncio.to_thread(convert, resource, options)


def _with_links(options: ScrapeOptions) -> ScrapeOptions:
    if options.wants("links", "rawBase64"):
        return options
    return msgspec.structs.replace(options, formats=[*options.formats, _LINKS])
