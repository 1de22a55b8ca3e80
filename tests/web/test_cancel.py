"""Crawls and batches that are cancelled while they start: nothing more is fetched."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.web.crawling import LOOPBACK, path_of
from tests.web.site import Page, Site
from windrow import Queue, Worker
from windrow.pipelines.web.handlers import web_handlers
from windrow.pipelines.web.payloads import FINISH
from windrow.queue.job import Job, JobState
from windrow.services import web
from windrow.worker.registry import Handler

PATIENCE = 30.0
SOON = 20.0  # sooner than a fetch that nobody stops ends
PAGES = 40


@asynccontextmanager
async def working(queue: Queue) -> AsyncIterator[None]:
    """A worker beside the test, until the block is left and everything has ended."""
    async with web_handlers(queue, guard=LOOPBACK) as handlers:
        worker = Worker(queue, handlers, concurrency=10)
        running = asyncio.create_task(worker.run())
        try:
            yield
            async with asyncio.timeout(PATIENCE):
                while await queue.list(state=[JobState.ACTIVE, JobState.READY, JobState.HELD]):
                    await asyncio.sleep(0.02)
        finally:
            worker.stop()
            await running


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


async def cancel(queue: Queue, crawl_id: str, site: Site) -> tuple[set[str], set[str]]:
    """The paths that were asked for when the cancel was answered, and those of the pages that had
    begun by then. One may have been stopped before the site, in its thread, counts its request."""
    assert (await web.cancel_crawl(queue, crawl_id)).status == "cancelled"
    pages = await queue.list(group=crawl_id, limit=1000)
    begun = [job for job in pages if job.started_at is not None]
    return set(site.hits), {path_of(job.payload["url"]) for job in begun}


def wide_site(site: Site, seconds: float = 0.0, until: threading.Event | None = None) -> None:
    """A start that leads to all other pages; the last page waits for an event."""
    paths = [f"/p{number}" for number in range(PAGES)]
    site.page("/", links=paths)
    for path in paths:
        site.page(path, seconds=seconds, until=until if path == paths[-1] else None)


async def test_crawl_cancelled_while_robots_txt_is_awaited_fetches_nothing(
    queue: Queue, site: Site
) -> None:
    answers = threading.Event()
    wide_site(site)
    site.robots("", until=answers)
    crawl_id = await web.start_crawl(queue, site.url)
    async with working(queue):
        await until(lambda: site.hits["/robots.txt"])
        before, in_flight = await cancel(queue, crawl_id, site)
        answers.set()

    assert in_flight == set()
    assert set(site.hits) == before == {"/robots.txt"}
    found = await web.get_crawl(queue, crawl_id)
    assert (found.status, found.completed, found.pending) == ("cancelled", 0, 0)


@pytest.mark.parametrize("slow", ["/sitemap.xml", "/llms.txt"])
async def test_crawl_cancelled_while_the_site_is_asked_for_its_pages_stops(
    queue: Queue, site: Site, slow: str
) -> None:
    answers = threading.Event()
    site.page("/")
    listed = "".join(f"<url><loc>{site.url}/p{number}</loc></url>" for number in range(PAGES))
    bodies = {
        "/sitemap.xml": (f"<urlset>{listed}</urlset>", "application/xml"),
        "/llms.txt": ("# Site\n" + f"- [page]({site.url}/p1)\n", "text/plain"),
    }
    for path, (body, content_type) in bodies.items():
        waits = answers if path == slow else None
        site.put(path, Page(body.encode(), content_type=content_type, until=waits))
    crawl_id = await web.start_crawl(queue, site.url)
    async with working(queue):
        await until(lambda: site.hits[slow])
        before, in_flight = await cancel(queue, crawl_id, site)
        answers.set()

    assert set(site.hits) - before <= in_flight
    assert (await web.get_crawl(queue, crawl_id)).status == "cancelled"


async def test_cancelled_crawl_leaves_no_limit(queue: Queue, site: Site) -> None:
    """Its finish job may be over before the root job has set the limit."""
    answers = threading.Event()
    site.page("/")
    site.text("/llms.txt", "# Site\n", until=answers)
    crawl_id = await web.start_crawl(queue, site.url, {"sitemap": "skip"})
    async with working(queue):
        await until(lambda: site.hits["/llms.txt"] and site.hits["/"])
        await web.cancel_crawl(queue, crawl_id)
        async with asyncio.timeout(PATIENCE):
            while not await queue.list(kind=FINISH, state=JobState.COMPLETED):
                await asyncio.sleep(0.02)
        answers.set()

    assert [one.key for one in await queue.limits() if one.active is not None] == []


async def test_cancelled_crawl_reads_no_further_sitemap(queue: Queue, site: Site) -> None:
    answers = threading.Event()
    site.page("/")
    parts = [f"{site.url}/part{number}.xml" for number in range(5)]
    listed = "".join(f"<sitemap><loc>{part}</loc></sitemap>" for part in parts)
    body = f"<sitemapindex>{listed}</sitemapindex>".encode()
    site.put("/sitemap.xml", Page(body, content_type="application/xml", until=answers))
    crawl_id = await web.start_crawl(queue, site.url)
    async with working(queue):
        await until(lambda: site.hits["/sitemap.xml"])
        before, in_flight = await cancel(queue, crawl_id, site)
        answers.set()

    assert set(site.hits) - before <= in_flight


@pytest.mark.parametrize(
    "cancel_it",
    [
        lambda queue, crawl_id: queue.cancel(crawl_id),  # windrow jobs cancel
        lambda queue, crawl_id: queue.cancel_group(crawl_id),  # windrow groups cancel
    ],
    ids=["job", "group"],
)
async def test_crawl_stops_however_a_person_cancels_it(
    queue: Queue, site: Site, cancel_it: Callable[[Queue, str], Awaitable[Any]]
) -> None:
    answers = threading.Event()
    site.page("/")
    listed = "".join(f"<url><loc>{site.url}/p{number}</loc></url>" for number in range(PAGES))
    body = f"<urlset>{listed}</urlset>".encode()
    site.put("/sitemap.xml", Page(body, content_type="application/xml", until=answers))
    crawl_id = await web.start_crawl(queue, site.url, {"llmsTxt": False})
    async with working(queue):
        await until(lambda: site.hits["/sitemap.xml"] and site.hits["/"])
        await cancel_it(queue, crawl_id)
        assert (await web.get_crawl(queue, crawl_id)).status == "cancelled"
        answers.set()

    assert set(site.hits) == {"/robots.txt", "/", "/sitemap.xml"}
    assert (await web.get_crawl(queue, crawl_id)).status == "cancelled"


async def test_root_that_runs_again_after_its_group_was_cancelled_fetches_nothing(
    queue: Queue, site: Site
) -> None:
    """The worker of the first run was killed: nobody told the root that its group is cancelled."""
    wide_site(site)
    crawl_id = await web.start_crawl(queue, site.url)
    lease = await queue.claim(["web"], limit=1, seconds=60, worker="killed")
    [root] = lease.jobs
    await queue.create_group(id=crawl_id, root=root, hold=True, max_jobs=PAGES)
    await queue.set_limit(f"crawl:{crawl_id}", active=8)
    await queue.cancel_group(crawl_id)
    await lease.release(root)
    async with working(queue):
        await queue.wait(crawl_id, timeout=PATIENCE)

    assert set(site.hits) == set()
    assert (await web.get_crawl(queue, crawl_id)).status == "cancelled"
    assert [one.key for one in await queue.limits() if one.active is not None] == []


@pytest.mark.parametrize("milliseconds", [0, 5, 15, 40, 80, 150, 300])
@pytest.mark.parametrize("kind", ["crawl", "batch"])
async def test_cancel_just_after_the_start_lets_only_what_is_in_flight_end(
    queue: Queue, site: Site, kind: str, milliseconds: int
) -> None:
    answers = threading.Event()  # no crawl is complete before it is cancelled
    wide_site(site, seconds=0.05, until=answers)
    async with working(queue):
        if kind == "crawl":
            run_id = await web.start_crawl(queue, site.url)
        else:
            urls = [f"{site.url}/p{number}" for number in range(PAGES)]
            run_id = (await web.start_batch(queue, urls)).id
        await asyncio.sleep(milliseconds / 1000)
        before, in_flight = await cancel(queue, run_id, site)
        answers.set()

    asked = set(site.hits) - before
    pages = asked & site.pages_hit()
    assert pages <= in_flight
    assert len(asked - pages) <= 1, "the request that the root job has in flight"
    found = await web.get_crawl(queue, run_id)
    assert (found.status, found.pending) == ("cancelled", 0)


@pytest.mark.parametrize(
    "start",
    [
        lambda queue, url: web.start_crawl(queue, url),
        lambda queue, url: web.start_batch(queue, [url]),
    ],
    ids=["crawl", "batch"],
)
async def test_fetches_of_a_cancelled_crawl_are_stopped(
    queue: Queue, site: Site, start: Callable[[Queue, str], Awaitable[Any]]
) -> None:
    never = threading.Event()
    site.page("/", until=never)
    started = await start(queue, f"{site.url}/")
    run_id = started if isinstance(started, str) else started.id
    async with working(queue):
        await until(lambda: site.hits["/"])
        await web.cancel_crawl(queue, run_id)
        [page] = await queue.list(group=run_id)
        ended = await queue.wait(page.id, timeout=SOON)

    assert ended.state is JobState.CANCELLED
    never.set()


@pytest.mark.parametrize(
    "start",
    [
        lambda queue, url: web.start_crawl(queue, url, {"sitemap": "skip", "llmsTxt": False}),
        lambda queue, url: web.start_batch(queue, [url]),
    ],
    ids=["crawl", "batch"],
)
async def test_page_of_a_cancelled_crawl_follows_no_redirect(
    queue: Queue, site: Site, start: Callable[[Queue, str], Awaitable[Any]]
) -> None:
    """Its request was in flight; the one that the redirect leads to was not."""
    answers = threading.Event()
    site.put("/", Page(status=302, headers={"Location": "/next"}, until=answers))
    site.page("/next")
    started = await start(queue, f"{site.url}/")
    run_id = started if isinstance(started, str) else started.id
    async with working(queue):
        await until(lambda: site.hits["/"])
        await web.cancel_crawl(queue, run_id)
        answers.set()

    assert site.hits["/next"] == 0
    [page] = await queue.list(group=run_id)
    assert page.state is JobState.CANCELLED


async def test_page_that_was_claimed_before_the_cancel_but_not_requested_is_not_fetched(
    queue: Queue, site: Site
) -> None:
    """A busy worker begins it later."""
    site.page("/")
    batch = await web.start_batch(queue, [f"{site.url}/"])
    async with web_handlers(queue, guard=LOOPBACK) as handlers:
        by_kind = {one.kind: one for one in handlers}
        root = await run_claimed(queue, by_kind)
        assert root.id == batch.id
        page = await run_claimed(queue, by_kind, before=lambda: queue.cancel_group(batch.id))

    assert set(site.hits) == set()
    assert (await queue.get(page.id)).state is JobState.CANCELLED


async def test_crawl_that_was_claimed_before_the_cancel_but_has_not_begun_requests_nothing(
    queue: Queue, site: Site
) -> None:
    crawl_id = await web.start_crawl(queue, site.url)
    async with web_handlers(queue, guard=LOOPBACK) as handlers:
        by_kind = {one.kind: one for one in handlers}
        await run_claimed(queue, by_kind, before=lambda: web.cancel_crawl(queue, crawl_id))

    assert set(site.hits) == set()
    assert (await web.get_crawl(queue, crawl_id)).status == "cancelled"


async def run_claimed(
    queue: Queue,
    handlers: Mapping[str, Handler],
    before: Callable[[], Awaitable[Any]] | None = None,
) -> Job:
    """Claim the next job and run it, after something else has happened."""
    lease = await queue.claim(["web"], limit=1, seconds=60, worker="busy")
    [job] = lease.jobs
    if before is not None:
        await before()
    handler = handlers[job.kind]
    await lease.finish(job, await handler.function(job, handler.payload_of(job)))
    return job
