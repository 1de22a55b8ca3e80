"""`web.crawl`: the beginning of a crawl. It has no result of its own: it waits for the pages.

Everything here can be done twice. The group holds on until all that the site names is enqueued, so
that it cannot end while this goes on; what was enqueued before a crash is left out by its key.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Final

from windrow.errors import FetchError, GroupEnded, IngestError, InvalidOptions, ScrapeFailed
from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.web.discovery import read_llms_txts, read_sitemaps, sitemap_urls
from windrow.ingest.web.robots import ALLOWS_ALL, Robots
from windrow.ingest.web.scope import Scope
from windrow.pipelines.index.sessions import open_session
from windrow.pipelines.web.context import Web, scope_of
from windrow.pipelines.web.frontier import choose, page_jobs
from windrow.pipelines.web.limiting import set_crawl_limit
from windrow.pipelines.web.paying import open_run, within_budget
from windrow.pipelines.web.payloads import (
    FOUND_PRIORITY,
    LISTED_PRIORITY,
    CrawlPayload,
    PagePayload,
    finish_job,
)
from windrow.pipelines.web.skipping import note_blocked
from windrow.pipelines.web.telling import announce, tells_pages
from windrow.pipelines.webhooks.deliveries import open_deliveries
from windrow.queue.job import Job
from windrow.queue.outcome import Done

CHUNK: Final = 1000
UNREACHABLE: Final = "SCRAPE_ROBOTS_UNREACHABLE"


async def start_crawl(web: Web, job: Job, payload: CrawlPayload) -> Done:
    payload = within_budget(payload)
    scope = _scope(payload)
    robots = await _robots(web, scope, await web.credentials_of(job.tenant))
    if payload.webhook is not None:
        await open_deliveries(web.queue, payload.crawl_id, job.tenant)
    await open_run(web, job, payload)
    await web.queue.create_group(
        id=payload.crawl_id,
        root=job,
        hold=True,
        tenant=job.tenant,
        max_jobs=scope.options.limit,
        then=finish_job(payload, job.tenant),
    )
    if payload.feed is not None:
        await open_session(web.queue, payload.crawl_id)
    delay = scope.options.delay or robots.crawl_delay(scope.options.robots_user_agent)
    page = PagePayload(
        url=scope.start,
        team_id=payload.team_id,
        crawl_id=payload.crawl_id,
        crawler_options=scope.options,
        scrape_options=payload.scrape_options,
        feed=payload.feed,
        origin_url=scope.start,
        is_limited=await set_crawl_limit(
            web.queue,
            payload.crawl_id,
            delay,
            scope.options.max_concurrency or web.host_concurrency,
        ),
        delay=delay,
        is_told=tells_pages(payload),
    )
    try:
        await announce(web, payload, job.tenant)
        await _add_pages(web, job, page, scope, robots)
        await web.queue.close_group(payload.crawl_id)
    except GroupEnded:
        pass  # it was cancelled, or a run before this one had come to the end
    except Exception:
        if job.attempts + 1 >= job.max_attempts:
            # There is no next time: what was found so far is all there will be.
            await web.queue.close_group(payload.crawl_id)
        raise
    return Done(None)


def _scope(payload: CrawlPayload) -> Scope:
    payload.crawler_options.check()
    start = Scope(payload.url, payload.crawler_options).address(payload.url)
    if start is None:
        raise InvalidOptions(f"{payload.url!r} is no address of the web")
    return scope_of(start, payload.crawler_options)


async def _robots(web: Web, scope: Scope, credentials: Credentials | None) -> Robots:
    """What the site allows. One that does not answer is asked again later, and then given up."""
    if scope.options.ignore_robots_txt:
        return ALLOWS_ALL
    try:
        robots = await web.robots.of(scope.start, credentials)
        if not robots.is_reachable:
            why = "its robots.txt is answered with an error, so nothing may be fetched"
            raise FetchError(UNREACHABLE, scope.start, why, transient=True)
    except IngestError as error:
        raise ScrapeFailed(error) from error
    return robots


async def _add_pages(web: Web, job: Job, page: PagePayload, scope: Scope, robots: Robots) -> None:
    """The start, then what the site names, until the crawl has all the pages it may have."""
    urls, blocked = await web.split_by_robots(scope, [scope.start], job.tenant)
    await note_blocked(web, job, page.crawl_id, blocked)
    if not await _add(web, job, page, scope, urls, FOUND_PRIORITY):
        return
    async with aclosing(_named(web, job, scope, robots)) as named:
        async for found in named:
            chosen = choose(scope, found, depth=0, found_on=None)
            urls, blocked = await web.split_by_robots(scope, chosen.values(), job.tenant)
            await note_blocked(web, job, page.crawl_id, blocked)
            if not await _add(web, job, page, scope, urls, LISTED_PRIORITY):
                return


async def _named(
    web: Web, job: Job, scope: Scope, robots: Robots
) -> AsyncGenerator[list[str], None]:
    """The pages that the site names by itself."""
    credentials = await web.credentials_of(job.tenant)
    if scope.options.sitemap != "skip":
        sitemaps = sitemap_urls(scope.start, robots.sitemaps)
        async for found in read_sitemaps(web.fetcher, sitemaps, credentials):
            yield found
    if scope.options.llms_txt and scope.options.sitemap != "only":
        async for found in read_llms_txts(web.fetcher, scope.start, credentials):
            yield found


async def _add(
    web: Web, job: Job, page: PagePayload, scope: Scope, urls: Iterable[str], priority: int
) -> bool:
    """Enqueue pages; whether the crawl may have more."""
    listed = list(urls)
    for start in range(0, len(listed), CHUNK):
        jobs = page_jobs(
            job, page, scope, listed[start : start + CHUNK], depth=0, priority=priority
        )
        inserted = await web.queue.enqueue_many(jobs)
        # Left out under no other job's id: not seen before, but one too many.
        known = {one.id for one in inserted if one.outcome == "left_out"}
        if known and (await web.queue.group(page.crawl_id or "")).members >= scope.options.limit:
            return False
    return True
