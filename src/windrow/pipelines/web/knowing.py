"""The addresses of a site that a tenant has scraped before: pages that are kept, and the pages of
crawls that are still there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.pages import page_site
from windrow.errors import InvalidOptions
from windrow.ingest.web.scope import CrawlOptions, Scope
from windrow.ingest.web.urls import place_of, without_www
from windrow.pipelines.web.context import scope_of
from windrow.pipelines.web.frontier import admits
from windrow.pipelines.web.payloads import CRAWL, SCRAPE, CrawlPayload
from windrow.queue.job import Job, JobState
from windrow.queue.queue import Queue

MOST_KEPT: Final = 100_000
MOST_CRAWLS: Final = 100  # the newest, of all sites
PART: Final = 1_000


async def known_urls(
    queue: Queue, scope: Scope, tenant: str | None
) -> AsyncGenerator[list[str], None]:
    """Part by part; some of them are not of the scope."""
    site = page_site(f"https://{without_www(place_of(scope.start).host)}")
    if site is not None:
        yield await Catalog(queue.database).pages.list_urls(tenant, site, MOST_KEPT)
    for crawl in await _crawls(queue, scope, tenant):
        after = None
        while pages := await queue.list(
            group=crawl.id, kind=SCRAPE, state=JobState.COMPLETED, after=after, limit=PART
        ):
            yield [page.payload["url"] for page in pages]
            after = pages[-1].id


async def is_passed_by(queue: Queue, url: str, tenant: str | None, crawl_id: str) -> bool:
    """Whether a crawl that came after this one has ended, follows changes too, and could have found
    the URL. (It did not: else it would be the last crawl that is known of the page.)"""
    for root in await _crawls(queue, Scope(url, CrawlOptions()), tenant):
        if root.id <= crawl_id or root.state is not JobState.COMPLETED:
            continue
        payload = msgspec.convert(root.payload, CrawlPayload)
        try:
            scope = scope_of(payload.url, payload.crawler_options)
        except InvalidOptions:  # patterns of an older version that are not supported any more
            continue
        group = await queue.group(root.id)
        is_whole = group.members < payload.crawler_options.limit
        if (
            is_whole
            and payload.scrape_options.wants("changeTracking")
            and await admits(scope, url, 0)
        ):
            return True
    return False


async def _crawls(queue: Queue, scope: Scope, tenant: str | None) -> list[Job]:
    """The tenant's crawls of this site."""
    groups = await queue.groups(tenant=tenant, limit=MOST_CRAWLS)
    own = [group.root for group in groups if group.root is not None and group.tenant == tenant]
    roots = await queue.get_many(own)
    return [
        root
        for root in roots.values()
        if root.kind == CRAWL and scope.is_own(root.payload.get("url", ""))
    ]
