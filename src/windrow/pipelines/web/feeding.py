"""Pages become documents of a source, when their crawl was begun for one.

The rows are written before the page's job is completed, as running again writes the same; what the
index is to do is enqueued by the completion.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from windrow.catalog import Catalog
from windrow.catalog.documents import Place
from windrow.catalog.sources import SourceNote
from windrow.catalog.writer import SourceText
from windrow.errors import GroupNotFound, IngestError
from windrow.ids import is_id
from windrow.pipelines.index.sessions import Indexed, is_opened, note, note_indexed
from windrow.pipelines.index.tidying import tidy_job
from windrow.pipelines.knowledge.feeding import write_jobs
from windrow.pipelines.knowledge.handing import pages_source
from windrow.pipelines.web.context import Web
from windrow.pipelines.web.failures import split_code, why_failed
from windrow.pipelines.web.payloads import RACED, SCRAPE, CrawlPayload, FeedPayload, PagePayload
from windrow.pipelines.web.scraping import Scraped
from windrow.pipelines.web.skipping import list_blocked
from windrow.queue.job import Job, JobState, NewJob
from windrow.queue.queue import Queue
from windrow.queue.records import Group
from windrow.queue.store import Store

logger = logging.getLogger(__name__)

GONE: Final = frozenset({404, 410})
NOTHING: Final = "No page could be had"
LOOKED_AT: Final = 20  # pages that failed
PAGE: Final = 1000


async def index_page(web: Web, job: Job, payload: PagePayload, scraped: Scraped) -> list[NewJob]:
    """Feed a page that was asked for by itself, or whose crawl is for no source, to the source of
    its site, which is made with its first page. The jobs that make it searchable."""
    source = pages_source(job.tenant, _uri(payload, scraped))
    catalog = Catalog(web.queue.database)
    if _why_empty(scraped) is None and not await catalog.sources.get(job.tenant or "", [source.id]):
        await catalog.sources.put([source, SourceNote(job.tenant, source.id)])
    if payload.crawl_id and web.not_noted(payload.crawl_id, job.id, [source.id]):
        await note(web.queue, payload.crawl_id, "source", [source.id])
    feed = FeedPayload(collection=source.collection, source=source.id)
    return await feed_page(web.queue, job, payload, feed, scraped)


async def feed_page(
    queue: Queue, job: Job, payload: PagePayload, feed: FeedPayload, scraped: Scraped
) -> list[NewJob]:
    """Keep a page as a document; the jobs that make it searchable. Of a source that was removed
    while the page was fetched nothing is kept: nobody could remove it any more."""
    catalog = Catalog(queue.database)
    if not await catalog.sources.get(job.tenant or "", [feed.source]):
        return []
    why = _why_empty(scraped)
    if payload.crawl_id is None and payload.feed is not None:  # a source of its own
        await catalog.sources.put([SourceNote(job.tenant, feed.source, error=why)])
    document = scraped.document
    uri = _uri(payload, scraped)
    found = await catalog.documents.find(job.tenant, feed.collection, feed.source, [uri])
    before = found[0] if found else None
    if why is not None:
        await _note_failed(queue, payload, uri, why)
    if document.metadata.status_code in GONE:
        if before is not None:
            await catalog.documents.delete([before.id])
            return [tidy_job()]
        return []
    if why is not None:
        return []  # what was there before is better than this
    [put] = await catalog.writer.put([_text(job, payload, feed, scraped, uri)], known=found)
    if put.awaited is None and put.before is not None and put.before.is_searchable:
        await note_indexed(queue, [Indexed(payload.crawl_id or "", uri)])
    return write_jobs([put.awaited], tenant=job.tenant, priority=job.priority)


async def end_feed(queue: Queue, job: Job, crawl_id: str, feed: FeedPayload) -> None:
    """A crawl has ended: note of its source what came of it, and forget pages that it has not met,
    if it would have. One that was cancelled says nothing."""
    store = queue.store
    try:
        group = await queue.group(crawl_id)
    except GroupNotFound:
        return
    root = (await queue.get_many([crawl_id])).get(crawl_id)
    if root is None or root.state is JobState.CANCELLED:
        return
    error = await _why_failed(queue, root, group)
    catalog = Catalog(store.database)
    await catalog.sources.put([SourceNote(job.tenant, feed.source, error=error)])
    if not _has_seen_all(root, group):
        return
    unmet = await _unmet(store, job.tenant, crawl_id, feed)
    beside = await _beside(queue, crawl_id, {crawl for crawl in unmet.values() if crawl})
    gone = {id: crawl for id, crawl in unmet.items() if crawl not in beside}
    # Each only if no crawl that began meanwhile has come by.
    if gone and await catalog.documents.delete_pages(gone):
        await queue.enqueue_many([tidy_job()])


async def _unmet(
    store: Store, tenant: str | None, crawl_id: str, feed: FeedPayload
) -> dict[str, str | None]:
    """The documents that another crawl put there, or none, by their ids."""
    found: dict[str, str | None] = {}
    after: Place | None = None
    while page := await Catalog(store.database).documents.page(
        tenant, feed.collection, feed.source, after=after, limit=PAGE
    ):
        found |= {one.id: one.metadata.get("crawl") for one in page}
        after = Place(page[-1].source, page[-1].uri, page[-1].branch)
    return {id: crawl for id, crawl in found.items() if crawl != crawl_id}


async def _beside(queue: Queue, crawl_id: str, others: set[str]) -> set[str]:
    """Those of other crawls that had not ended when this one was begun: a page may have been met by
    both, and have the name of the one that wrote it last. A crawl that is not there is long over.
    """
    # Another crawler, which handed pages in, may call its crawls whatever it likes.
    jobs = await queue.get_many([crawl_id, *filter(is_id, others)])
    own = jobs.pop(crawl_id, None)
    if own is None:
        return set()
    return {
        one.id
        for one in jobs.values()
        if one.finished_at is None or one.finished_at >= own.created_at
    }


@asynccontextmanager
async def noting_failure(
    store: Store, tenant: str | None, feed: FeedPayload | None
) -> AsyncIterator[None]:
    """What keeps a source from being fetched is noted of it, also if it is tried again: the end of
    a look that goes well takes it back."""
    try:
        yield
    except IngestError as error:
        if feed is not None:
            note = SourceNote(tenant, feed.source, error=split_code(str(error))[1])
            await Catalog(store.database).sources.put([note])
        raise


async def why_nothing(queue: Queue, crawl_id: str) -> str:
    """Of a crawl that has ended without a single page, as long as its group is there."""
    for page in await queue.list(
        group=crawl_id, kind=SCRAPE, state=JobState.FAILED, limit=LOOKED_AT
    ):
        code, why = why_failed(page)
        if code != RACED:
            return f"{NOTHING}; {page.payload.get('url')}: {why}"
    if await list_blocked(queue, crawl_id, limit=1):
        return f"{NOTHING}: robots.txt forbids it"
    return NOTHING


async def _why_failed(queue: Queue, root: Job, group: Group) -> str | None:
    if root.state is JobState.FAILED:
        return why_failed(root)[1]
    if group.counts.get(JobState.COMPLETED, 0):
        return None
    return await why_nothing(queue, root.id)


def _uri(payload: PagePayload, scraped: Scraped) -> str:
    return scraped.document.metadata.url or payload.url


def _why_empty(scraped: Scraped) -> str | None:
    """Why there is nothing to be kept of a page."""
    status = scraped.document.metadata.status_code
    if status >= 400:
        return f"it was answered with status {status}"
    return None if (scraped.text or "").strip() else "there is no text in it"


def _has_seen_all(root: Job, group: Group) -> bool:
    """Not a crawl that was cancelled, stopped at its limit, or met pages that did not answer."""
    failed = group.counts.get(JobState.FAILED, 0)
    completed = group.counts.get(JobState.COMPLETED, 0)
    if group.state != "completed" or failed or not completed:
        return False
    options = root.payload.get("crawlerOptions")
    if options is None:
        return False  # a batch names its pages
    limit = CrawlPayload(url="", crawl_id="").crawler_options.limit
    return bool(group.members < options.get("limit", limit))


async def _note_failed(queue: Queue, payload: PagePayload, uri: str, why: str) -> None:
    level = logging.INFO if payload.feed is None else logging.WARNING
    logger.log(level, "%s is not indexed: %s", uri, why)
    if payload.crawl_id is not None and await is_opened(queue, payload.crawl_id):
        await note(queue, payload.crawl_id, "failed", [uri])


def _text(
    job: Job, payload: PagePayload, feed: FeedPayload, scraped: Scraped, uri: str
) -> SourceText:
    metadata = scraped.document.metadata
    return SourceText(
        tenant=job.tenant,
        collection=feed.collection,
        source=feed.source,
        uri=uri,
        text=scraped.text or "",
        title=scraped.document.title or uri,
        language=metadata.language or "",
        tags=feed.tags,
        metadata={"crawl": payload.crawl_id or job.id, "description": metadata.description},
        dated_at=_dated(metadata.modified_time or metadata.published_time),
    )


def _dated(said: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(said or "")
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.astimezone()
