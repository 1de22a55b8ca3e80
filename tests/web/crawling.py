"""Short ways to crawl a test site to its end."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.web.site import Site
from windrow import Queue, Worker
from windrow.ingest.fetch.guard import Guard
from windrow.pipelines.web.handlers import web_handlers
from windrow.services import web

LOOPBACK = Guard(allow=["127.0.0.0/8"])


async def work(queue: Queue, *, concurrency: int = 10, **options: Any) -> None:
    """Run what there is to run."""
    async with web_handlers(queue, guard=LOOPBACK) as handlers:
        worker = Worker(queue, handlers, concurrency=concurrency)
        await worker.run(until_idle=True, **options)


async def crawl(
    queue: Queue,
    site: Site,
    path: str = "/",
    scrape_options: dict[str, Any] | None = None,
    concurrency: int = 10,
    **options: Any,
) -> str:
    crawl_id = await web.start_crawl(queue, f"{site.url}{path}", options, scrape_options)
    await work(queue, concurrency=concurrency)
    return crawl_id


async def pages(queue: Queue, crawl_id: str) -> set[str]:
    """The paths, with query, of the pages that a crawl has."""
    return {
        path_of(document.metadata.source_url or "")
        async for job in web.iterate_pages(queue, crawl_id)
        for document in [web.document_of(job)]
    }


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")
