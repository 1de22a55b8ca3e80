"""`web.crawl`: the beginning of a crawl. It has no result of its own: it waits for the pages.

Everything here can be done twice. The group holds on until all that the site names is enqueued, so
that it cannot end while this goes on; what was enqueued before a crash is left out by its key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import partial
from typing import Final

from windrow.errors import FetchError, GroupEnded, IngestError, InvalidOptions, ScrapeFailed
from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.web.discovery import fetch_llms_txt, llms_txt_urls, read_sitemaps, sitemap_urls
from windrow.ingest.web.robots import ALLOWS_ALL, Robots
from windrow.ingest.web.scope import Scope
from windrow.pipelines.index.sessions import open_session
from windrow.pipelines.web.context import Web, scope_of
from windrow.pipelines.web.frontier import choose, page_jobs
from windrow.pipelines.web.limiting import crawl_key, filling_group, set_crawl_limit
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
from windrow.queue.outcome import Done, Snooze
from windrow.queue.records import Group

CHUNK: Final = 1000
UNREACHABLE: Final = "SCRAPE_ROBOTS_UNREACHABLE"


async def start_crawl(web: Web, job: Job, payload: CrawlPayload) -> Done | Snooze:
    if await web.is_asked_to_stop(job):
        return Snooze(0)  # which ends it
    payload = within_budget(payload)
    scope = _scope(payload)
    if await _is_over(web, job):
        await web.queue.remove_limit(crawl_key(payload.crawl_id))
        return Done(None)
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
    if payload.feed is not None or web.indexes(payload.scrape_options):
        await open_session(web.queue, payload.crawl_id)
    delay = scope.options.delay or robots.crawl_delay(scope.options.robots_user_agent)
    at_once = scope.options.max_concurrency or web.host_concurrency
    limit = partial(set_crawl_limit, web.queue, payload.crawl_id, delay, at_once)
    page = PagePayload(
        url=scope.start,
        team_id=payload.team_id,
        crawl_id=payload.crawl_id,
        crawler_options=scope.options,
        scrape_options=payload.scrape_options,
        feed=payload.feed,
        origin_url=scope.start,
        is_limited=bool(delay or at_once),
        delay=delay,
        is_told=tells_pages(payload),
    )
    async with filling_group(web.queue, payload.crawl_id):
        await limit(reserved=int(_reads_lists(scope)))
        try:
            await announce(web, payload, job.tenant)
            await _add_pages(web, job, page, scope, robots)
        except GroupEnded:
            raise
        except Exception:
            await limit()
            if job.attempts + 1 >= job.max_attempts:
                # There is no next time: what was found so far is all there will be.
                await web.queue.close_group(payload.crawl_id)
            raise
        await limit()  # from here on all requests are those of pages
        await web.queue.close_group(payload.crawl_id)
    return Done(None)


async def _is_over(web: Web, job: Job) -> bool:
    """Whether the group that an earlier run of this job made takes no more pages."""
    return job.root_of is not None and _has_ended(await web.queue.group(job.root_of))


def _has_ended(group: Group) -> bool:
    return group.is_cancelled or group.ended_at is not None


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


def _reads_llms_txt(scope: Scope) -> bool:
    return scope.options.llms_txt and scope.options.sitemap != "only"


def _reads_lists(scope: Scope) -> bool:
    return _reads_llms_txt(scope) or scope.options.sitemap != "skip"


async def _add_pages(web: Web, job: Job, page: PagePayload, scope: Scope, robots: Robots) -> None:
    """Enqueue the start and what the site names. Raises GroupEnded if the crawl was cancelled."""
    has_room, named = await _add_start(web, job, page, scope)
    if has_room:
        await _add_named(web, job, page, scope, robots, named)


async def _add_start(web: Web, job: Job, page: PagePayload, scope: Scope) -> tuple[bool, list[str]]:
    """Enqueue the start and read llms.txt: whether the crawl may have more pages, and which the
    site names there."""
    urls, blocked = await web.split_by_robots(scope, [scope.start], job.tenant)
    await note_blocked(web, job, page.crawl_id, blocked)
    await _add(web, job, page, scope, urls, FOUND_PRIORITY)
    if not await _has_room(web, page, scope):
        return False, []
    return True, await _read_llms_txts(web, job, page, scope) if _reads_llms_txt(scope) else []


async def _read_llms_txts(web: Web, job: Job, page: PagePayload, scope: Scope) -> list[str]:
    """The pages that the site's llms.txt files name. The files are requested one after the other,
    with the crawl's delay after each, and only where robots.txt allows it."""
    allowed, _ = await web.split_by_robots(scope, llms_txt_urls(scope.start), job.tenant)
    credentials = await web.credentials_of(job.tenant)
    named: list[str] = []
    for url in allowed:
        if not await _has_room(web, page, scope):
            break
        named += await fetch_llms_txt(web.fetcher, url, credentials)
        await asyncio.sleep(page.delay or 0)
    return named


async def _add_named(
    web: Web, job: Job, page: PagePayload, scope: Scope, robots: Robots, named: list[str]
) -> None:
    """Enqueue what the site names, until the crawl has all the pages it may have."""
    async with aclosing(_listed(web, job, page, scope, robots, named)) as lists:
        async for found in lists:
            chosen = await choose(scope, found, depth=0, found_on=None)
            urls, blocked = await web.split_by_robots(scope, chosen.values(), job.tenant)
            await note_blocked(web, job, page.crawl_id, blocked)
            if not await _add(web, job, page, scope, urls, LISTED_PRIORITY):
                return


async def _listed(
    web: Web, job: Job, page: PagePayload, scope: Scope, robots: Robots, named: list[str]
) -> AsyncGenerator[list[str], None]:
    """The pages of the sitemaps, file by file, with the crawl's delay after each, then those of
    llms.txt. Sitemaps are requested only where robots.txt allows it, or names them or the sitemap
    that leads to them."""
    named_by_robots = set(robots.sitemaps)

    async def may_read(url: str, named_by: str) -> bool:
        if named_by in named_by_robots:
            named_by_robots.add(url)
            return True
        allowed, _ = await web.split_by_robots(scope, [url], job.tenant)
        return bool(allowed)

    if scope.options.sitemap != "skip":
        credentials = await web.credentials_of(job.tenant)
        usual, _ = await web.split_by_robots(scope, sitemap_urls(scope.start), job.tenant)
        sitemaps = dict.fromkeys((*robots.sitemaps, *usual))
        async for found in read_sitemaps(web.fetcher, sitemaps, credentials, may_read=may_read):
            await asyncio.sleep(page.delay or 0)
            yield found
    if named:
        yield named


async def _add(
    web: Web, job: Job, page: PagePayload, scope: Scope, urls: Iterable[str], priority: int
) -> bool:
    """Enqueue pages; whether the crawl may have more. Raises GroupEnded if it was cancelled."""
    listed = list(urls)
    for start in range(0, len(listed), CHUNK):
        jobs = page_jobs(
            job, page, scope, listed[start : start + CHUNK], depth=0, priority=priority
        )
        inserted = await web.queue.enqueue_many(jobs)
        # Left out under no other job's id: not seen before, but one too many.
        known = {one.id for one in inserted if one.outcome == "left_out"}
        if known and not await _has_room(web, page, scope):
            return False
    return True if listed else await _has_room(web, page, scope)


async def _has_room(web: Web, page: PagePayload, scope: Scope) -> bool:
    """Whether the crawl may have more pages. Asked before each request for a list of them. Raises
    GroupEnded if the crawl was cancelled."""
    group = await web.queue.group(page.crawl_id or "")
    if _has_ended(group):
        raise GroupEnded(group.id)
    return group.members < scope.options.limit
