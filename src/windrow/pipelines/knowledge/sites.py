"""Sites as sources: their crawls, whose pages become documents when they are scraped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from windrow.catalog.sources import SourceRow
from windrow.ids import new_id
from windrow.ingest.options import ScrapeOptions
from windrow.ingest.web.scope import CrawlOptions
from windrow.pipelines.web.limiting import limit_keys
from windrow.pipelines.web.payloads import (
    CRAWL,
    KICKOFF_PRIORITY,
    NO_TEAM,
    SCRAPE,
    BudgetPayload,
    CrawlPayload,
    FeedPayload,
    PagePayload,
    to_json,
)
from windrow.pipelines.web.payloads import QUEUE as WEB_QUEUE
from windrow.queue.job import LIVE, NewJob
from windrow.queue.queue import Queue

# How far something is stays to be read for so long, whatever becomes of its pages.
KEPT_SECONDS: Final = 7 * 86_400
# Pages are kept, and asked for with what was kept: one that has not changed is not sent again.
CONDITIONAL: Final = {"maxAge": 0}


def crawl_job(
    source: SourceRow,
    options: Mapping[str, Any],
    scrape_options: Mapping[str, Any] | None = None,
    *,
    priority: int = KICKOFF_PRIORITY,
    budget: BudgetPayload | None = None,
    id: str | None = None,
) -> NewJob:
    """A crawl of a source's address, whose pages become its documents. A source has one at a time:
    where one is under way, that is it. Raises InvalidOptions."""
    crawl_id = id or new_id()
    payload = CrawlPayload(
        url=source.uri,
        crawl_id=crawl_id,
        team_id=source.tenant or NO_TEAM,
        crawler_options=CrawlOptions.parse(dict(options)),
        scrape_options=ScrapeOptions.parse({**CONDITIONAL, **(scrape_options or {})}),
        feed=FeedPayload(collection=source.collection, source=source.id, tags=source.tags),
        budget=budget,
    )
    return NewJob(
        CRAWL,
        to_json(payload),
        queue=WEB_QUEUE,
        priority=priority,
        unique=crawl_key(source.id),
        tenant=source.tenant,
        id=crawl_id,
        tags=(f"source:{source.id}",),
        retention=KEPT_SECONDS,
    )


def crawl_key(source: str) -> str:
    return f"{CRAWL}:{source}"


async def find_crawl(queue: Queue, tenant: str | None, source: str) -> str | None:
    """The crawl of a source that is under way, if one is."""
    found = await queue.list(unique=crawl_key(source), tenant=tenant, state=list(LIVE))
    return next((job.id for job in found if job.tenant == tenant), None)


def page_job(
    source: SourceRow,
    scrape_options: Mapping[str, Any] | None = None,
    *,
    priority: int = KICKOFF_PRIORITY,
    budget: BudgetPayload | None = None,
) -> NewJob:
    """One page, which is a source of its own. Raises InvalidOptions."""
    payload = PagePayload(
        url=source.uri,
        team_id=source.tenant or NO_TEAM,
        scrape_options=ScrapeOptions.parse({**CONDITIONAL, **(scrape_options or {})}),
        feed=FeedPayload(collection=source.collection, source=source.id, tags=source.tags),
        budget=budget,
    )
    return NewJob(
        SCRAPE,
        to_json(payload),
        queue=WEB_QUEUE,
        priority=priority,
        tenant=source.tenant,
        limits=limit_keys(source.uri, tenant=source.tenant),
        id=new_id(),
        tags=(f"source:{source.id}",),
        retention=KEPT_SECONDS,
    )
