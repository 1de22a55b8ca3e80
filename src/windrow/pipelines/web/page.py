"""`web.scrape`: a page becomes a document, and the pages it leads to become jobs with it."""

from __future__ import annotations

from functools import partial

import msgspec

from windrow.errors import FetchError, InvalidOptions, ScrapeFailed
from windrow.ingest.enrich.model_formats import enrich
from windrow.ingest.options import ScrapeOptions
from windrow.ingest.web.scope import Scope
from windrow.pipelines.web import keeping
from windrow.pipelines.web.answers import note_answer
from windrow.pipelines.web.context import StopAsked, Web, scope_of
from windrow.pipelines.web.feeding import feed_page, index_page
from windrow.pipelines.web.frontier import admits, choose, page_jobs
from windrow.pipelines.web.keeping import Kept, is_asked_for
from windrow.pipelines.web.paying import pay
from windrow.pipelines.web.payloads import RACED, PagePayload
from windrow.pipelines.web.scraping import (
    Scraped,
    fetch_page,
    make_document,
    scrape,
    scrape_failures,
)
from windrow.pipelines.web.skipping import note_blocked
from windrow.pipelines.web.telling import tell_of
from windrow.queue.job import Job, NewJob
from windrow.queue.outcome import Done, Snooze

OUT_OF_SCOPE: str = "SCRAPE_REDIRECT_OUT_OF_SCOPE"
ROBOTS: str = "SCRAPE_BLOCKED_BY_ROBOTS"


async def scrape_page(web: Web, job: Job, payload: PagePayload) -> Done | Snooze:
    try:
        scraped = await _scrape(web, job, payload)
    except StopAsked:
        return Snooze(0)  # a job that was asked to stop is not run again
    wire = scraped.document.to_wire()
    then: list[NewJob] = []
    if payload.crawler_options is not None and payload.crawl_id is not None:
        payload = await _follow_redirect(web, job, payload, scraped)
        then = await _find_pages(web, job, payload, scraped)
    if payload.feed is not None:
        then += await feed_page(web.queue, job, payload, payload.feed, scraped)
    elif web.indexes(payload.scrape_options):
        then += await index_page(web, job, payload, scraped)
    await pay(web, job, payload.budget)
    await note_answer(job, payload, scraped)
    return Done(wire, then=[*then, *tell_of(job, payload)])


async def _scrape(web: Web, job: Job, payload: PagePayload) -> Scraped:
    """The page, as it was kept if that will do, else as it is now."""
    url, options, store = payload.url, payload.scrape_options, web.queue.store
    kept = await keeping.recall(store, url, options, job) if is_asked_for(options) else None
    if (chosen := keeping.choose(kept, url, options)) is not None:
        return chosen
    scraped = await _fetch(web, job, url, options, kept)
    if kept is not None and scraped is kept.scraped:
        return scraped
    if is_asked_for(options):
        scraped.document.metadata.cache_state = "miss"
    with scrape_failures():
        await enrich(scraped.document, options, web.model)
        if (wanted := options.format("changeTracking")) is not None:
            crawl_id = payload.crawl_id if payload.crawler_options is not None else None
            document = scraped.document
            await keeping.track_changes(web.queue, url, wanted, job, document, web.model, crawl_id)
    # The pages of a crawl are kept with it, so a second time only for those who ask for that.
    if payload.crawl_id is None or is_asked_for(options):
        await keeping.keep(store, url, options, job, scraped)
    return scraped


async def _fetch(
    web: Web, job: Job, url: str, options: ScrapeOptions, kept: Kept | None
) -> Scraped:
    """The page as it is now; of one that was kept it is asked first whether it is still the same.
    Where another address answers than did then, that says nothing. Raises StopAsked."""
    if job.group is not None:  # else only its answer is waited for, and nobody cancels it so soon
        await web.check_wanted(job)
    before_redirect = partial(web.check_wanted, job)
    credentials = await web.credentials_of(job.tenant)
    if kept is not None and (kept.etag or kept.last_modified):
        resource = await fetch_page(
            web.fetcher,
            url,
            options,
            credentials=credentials,
            etag=kept.etag,
            last_modified=kept.last_modified,
            before_redirect=before_redirect,
        )
        if not resource.is_unchanged:
            return await make_document(resource, options, job_id=job.id)
        if resource.final_url == kept.scraped.resource.final_url:
            return await keeping.still_good(web.queue.store, kept, resource)
    return await scrape(
        web,
        url,
        options,
        job_id=job.id,
        credentials=credentials,
        before_redirect=before_redirect,
    )


async def _follow_redirect(
    web: Web, job: Job, payload: PagePayload, scraped: Scraped
) -> PagePayload:
    """A redirect leads to another page: is that one of the crawl, and nobody else's yet? Where the
    first page of a crawl leads is where the crawl really begins."""
    scope = _scope(payload)
    asked, final = payload.url, scope.address(scraped.resource.final_url)
    if final is None or not scraped.resource.redirects or final == asked:
        return payload
    if asked == payload.origin_url and not await admits(scope, final, 0, asked):
        payload = msgspec.structs.replace(payload, origin_url=final)
        scope = _scope(payload)
    elif not await admits(scope, final, payload.depth, asked):
        raise _failed(OUT_OF_SCOPE, asked, f"redirects to {final}, which is not of this crawl")
    _, blocked = await web.split_by_robots(scope, [final], job.tenant)
    await note_blocked(web, job, payload.crawl_id, blocked)
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
    chosen = await choose(scope, scraped.links, depth=depth, found_on=page, met=met)
    chosen.pop(scope.key(page), None)
    urls, blocked = await web.split_by_robots(scope, chosen.values(), job.tenant)
    await note_blocked(web, job, payload.crawl_id, blocked)
    return page_jobs(job, payload, scope, urls, depth=depth)


def _scope(payload: PagePayload) -> Scope:
    if payload.crawler_options is None:
        raise InvalidOptions("a page that is part of a crawl needs the crawl's options")
    return scope_of(payload.origin_url or payload.url, payload.crawler_options)


def _failed(code: str, url: str, why: str) -> ScrapeFailed:
    return ScrapeFailed(FetchError(code, url, why))
