"""From the links of a page to the jobs of the pages they lead to."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable

import msgspec

from windrow.ingest.web.scope import Scope, Verdict
from windrow.patterns import Budget
from windrow.pipelines.web.limiting import limit_keys
from windrow.pipelines.web.payloads import (
    FOUND_PRIORITY,
    QUEUE,
    SCRAPE,
    PagePayload,
    to_json,
)
from windrow.queue.job import Job, NewJob


async def choose(
    scope: Scope,
    links: Iterable[str],
    *,
    depth: int,
    found_on: str | None,
    met: Container[int] = (),
) -> dict[str, str]:
    """The URLs that belong to the crawl, by their keys, each once. Keys whose hashes are in `met`
    are left out."""
    if scope.has_patterns:  # a thread: the event loop must not wait for somebody's patterns
        return await asyncio.to_thread(_choose, scope, links, depth, found_on, met)
    return _choose(scope, links, depth, found_on, met)


async def admits(scope: Scope, url: str, depth: int, found_on: str | None = None) -> bool:
    """Whether one URL belongs to the crawl."""
    if scope.has_patterns:
        return await asyncio.to_thread(scope.admits, url, depth, found_on) is Verdict.ADMITTED
    return scope.admits(url, depth, found_on) is Verdict.ADMITTED


def _choose(
    scope: Scope, links: Iterable[str], depth: int, found_on: str | None, met: Container[int]
) -> dict[str, str]:
    budget = Budget("includePaths and excludePaths")
    known: set[str] = set()
    chosen: dict[str, str] = {}
    for link in links:
        url = scope.address(link)
        if url is None:
            continue
        key = scope.key(url)
        if key in known or hash(key) in met:
            continue
        known.add(key)
        if scope.admits(url, depth, found_on) is Verdict.ADMITTED:
            chosen[key] = url
        budget.check()
    return chosen


def page_jobs(
    job: Job,
    like: PagePayload,
    scope: Scope,
    urls: Iterable[str],
    *,
    depth: int,
    priority: int = FOUND_PRIORITY,
) -> list[NewJob]:
    """A job for each of these pages, which are found by `job`, of the crawl that `like` is of."""
    shared = to_json(msgspec.structs.replace(like, depth=depth))
    return [
        NewJob(
            SCRAPE,
            {**shared, "url": url},
            queue=QUEUE,
            priority=priority,
            tenant=job.tenant,
            group=like.crawl_id,
            group_key=scope.key(url),
            limits=limit_keys(
                url, crawl_id=like.crawl_id, is_limited=like.is_limited, tenant=job.tenant
            ),
        )
        for url in urls
    ]
