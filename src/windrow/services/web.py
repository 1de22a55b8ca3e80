"""What people ask of the web: a page, many pages, a site, the addresses of a site.

Everything is a job: these functions enqueue it, and tell how far it is. Workers do the rest.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from windrow.errors import (
    DuplicateJob,
    GroupEnded,
    GroupNotFound,
    IllegalTransition,
    InvalidOptions,
    JobNotFound,
    WaitTimeout,
)
from windrow.ingest.document import Document
from windrow.ingest.options import ScrapeOptions
from windrow.ingest.web.scope import CrawlOptions
from windrow.ingest.web.urls import normalise
from windrow.pipelines.web.batch import batch_jobs
from windrow.pipelines.web.context import crawl_key, limit_keys
from windrow.pipelines.web.mapping import MapOptions
from windrow.pipelines.web.page import RACED
from windrow.pipelines.web.payloads import (
    BATCH,
    CRAWL,
    KICKOFF_PRIORITY,
    MAP,
    NO_TEAM,
    QUEUE,
    SCRAPE,
    SINGLE_PRIORITY,
    BatchPayload,
    CrawlPayload,
    MapPayload,
    PagePayload,
    to_json,
)
from windrow.pipelines.web.skipping import list_blocked
from windrow.queue.ids import new_id
from windrow.queue.job import Job, JobState, NewJob
from windrow.queue.queue import Queue
from windrow.queue.records import Group

CrawlStatus = Literal["scraping", "completed", "failed", "cancelled"]

PAGE: Final = 100
# As a job keeps it: the name of the error's class, its code, and the rest.
_CODE: Final = re.compile(r"^(?:\w+: )?([A-Z][A-Z0-9_]{3,}): ")
# A batch is one job, whose payload has an end; longer lists are appended part by part.
MOST_URLS: Final = 20_000
# How long pages that are added to a batch wait for its first job to run.
APPEND_SECONDS: Final = 10.0
APPEND_WAIT: Final = 0.05
# Where idempotency keys become the ids of batches.
_IDEMPOTENCY: Final = uuid.UUID("5f0c6a4e-3a5c-5d0e-9d55-3b0e5e5f7a11")


@dataclass(frozen=True, slots=True)
class Crawl:
    """How far a crawl or a batch is."""

    id: str
    kind: str  # web.crawl or web.batch
    url: str | None
    status: CrawlStatus
    completed: int
    failed: int
    pending: int  # pages that are known and have not ended
    created_at: datetime
    ended_at: datetime | None
    code: str | None  # of the error
    error: str | None  # why it could not begin
    options: Mapping[str, Any]
    tenant: str | None = None
    expires_at: datetime | None = None  # once it has ended

    @property
    def total(self) -> int:
        return self.completed + self.pending


@dataclass(frozen=True, slots=True)
class PageError:
    """A page that could not be had."""

    id: str
    url: str
    code: str | None
    error: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class CrawlErrors:
    errors: Sequence[PageError]
    robots_blocked: Sequence[str]


@dataclass(frozen=True, slots=True)
class StartedBatch:
    id: str
    invalid_urls: Sequence[str]


async def start_scrape(
    queue: Queue, url: str, options: Mapping[str, Any] | None = None, *, tenant: str | None = None
) -> Job:
    """Have one page scraped; the result of the job is the document."""
    address = _address(url)
    payload = PagePayload(
        url=address, scrape_options=ScrapeOptions.parse(options), team_id=tenant or NO_TEAM
    )
    return await queue.enqueue(
        SCRAPE,
        to_json(payload),
        queue=QUEUE,
        priority=SINGLE_PRIORITY,
        tenant=tenant,
        limits=limit_keys(address, tenant=tenant),
    )


async def scrape_one(
    queue: Queue,
    url: str,
    options: Mapping[str, Any] | None = None,
    *,
    tenant: str | None = None,
    timeout: float | None = None,
) -> Job:
    """Have one page scraped, and wait for it. Raises WaitTimeout; the job goes on."""
    job = await start_scrape(queue, url, options, tenant=tenant)
    return await queue.wait(job.id, timeout=timeout)


async def wait_or_cancel(queue: Queue, job_id: str, *, timeout: float) -> Job:
    """A job that has ended. When the time is up it is cancelled, as nobody waits for it any more,
    and WaitTimeout is raised."""
    try:
        return await queue.wait(job_id, timeout=timeout)
    except WaitTimeout:
        try:
            await queue.cancel(job_id, reason="nobody waits for it any more")
        except IllegalTransition:
            return await queue.get(job_id)  # it ended at the last moment
        raise


async def start_crawl(
    queue: Queue,
    url: str,
    options: Mapping[str, Any] | None = None,
    scrape_options: Mapping[str, Any] | None = None,
    *,
    tenant: str | None = None,
) -> str:
    """Have a site crawled; its id. Raises InvalidOptions, and then nothing is begun."""
    crawl_id = new_id()
    payload = CrawlPayload(
        url=_address(url),
        crawl_id=crawl_id,
        team_id=tenant or NO_TEAM,
        crawler_options=CrawlOptions.parse(options),
        scrape_options=ScrapeOptions.parse(scrape_options),
    )
    await queue.enqueue(
        CRAWL,
        to_json(payload),
        queue=QUEUE,
        priority=KICKOFF_PRIORITY,
        tenant=tenant,
        id=crawl_id,
    )
    return crawl_id


async def start_batch(
    queue: Queue,
    urls: Sequence[str],
    scrape_options: Mapping[str, Any] | None = None,
    *,
    max_concurrency: int | None = None,
    ignore_invalid: bool = True,
    append_to: str | None = None,
    tenant: str | None = None,
    idempotency_key: str | None = None,
) -> StartedBatch:
    """Have these pages scraped, or add them to a batch that has not ended (`append_to`). With an
    `idempotency_key` a second batch of the same tenant with that key raises DuplicateJob."""
    valid, invalid = _sorted_out(urls, ignore_invalid)
    if max_concurrency is not None and max_concurrency < 1:
        raise InvalidOptions(f"maxConcurrency must be at least 1, not {max_concurrency}")
    batch_id = append_to or _batch_id(idempotency_key, tenant)
    payload = BatchPayload(
        urls=tuple(valid),
        crawl_id=batch_id,
        team_id=tenant or NO_TEAM,
        scrape_options=ScrapeOptions.parse(scrape_options),
        max_concurrency=max_concurrency,
    )
    if append_to is not None:
        await _append(queue, append_to, batch_jobs(payload, tenant), tenant)
    else:
        new = NewJob(
            BATCH,
            to_json(payload),
            queue=QUEUE,
            priority=KICKOFF_PRIORITY,
            tenant=tenant,
            id=batch_id,
        )
        [inserted] = await queue.enqueue_many([new])
        if idempotency_key is not None and inserted.outcome == "existing":
            raise DuplicateJob(idempotency_key, batch_id)
    return StartedBatch(batch_id, invalid)


async def start_map(
    queue: Queue, url: str, options: Mapping[str, Any] | None = None, *, tenant: str | None = None
) -> Job:
    """Have the addresses of a site listed; the result of the job is `{"links": […]}`."""
    payload = MapPayload(
        url=_address(url),
        team_id=tenant or NO_TEAM,
        options=MapOptions.parse(options).to_wire(),
    )
    return await queue.enqueue(
        MAP, to_json(payload), queue=QUEUE, priority=SINGLE_PRIORITY, tenant=tenant
    )


async def map_site(
    queue: Queue,
    url: str,
    options: Mapping[str, Any] | None = None,
    *,
    tenant: str | None = None,
    timeout: float | None = None,
) -> Job:
    """The same, and wait for it. Raises WaitTimeout; the job goes on."""
    job = await start_map(queue, url, options, tenant=tenant)
    return await queue.wait(job.id, timeout=timeout)


async def get_scrape(queue: Queue, scrape_id: str, *, tenant: str | None = None) -> Job:
    """A page that was asked for, alone or as one of many. Raises JobNotFound."""
    return await _find(queue, scrape_id, (SCRAPE,), tenant)


async def get_crawl(queue: Queue, crawl_id: str, *, tenant: str | None = None) -> Crawl:
    """How far a crawl or batch is; with `tenant`, one of that tenant. Raises JobNotFound."""
    root = await _root(queue, crawl_id, tenant)
    try:
        group = await queue.group(crawl_id)
    except GroupNotFound:
        group = None  # its first job has not run yet
    return _describe(root, group)


async def list_crawls(
    queue: Queue, *, tenant: str | None = None, after: str | None = None, limit: int = PAGE
) -> list[Crawl]:
    """Crawls and batches that have not ended, newest first."""
    groups = await queue.groups(state="active", tenant=tenant, after=after, limit=limit)
    roots = await queue.get_many([group.root for group in groups if group.root is not None])
    return [
        _describe(roots[group.root], group)
        for group in groups
        if group.root in roots and roots[group.root].kind in (CRAWL, BATCH)
    ]


async def list_pages(
    queue: Queue, crawl_id: str, *, after: str | None = None, limit: int = PAGE
) -> list[Job]:
    """Pages that are done, with their documents (`result`), the ones found last first. `after` is
    the id of the last page of those before."""
    found = await queue.list(
        group=crawl_id, kind=SCRAPE, state=JobState.COMPLETED, after=after, limit=limit
    )
    jobs = await queue.get_many([job.id for job in found])
    return [jobs[job.id] for job in found if job.id in jobs]


async def iterate_pages(queue: Queue, crawl_id: str) -> AsyncIterator[Job]:
    """All pages that are done, read part by part."""
    after = None
    while pages := await list_pages(queue, crawl_id, after=after):
        for page in pages:
            yield page
        after = pages[-1].id


def document_of(job: Job) -> Document:
    """The document of a page that is done."""
    return Document.from_wire(job.result)


async def get_errors(
    queue: Queue, crawl_id: str, *, limit: int = 1000, tenant: str | None = None
) -> CrawlErrors:
    """The pages that could not be had, and those that robots.txt forbids. A page that only turned
    out to be another one of the crawl is no error."""
    await _root(queue, crawl_id, tenant)
    failed = await queue.list(group=crawl_id, kind=SCRAPE, state=JobState.FAILED, limit=limit)
    errors = [_page_error(job) for job in failed]
    return CrawlErrors(
        [error for error in errors if error.code != RACED],
        await list_blocked(queue, crawl_id, limit=limit),
    )


async def cancel_crawl(
    queue: Queue, crawl_id: str, *, reason: str = "cancelled", tenant: str | None = None
) -> Crawl:
    """Stop a crawl or batch: what waits is cancelled, what runs is told. Raises IllegalTransition
    if it has ended already."""
    crawl = await get_crawl(queue, crawl_id, tenant=tenant)
    if crawl.status != "scraping":
        raise IllegalTransition(crawl_id, crawl.status, "cancelled")
    await queue.cancel(crawl_id, reason=reason)
    return await get_crawl(queue, crawl_id)


async def retry_failed(queue: Queue, crawl_id: str) -> int:
    """Run the failed pages of a crawl or batch again, and no others; how many. Those that turned
    out to be other pages stay as they are."""
    root = await _root(queue, crawl_id)
    await _limit_again(queue, root)
    count = 0
    after = None
    while jobs := await queue.list(
        group=crawl_id, kind=SCRAPE, state=JobState.FAILED, after=after, limit=PAGE
    ):
        after = jobs[-1].id
        for job in jobs:
            if _page_error(job).code != RACED:
                await queue.retry(job.id)
                count += 1
    return count


async def _limit_again(queue: Queue, root: Job) -> None:
    """The limit of a crawl goes when it has ended."""
    options = root.payload.get("crawlerOptions") or {}
    most = options.get("maxConcurrency") or root.payload.get("maxConcurrency")
    if delay := options.get("delay"):
        await queue.set_limit(crawl_key(root.id), active=1, per_second=1 / delay, burst=1)
    elif most:
        await queue.set_limit(crawl_key(root.id), active=most)


async def _append(queue: Queue, batch_id: str, jobs: Sequence[NewJob], tenant: str | None) -> None:
    """Add pages to a batch. Its group is made when its first job runs, which is waited for."""
    give_up_at = time.monotonic() + APPEND_SECONDS
    while True:
        root = await _find(queue, batch_id, (BATCH,), tenant)
        try:
            await queue.enqueue_many(jobs)
        except GroupNotFound:
            if root.is_finished:
                raise GroupEnded(batch_id) from None
            if time.monotonic() > give_up_at:
                raise WaitTimeout(batch_id) from None
            await asyncio.sleep(APPEND_WAIT)
        else:
            return


async def _root(queue: Queue, crawl_id: str, tenant: str | None = None) -> Job:
    return await _find(queue, crawl_id, (CRAWL, BATCH), tenant)


async def _find(queue: Queue, job_id: str, kinds: Sequence[str], tenant: str | None) -> Job:
    """A job of these kinds. What another tenant has is not there."""
    job = await queue.get(job_id)
    if job.kind not in kinds or (tenant is not None and job.tenant != tenant):
        raise JobNotFound(job_id)
    return job


def _batch_id(idempotency_key: str | None, tenant: str | None) -> str:
    """The same for the same key, so that the second is refused by the database."""
    if idempotency_key is None:
        return new_id()
    return str(uuid.uuid5(_IDEMPOTENCY, f"{tenant or ''}\n{idempotency_key}"))


def _describe(root: Job, group: Group | None) -> Crawl:
    counts = {} if group is None else group.counts
    code, error = why_failed(root) if root.state is JobState.FAILED else (None, None)
    return Crawl(
        id=root.id,
        kind=root.kind,
        url=root.payload.get("url"),
        status=_status(root, group),
        completed=counts.get(JobState.COMPLETED, 0),
        failed=counts.get(JobState.FAILED, 0),
        pending=0 if group is None else group.pending,
        created_at=root.created_at,
        ended_at=root.finished_at if group is None else group.ended_at,
        code=code,
        error=error,
        options=root.payload.get("crawlerOptions") or {},
        tenant=root.tenant,
        expires_at=root.expires_at,
    )


def _status(root: Job, group: Group | None) -> CrawlStatus:
    if root.state is JobState.FAILED:
        return "failed"
    if root.state is JobState.CANCELLED or (group is not None and group.state == "cancelled"):
        return "cancelled"
    # A page that is tried again after the end does not begin the crawl anew.
    is_over = root.state is JobState.COMPLETED and (group is None or not group.pending)
    return "completed" if is_over else "scraping"


def _page_error(job: Job) -> PageError:
    code, error = why_failed(job)
    return PageError(
        id=job.id, url=job.payload.get("url", ""), code=code, error=error, at=job.finished_at
    )


def why_failed(job: Job) -> tuple[str | None, str]:
    """The code and the words of why a job failed."""
    message = job.error or ""
    found = _CODE.match(message)
    return (found[1], message[found.end() :]) if found else (None, message)


def _address(url: str) -> str:
    address = normalise(url if "://" in url else f"https://{url}")
    if address is None:
        raise InvalidOptions(f"{url!r} is no address of the web")
    return address


def _sorted_out(urls: Sequence[str], ignore_invalid: bool) -> tuple[list[str], list[str]]:
    valid: dict[str, None] = {}
    invalid = []
    for url in urls:
        address = normalise(url)
        if address is None:
            invalid.append(url)
        else:
            valid[address] = None
    if invalid and not ignore_invalid:
        raise InvalidOptions(f"no addresses of the web: {', '.join(map(repr, invalid[:5]))}")
    if not valid:
        raise InvalidOptions("No valid URLs provided")
    if len(valid) > MOST_URLS:
        raise InvalidOptions(f"{len(valid)} URLs at once; {MOST_URLS} are the most")
    return list(valid), invalid
