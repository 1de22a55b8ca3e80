"""Crawls and batches: how far they are, what failed, how they are stopped and tried again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from windrow.errors import GroupNotFound, IllegalTransition
from windrow.pipelines.web.answers import list_bad_answers
from windrow.pipelines.web.context import HOST_CONCURRENCY
from windrow.pipelines.web.failures import why_failed
from windrow.pipelines.web.limiting import set_crawl_limit
from windrow.pipelines.web.payloads import BATCH, CRAWL, RACED, SCRAPE
from windrow.pipelines.web.skipping import list_blocked
from windrow.pipelines.webhooks.deliveries import tell_end
from windrow.queue.job import LIVE, Job, JobState
from windrow.queue.queue import Queue
from windrow.queue.records import Group
from windrow.services.web.finding import check_found, find_root
from windrow.services.web.pages import describe_answer

CrawlStatus = Literal["scraping", "completed", "failed", "cancelled"]

PAGE: Final = 100
NOT_BEGUN: Final = sorted(LIVE - {JobState.WAITING})


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
    source: str | None = None  # that its pages become documents of

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


async def get_crawl(queue: Queue, crawl_id: str, *, tenant: str | None = None) -> Crawl:
    """How far a crawl or batch is; with `tenant`, one of that tenant. Raises JobNotFound."""
    root = await find_root(queue, crawl_id, tenant)
    try:
        group = await queue.group(crawl_id)
    except GroupNotFound:
        group = None  # its first job has not run yet
    return _describe(root, group)


async def read_crawl(
    queue: Queue, crawl_id: str, *, tenant: str | None = None, skip: int = 0, limit: int = PAGE
) -> tuple[Crawl, Sequence[Job]]:
    """How far a crawl or batch is, and pages of it that are done, in one look; of one that is over
    all are there. Raises JobNotFound."""
    look = await queue.store.look_at_group(crawl_id, crawl_id, SCRAPE, skip=skip, limit=limit)
    root = check_found(look.root, crawl_id, (CRAWL, BATCH), tenant)
    return _describe(root, look.group), look.ended


async def list_crawls(
    queue: Queue, *, tenant: str | None = None, after: str | None = None, limit: int = PAGE
) -> list[Crawl]:
    """Crawls and batches that have not ended, newest first; those whose first job has not run yet
    come with the first page."""
    groups = await queue.groups(state="active", tenant=tenant, after=after, limit=limit)
    roots = await queue.get_many([group.root for group in groups if group.root is not None])
    begun = [
        _describe(roots[group.root], group)
        for group in groups
        if group.root in roots and roots[group.root].kind in (CRAWL, BATCH)
    ]
    if after is not None:
        return begun
    known = {crawl.id for crawl in begun}
    waiting = [
        _describe(root, None)
        for kind in (CRAWL, BATCH)
        for root in await queue.list(kind=kind, state=NOT_BEGUN, tenant=tenant, limit=limit)
        if root.root_of is None and root.id not in known
    ]
    return [*waiting, *begun][:limit]


async def get_errors(
    queue: Queue, crawl_id: str, *, limit: int = 1000, tenant: str | None = None
) -> CrawlErrors:
    """The pages that could not be had, and those that robots.txt forbids. A page that only turned
    out to be another one of the crawl is no error."""
    await find_root(queue, crawl_id, tenant)
    failed = await queue.list(group=crawl_id, kind=SCRAPE, state=JobState.FAILED, limit=limit)
    errors = [_page_error(job) for job in failed]
    return CrawlErrors(
        [error for error in errors if error.code != RACED],
        await list_blocked(queue, crawl_id, limit=limit),
    )


async def count_raced(queue: Queue, crawl_id: str) -> int:
    """Failed pages that turned out to be other pages of their crawl: no failures to anybody."""
    count, after = 0, None
    while page := await queue.list(
        group=crawl_id, kind=SCRAPE, state=JobState.FAILED, error=RACED, after=after, limit=PAGE
    ):
        count += len(page)
        after = page[-1].id
    return count


async def list_error_answers(queue: Queue, crawl: Crawl) -> list[PageError]:
    """The pages whose servers answered with an error (404, 500). They are completed, and documents
    to programs; a person who waits for pages did not get one."""
    bad = await list_bad_answers(queue, crawl.id, limit=crawl.completed + 1)
    return [
        PageError(id=one.job, url=one.url, code=None, error=describe_answer(one.status), at=None)
        for one in bad
    ]


async def warning_of(queue: Queue, crawl: Crawl) -> str | None:
    """What is to be said of a crawl that has ended."""
    if crawl.kind != CRAWL or crawl.status == "scraping":
        return None
    return robots_warning(crawl, await list_blocked(queue, crawl.id, limit=1))


def robots_warning(crawl: Crawl, blocked: Sequence[str]) -> str | None:
    """That robots.txt kept pages from a crawl that has ended."""
    if not blocked or crawl.status == "scraping":
        return None
    if not crawl.completed:
        return (
            f"Nothing was crawled, because robots.txt forbids {blocked[0]}. A single page can be "
            "scraped all the same."
        )
    return (
        "One or more pages were not crawled, because robots.txt forbids them. The errors of the "
        "crawl list them; a single page can be scraped all the same."
    )


async def cancel_crawl(
    queue: Queue, crawl_id: str, *, reason: str = "cancelled", tenant: str | None = None
) -> Crawl:
    """Stop a crawl or batch: what waits is cancelled, what runs is told. Raises IllegalTransition
    if it has ended already."""
    crawl = await get_crawl(queue, crawl_id, tenant=tenant)
    if crawl.status != "scraping":
        raise IllegalTransition(crawl_id, crawl.status, "cancelled")
    await _tell_cancelled(queue, crawl)
    await queue.cancel(crawl_id, reason=reason)
    return await get_crawl(queue, crawl_id)


async def _tell_cancelled(queue: Queue, crawl: Crawl) -> None:
    """One that has not begun has no group whose end would be told. This waits for the end, so it
    may well be there before: whoever is killed in between has cancelled nothing."""
    root = await queue.get(crawl.id)
    if root.payload.get("webhook") and root.root_of is None:
        await queue.enqueue_many([tell_end(crawl.id, crawl.tenant)])


async def retry_failed(queue: Queue, crawl_id: str) -> int:
    """Run the failed pages of a crawl or batch again, and no others; how many. Those that turned
    out to be other pages stay as they are."""
    root = await find_root(queue, crawl_id)
    count = 0
    after = None
    while jobs := await queue.list(
        group=crawl_id, kind=SCRAPE, state=JobState.FAILED, after=after, limit=PAGE
    ):
        after = jobs[-1].id
        for job in jobs:
            if _page_error(job).code != RACED:
                if not count:
                    await _limit_again(queue, root, job)
                await queue.retry(job.id)
                count += 1
    return count


async def _limit_again(queue: Queue, root: Job, page: Job) -> None:
    """The limit of a crawl goes when it has ended. Its pages know the pause between them, which may
    be what robots.txt asked for."""
    options = root.payload.get("crawlerOptions") or {}
    most = options.get("maxConcurrency") or root.payload.get("maxConcurrency") or HOST_CONCURRENCY
    if page.payload.get("is_limited"):
        await set_crawl_limit(queue, root.id, page.payload.get("delay"), most)


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
        source=source_of(root),
    )


def source_of(root: Job) -> str | None:
    """The source that the pages of a crawl become documents of, if it is for one."""
    feed = root.payload.get("feed") if isinstance(root.payload, dict) else None
    return feed.get("source") if isinstance(feed, dict) else None


def _status(root: Job, group: Group | None) -> CrawlStatus:
    if root.state is JobState.FAILED:
        return "failed"
    if JobState.CANCELLED in (root.state, root.stop_as) or (group and group.is_cancelled):
        return "cancelled"  # also while what is in flight ends
    # A page that is tried again after the end does not begin the crawl anew.
    is_over = root.state is JobState.COMPLETED and (group is None or not group.pending)
    return "completed" if is_over else "scraping"


def _page_error(job: Job) -> PageError:
    code, error = why_failed(job)
    return PageError(
        id=job.id, url=job.payload.get("url", ""), code=code, error=error, at=job.finished_at
    )
