"""`web.crawl`: the beginning of a crawl. It has no result of its own: it waits for the pages.

Everything here can be done twice. The group holds on until all that the site names is enqueued, so
that it cannot end while this goes on; what was enqueued before a crash is left out by its key.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Final

from windrow.errors import FetchError, GroupEnded, IngestError, InvalidOptions, ScrapeFailed
from windrow.ingest.web.discovery import read_llms_txts, read_sitemaps, sitemap_urls
from windrow.ingest.web.robots import ALLOWS_ALL, Robots
from windrow.ingest.web.scope import Scope
from windrow.pipelines.web.context import Web, crawl_key, scope_of
from windrow.pipelines.web.frontier import choose, page_jobs
from windrow.pipelines.web.payloads import (
    FOUND_PRIORITY,
    LISTED_PRIORITY,
    CrawlPayload,
    PagePayload,
    finish_job,
)
from windrow.pipelines.web.skipping import note_blocked
from windrow.queue.job import Job
from windrow.queue.outcome import Done

CHUNK: Final = 1000
UNREACHABLE: Final = "SCRAPE_ROBOTS_UNREACHABLE"


async def start_crawl(web: Web, job: Job, payload: CrawlPayload) -> Done:
    scope = _scope(payload)
    robots = await _robots(web, scope)
    await web.queue.create_group(
        id=payload.crawl_id,
        root=job,
        hold=True,
        tenant=job.tenant,
        max_jobs=scope.options.limit,
        then=finish_job(payload, job.tenant),
    )
    page = PagePayload(
        url=scope.start,
        team_id=payload.team_id,
        crawl_id=payload.crawl_id,
        crawler_options=scope.options,
        scrape_options=payload.scrape_options,
        feed=payload.feed,
        origin_url=scope.start,
        is_limited=await _set_limit(web, scope, payload.crawl_id, robots),
    )
    try:
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


async def _robots(web: Web, scope: Scope) -> Robots:
    """What the site allows. One that does not answer is asked again later, and then given up."""
    if scope.options.ignore_robots_txt:
        return ALLOWS_ALL
    try:
        robots = await web.robots.of(scope.start)
        if not robots.is_reachable:
            why = "its robots.txt is answered with an error, so nothing may be fetched"
            raise FetchError(UNREACHABLE, scope.start, why, transient=True)
    except IngestError as error:
        raise ScrapeFailed(error) from error
    return robots


async def _set_limit(web: Web, scope: Scope, crawl_id: str, robots: Robots) -> bool:
    """Whether the crawl has a limit of its own: one page after the other with a pause between, or
    so many at once."""
    options = scope.options
    delay = options.delay or robots.crawl_delay(options.robots_user_agent)
    if delay is None and options.max_concurrency is None:
        return False
    if delay is not None:
        await web.queue.set_limit(crawl_key(crawl_id), active=1, per_second=1 / delay, burst=1)
    else:
        await web.queue.set_limit(crawl_key(crawl_id), active=options.max_concurrency)
    return True


async def _add_pages(web: Web, job: Job, page: PagePayload, scope: Scope, robots: Robots) -> None:
    """The start, then what the site names, until the crawl has all the pages it may have."""
    urls, blocked = await web.split_by_robots(scope, [scope.start])
    await note_blocked(web, job, page.crawl_id, blocked)
    if not await _add(web, job, page, scope, urls, FOUND_PRIORITY):
        return
    async with aclosing(_named(web, scope, robots)) as named:
        async for found in named:
            chosen = choose(scope, found, depth=0, found_on=None)
            urls, blocked = await web.split_by_robots(scope, chosen.values())
            await note_blocked(web, job, page.crawl_id, blocked)
            if not await _add(web, job, page, scope, urls, LISTED_PRIORITY):
                return


async def _named(web: Web, scope: Scope, robots: Robots) -> AsyncGenerator[list[str], None]:
    """The pages that the site names by itself."""
    if scope.options.sitemap != "skip":
        async for found in read_sitemaps(web.fetcher, sitemap_urls(scope.start, robots.sitemaps)):
            yield found
    if scope.options.llms_txt and scope.options.sitemap != "only":
        async for found in read_llms_txts(web.fetcher, scope.start):
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
