"""`web_handlers`: the handlers of the web, bound to one queue and one fetcher.

async with web_handlers(queue) as handlers:
    await Worker(queue, handlers).run()
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from windrow.accounts import Accounts
from windrow.errors import InvalidOptions
from windrow.ingest.browser.browser import EXECUTABLE, Browser
from windrow.ingest.enrich.llm import Model
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.guard import Guard
from windrow.ingest.web.urls import normalise
from windrow.pipelines.web.batch import start_batch
from windrow.pipelines.web.context import HEARTBEAT_SECONDS, HOST_CONCURRENCY, Web
from windrow.pipelines.web.credentials import Vault
from windrow.pipelines.web.extracting import extract
from windrow.pipelines.web.feeding import end_feed, noting_failure
from windrow.pipelines.web.kickoff import start_crawl
from windrow.pipelines.web.limiting import crawl_key
from windrow.pipelines.web.mapping import map_site
from windrow.pipelines.web.page import scrape_page
from windrow.pipelines.web.payloads import (
    BATCH,
    CRAWL,
    EXTRACT,
    FINISH,
    MAP,
    NO_TEAM,
    PAGE_MODE,
    QUEUE,
    SCRAPE,
    SCRAPE_ROW,
    BatchPayload,
    CrawlPayload,
    ExtractPayload,
    FinishPayload,
    MapPayload,
    PagePayload,
    RowPayload,
)
from windrow.pipelines.web.telling import tell_failed_page, tell_failed_start, tell_rest
from windrow.queue.job import Job
from windrow.queue.outcome import Done, Snooze
from windrow.queue.queue import Queue
from windrow.worker.registry import Handler, handler

PAGE_ATTEMPTS: Final = 3
PAGE_BACKOFF: Final = (2.0, 15.0)
# A worker that dies is seldom the fault of a crawl. When it is given up all the same, its root has
# failed, and what was found is cancelled with it.
KICKOFF_CRASHES: Final = 20


@asynccontextmanager
async def web_handlers(
    queue: Queue,
    *,
    guard: Guard | None = None,
    fetcher: Fetcher | None = None,
    vault: Vault | None = None,
    browser: Browser | None = None,
    chromium: str = EXECUTABLE,
    model: Model | None = None,
    host_concurrency: int = HOST_CONCURRENCY,
    index_pages: bool = False,
    with_nuq_rows: bool = False,
) -> AsyncIterator[list[Handler]]:
    """The handlers of all kinds `web.*`, which share one pool of connections and one browser. What
    is handed in stays open. `host_concurrency` pages of a site are fetched at once where a crawl or
    batch does not say how many; 0: any number. With `index_pages` every page becomes searchable
    unless its options say otherwise; the handlers of the index must run somewhere, too.
    `with_nuq_rows` adds the handler of rows that others insert into `nuq.queue_scrape`."""
    async with AsyncExitStack() as stack:
        if fetcher is None:
            fetcher = await stack.enter_async_context(Fetcher(guard=guard))
        if browser is None:
            browser = Browser(fetcher.guard, executable=chromium)
            stack.push_async_callback(browser.close)
        web = Web(queue, fetcher, vault, browser, model, host_concurrency, index_pages)
        yield [*make_handlers(web), *([make_row_handler(web)] if with_nuq_rows else [])]


def make_handlers(web: Web) -> list[Handler]:
    queue = web.queue

    @handler(
        SCRAPE,
        queue=QUEUE,
        heartbeat=HEARTBEAT_SECONDS,
        max_attempts=PAGE_ATTEMPTS,
        backoff=PAGE_BACKOFF,
        on_failure=tell_failed_page,
    )
    async def scrape(job: Job, payload: PagePayload) -> Done | Snooze:
        # A page of a crawl that fails is one of many: the end of the crawl tells of these.
        feed = payload.feed if payload.crawl_id is None else None
        async with noting_failure(queue.store, job.tenant, feed):
            return await scrape_page(web, job, payload)

    @handler(
        CRAWL,
        queue=QUEUE,
        heartbeat=HEARTBEAT_SECONDS,
        max_attempts=PAGE_ATTEMPTS,
        max_crashes=KICKOFF_CRASHES,
        backoff=PAGE_BACKOFF,
        on_failure=tell_failed_start,
    )
    async def crawl(job: Job, payload: CrawlPayload) -> Done | Snooze:
        async with noting_failure(queue.store, job.tenant, payload.feed):
            return await start_crawl(web, job, payload)

    @handler(
        BATCH,
        queue=QUEUE,
        heartbeat=HEARTBEAT_SECONDS,
        max_crashes=KICKOFF_CRASHES,
        backoff=PAGE_BACKOFF,
        on_failure=tell_failed_start,
    )
    async def batch(job: Job, payload: BatchPayload) -> Done:
        return await start_batch(web, job, payload)

    @handler(
        MAP,
        queue=QUEUE,
        heartbeat=HEARTBEAT_SECONDS,
        max_attempts=PAGE_ATTEMPTS,
        backoff=PAGE_BACKOFF,
    )
    async def map_(job: Job, payload: MapPayload) -> Done:
        return await map_site(web, job, payload)

    @handler(
        EXTRACT,
        queue=QUEUE,
        heartbeat=HEARTBEAT_SECONDS,
        max_attempts=PAGE_ATTEMPTS,
        backoff=PAGE_BACKOFF,
    )
    async def extract_(job: Job, payload: ExtractPayload) -> Done:
        return await extract(web, job, payload)

    @handler(FINISH, queue=QUEUE)
    async def finish(job: Job, payload: FinishPayload) -> None:
        await web.queue.remove_limit(crawl_key(payload.crawl_id))
        if payload.is_paid:
            await Accounts(web.queue.database).usage.settle_runs([payload.crawl_id])
        if payload.feed is not None:
            await end_feed(web.queue, job, payload.crawl_id, payload.feed)
        if payload.has_webhook:
            await tell_rest(web, payload.crawl_id, job.tenant)

    return [scrape, crawl, batch, map_, extract_, finish]


def make_row_handler(web: Web) -> Handler:
    """Rows that others insert into `nuq.queue_scrape`: scrapes, whose documents are their results.

    The queue of NuQ beside the queue `web`: its workers may take the same rows. The links of a page
    are not followed: in NuQ whoever runs a crawl enqueues its pages.
    """

    @handler(
        SCRAPE_ROW,
        queue=SCRAPE_ROW,
        preset="nuq",
        heartbeat=HEARTBEAT_SECONDS,
        max_attempts=1,
    )
    async def scrape_row(job: Job, payload: RowPayload) -> Done | Snooze:
        if payload.mode != PAGE_MODE:
            raise InvalidOptions(
                f"mode {payload.mode!r} is not supported in {SCRAPE_ROW}: insert a row with mode "
                f"{PAGE_MODE!r} for each page, or begin the crawl by `windrow crawl` or /v2/crawl"
            )
        url = normalise(payload.url)
        if url is None:
            raise InvalidOptions(f"{payload.url!r} is not an http or https URL")
        page = PagePayload(
            url=url,
            team_id=payload.team_id or NO_TEAM,
            scrape_options=payload.options,
        )
        return await scrape_page(web, job, page)

    return scrape_row
