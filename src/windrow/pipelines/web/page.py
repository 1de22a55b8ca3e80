"""`web.scrape`: a page becomes a document, and the pages it leads to become jobs with it."""

from __future__ import annotations

import msgspec

from windrow.errors import FetchError, ScrapeFailed
from windrow.ingest.web.scope import Scope, Verdict
from windrow.pipelines.web.context import Web, scope_of
from windrow.pipelines.web.frontier import choose, page_jobs
from windrow.pipelines.web.payloads import PagePayload
from windrow.pipelines.web.scraping import Scraped, scrape
from windrow.pipelines.web.skipping import note_blocked
from windrow.queue.job import Job, NewJob
from windrow.queue.outcome import Done

RACED: str = "SCRAPE_RACED_REDIRECT_ERROR"
OUT_OF_SCOPE: str = "SCRAPE_REDIRECT_OUT_OF_SCOPE"
ROBOTS: str = "SCRAPE_BLOCKED_BY_ROBOTS"


async def scrape_page(web: Web, job: Job, payload: PagePayload) -> Done:
    scraped = await scrape(
        web.fetcher,
        payload.url,
        payload.scrape_options,
        job_id=job.id,
        credentials=await web.credentials_of(job.tenant),
    )
    wire = scraped.document.to_wire()
    if payload.crawler_options is None or payload.crawl_id is None:
        return Done(wire)
    payload = await _follow_redirect(web, job, payload, scraped)
    return Done(wire, then=await _find_pages(web, job, payload, scraped))


async def _follow_redirect(
    web: Web, job: Job, payload: PagePayload, scraped: Scraped
) -> PagePayload:
    """A redirect leads to another page: is that one of the crawl, and nobody else's yet? Where the
    first page of a crawl leads is where the crawl really begins."""
    scope = _scope(payload)
    asked, final = payload.url, scope.address(scraped.resource.final_url)
    if final is None or not scraped.resource.redirects or final == asked:
        return payload
    if asked == payload.origin_url and scope.admits(final, 0, asked) is not Verdict.ADMITTED:
        payload = msgspec.structs.replace(payload, origin_url=final)
        scope = _scope(payload)
    elif scope.admits(final, payload.depth, asked) is not Verdict.ADMITTED:
        raise _failed(OUT_OF_SCOPE, asked, f"redirects to {final}, which is not of this crawl")
    _, blocked = await web.split_by_robots(scope, [final])
    if blocked:
        raise _failed(ROBOTS, asked, f"redirects to {final}, which robots.txt forbids")
    key = scope.key(final)
    if key != scope.key(asked) and payload.crawl_id is not None:
        kept = await web.queue.keep_group_keys(payload.crawl_id, [key], job=job)
        if key not in kept:
            raise _failed(RACED, asked, f"redirects to {final}, which is a page of its own here")
    return payload


async def _find_pages(web: Web, job: Job, payload: PagePayload, scraped: Scraped) -> list[NewJob]:
    options = payload.crawler_options
    if options is None or options.sitemap == "only":
        return []
    scope = _scope(payload)
    page = scope.address(scraped.resource.final_url) or payload.url
    depth = payload.depth + 1
    met = web.met(payload.crawl_id or "", scope.key(payload.url))
    chosen = choose(scope, scraped.links, depth=depth, found_on=page, met=met)
    chosen.pop(scope.key(page), None)
    urls, blocked = await web.split_by_robots(scope, chosen.values())
    await note_blocked(web, job, payload.crawl_id, blocked)
    return page_jobs(job, payload, scope, urls, depth=depth)


def _scope(payload: PagePayload) -> Scope:
    assert payload.crawler_options is not None
    return scope_of(payload.origin_url or payload.url, payload.crawler_options)


def _failed(code: str, url: str, why: str) -> ScrapeFailed:
    return ScrapeFailed(FetchError(code, url, why))
