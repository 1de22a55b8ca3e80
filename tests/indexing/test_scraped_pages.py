"""Pages that are scraped, crawled or batched become searchable with the transaction that completes
them, on each store."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.indexing.helpers import Library
from tests.processes import ROOT, Command
from tests.web.conftest import own_kinds, site, site_server  # noqa: F401
from tests.web.crawling import LOOPBACK
from tests.web.site import Site
from windrow import Queue, Worker
from windrow.catalog import Catalog
from windrow.clock import FakeClock
from windrow.pipelines.web.handlers import web_handlers
from windrow.pipelines.web.payloads import SCRAPE
from windrow.queue.job import LIVE, JobState
from windrow.queue.opening import open_store
from windrow.search.request import SearchRequest
from windrow.services import web
from windrow.services.knowledge import COLLECTION, list_sources
from windrow.services.searching import search
from windrow.services.sessions import get_session, list_sessions
from windrow.settings import Settings

PAGES = 200
PATIENCE = 240.0


class Desk:
    """A site, and a library that its pages come into."""

    def __init__(self, library: Library, site: Site, handlers: Any) -> None:  # noqa: F811
        self.library, self.site, self.queue = library, site, library.queue
        self.handlers = handlers

    async def fetch(self) -> None:
        await Worker(self.queue, self.handlers).run(until_idle=True)

    async def work(self) -> None:
        await self.fetch()
        await self.library.work()

    async def scrape(self, path: str, tenant: str | None = None, **options: Any) -> Any:
        job = await web.start_scrape(self.queue, self.site.url + path, options, tenant=tenant)
        await self.work()
        return await self.queue.get(job.id)

    async def found(self, query: str, **fields: Any) -> set[str]:
        return {
            uri.removeprefix(self.site.url) for uri in await self.library.found(query, **fields)
        }


@pytest.fixture
async def desk(library: Library, site: Site) -> AsyncIterator[Desk]:  # noqa: F811
    site.page("/", title="Start", text="meadow", links=["/hay", "/gone", "/broken"])
    site.page("/hay", title="Hay", text="A row of cut hay.")
    site.page("/gone", status=404)
    site.page("/broken", title="Broken", text="hay", status=500)
    async with web_handlers(library.queue, guard=LOOPBACK, index_pages=True) as handlers:
        yield Desk(library, site, handlers)


async def test_n13_pages_of_a_crawl_are_found_and_its_session_counts_them(desk: Desk) -> None:
    crawl_id = await web.start_crawl(desk.queue, f"{desk.site.url}/")
    await desk.fetch()
    assert (await get_session(desk.queue, crawl_id)).status == "indexing"
    await desk.library.work()

    assert await desk.found("cut hay", limit=1) == {"/hay"}
    assert await desk.found("meadow hay") == {"/", "/hay"}, "answers with an error are no pages"
    session = await get_session(desk.queue, crawl_id)
    assert [one.id for one in await list_sessions(desk.queue)] == [session.id] == [crawl_id]
    assert (session.status, session.indexed, session.failed) == ("completed", 2, 2)
    assert session.seconds["embed"] > 0
    [source] = await list_sources(desk.queue)
    assert (source.source.uri, source.documents, source.pending) == (desk.site.url, 2, 0)
    assert list(session.sources) == [source.source.id]


async def test_pages_of_a_batch_are_found_and_it_has_a_session(desk: Desk) -> None:
    started = await web.start_batch(
        desk.queue, [f"{desk.site.url}{path}" for path in ("/", "/hay")]
    )
    await desk.work()

    assert await desk.found("meadow hay") == {"/", "/hay"}
    session = await get_session(desk.queue, started.id)
    assert (session.status, session.pages, session.indexed) == ("completed", 2, 2)


async def test_same_page_again_replaces_its_document(desk: Desk) -> None:
    await desk.scrape("/hay")
    assert await desk.found("hay") == {"/hay"}
    await desk.scrape("/hay")
    desk.site.page("/hay", title="Straw", text="What is left of barley.")
    await desk.scrape("/hay")

    assert await desk.found("cut hay", mode="keyword") == set()
    assert await desk.found("barley") == {"/hay"}
    [source] = await list_sources(desk.queue)
    assert source.documents == 1
    desk.site.page("/hay", status=410)
    await desk.scrape("/hay")
    assert await desk.found("barley") == set()


async def test_page_of_a_source_and_of_a_crawl_is_one_result(desk: Desk) -> None:
    await desk.library.put(
        f"{desk.site.url}/hay", "# Hay\n\nA row of cut hay.", source="s2", collection="default"
    )
    await desk.scrape("/hay")

    answer = await desk.library.search("cut hay")
    assert [one.uri for one in answer.results] == [f"{desk.site.url}/hay"]


@pytest.mark.parametrize("options", [{"index": False}, {"zeroDataRetention": True}])
async def test_page_is_not_indexed_when_that_is_asked_for(desk: Desk, options: Any) -> None:
    await desk.scrape("/hay", **options)
    crawl_id = await web.start_crawl(desk.queue, f"{desk.site.url}/", scrape_options=options)
    await desk.work()

    assert (await desk.queue.get(crawl_id)).state is JobState.COMPLETED
    assert await list_sources(desk.queue) == []
    assert await desk.queue.list(queue="index") == []
    assert await list_sessions(desk.queue) == []


async def test_page_is_found_whatever_format_was_asked_for(desk: Desk) -> None:
    job = await desk.scrape("/hay", formats=["html", "links"], maxAge=60_000)
    assert "markdown" not in job.result
    assert await desk.found("cut hay") == {"/hay"}

    [source] = await list_sources(desk.queue)
    await Catalog(desk.queue.database).sources.delete(None, [source.source.id])
    again = await desk.scrape("/hay", formats=["html", "links"], maxAge=60_000)
    assert again.result["metadata"]["cacheState"] == "hit"
    assert await desk.found("cut hay") == {"/hay"}, "a cache hit is indexed, too"


async def test_what_is_no_text_is_not_indexed(desk: Desk) -> None:
    await desk.scrape("/hay", formats=["rawBase64"])

    assert await list_sources(desk.queue) == []


async def test_pages_of_a_tenant_are_found_by_that_tenant_only(desk: Desk) -> None:
    await desk.scrape("/hay", tenant="acme")
    desk.site.page("/hay", title="Hay", text="A row of cut hay, for others.")
    await desk.scrape("/hay", tenant="zeta")

    for tenant, others in (("acme", False), ("zeta", True)):
        answer = await desk.library.search("cut hay", tenant=tenant)
        assert [one.tenant for one in answer.results] == [tenant]
        assert ("others" in answer.results[0].text) is others
    assert await desk.library.found("cut hay", tenant="nobody") == []


@pytest.mark.parametrize("kills", [2, pytest.param(8, marks=pytest.mark.chaos)])
async def test_killed_worker_leaves_no_completed_page_unindexed(
    store_url: str,
    tmp_path: Path,
    site: Site,  # noqa: F811
    kills: int,
) -> None:
    start = site.generate(PAGES)
    environment = os.environ | {
        "WINDROW_DATABASE_URL": store_url,
        "WINDROW_DATA_DIR": str(tmp_path / "data"),
        "WINDROW_ALLOW_HOSTS": "127.0.0.0/8",
    }
    settings = Settings(database_url=store_url, data_dir=str(tmp_path / "data"))
    moments = sorted(random.sample(range(1, PAGES), kills))
    async with asyncio.timeout(PATIENCE), Queue.open(store_url) as queue:
        crawl_id = await web.start_crawl(queue, start, {"crawlEntireDomain": True})
        for moment in moments:
            worker = Command("worker", cwd=ROOT, environment=environment)
            while len(await _completed(queue, crawl_id)) < moment:
                await asyncio.sleep(0.01)
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            await _check_none_is_missed(queue, crawl_id)
            await _expire_leases(store_url)
        worker = Command("worker", "--until-idle", cwd=ROOT, environment=environment)
        await asyncio.to_thread(worker.wait)

        session = await get_session(queue, crawl_id)
        assert (session.status, session.pages, session.indexed) == ("completed", PAGES, PAGES)
        [source] = await list_sources(queue)
        assert (source.documents, source.pending) == (PAGES, 0)
        answer = await search(settings, SearchRequest(query="Page 7", limit=5))
        assert answer.results


async def _completed(queue: Queue, crawl_id: str) -> list[str]:
    pages = await queue.list(group=crawl_id, kind=SCRAPE, state=JobState.COMPLETED, limit=PAGES)
    return [one.payload["url"] for one in pages]


async def _check_none_is_missed(queue: Queue, crawl_id: str) -> None:
    """Each completed page can be found, or a job that writes it waits or runs."""
    documents = {
        one.uri: one for one in await Catalog(queue.database).documents.page(None, COLLECTION)
    }
    for url in await _completed(queue, crawl_id):
        one = documents[url]
        if one.content is None:
            key = f"index.write:{one.pending}"
            assert await queue.list(unique=key, state=list(LIVE), limit=1), url


async def _expire_leases(url: str) -> None:
    store = await open_store(url, clock=FakeClock(datetime.now(UTC) + timedelta(minutes=10)))
    while await store.rescue_jobs():
        pass
    await store.close()
