"""Seed N: the printed queries find Windrow's own scrapes, crawls and batches, and who works for NuQ
neither takes nor changes them (N10)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from tests.seeds import nuq
from tests.web.crawling import work
from tests.web.site import Site, SiteServer
from windrow import Queue
from windrow.queue.store import Store
from windrow.services import web

DIALECT = "nuq"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with SiteServer() as server:
        site = server.site()
        site.page("/", ["/a", "/b", "/gone"], title="Home")
        site.page("/a")
        site.page("/b")
        site.redirect("/gone", "http://10.0.0.1/")  # where nobody may go
        yield site


async def test_printed_queries_find_a_crawl_of_windrows_own_n10(
    db: Any, store: Store, site: Site
) -> None:
    queue = Queue(store)
    crawl_id = await web.start_crawl(queue, site.url, {"sitemap": "skip", "llmsTxt": False})
    single = await web.start_scrape(queue, f"{site.url}/a")
    assert await nuq.see(db, UUID(single.id)) is None  # it waits where nobody takes it
    assert await db.fetchval("SELECT count(*) FROM nuq.queue_scrape_backlog") == 1
    assert await nuq.take(db) is None
    await work(queue)

    pages = await db.fetch(nuq.PAGES, UUID(crawl_id))
    assert {page["url"] for page in pages} == {f"{site.url}{path}" for path in ("/", "/a", "/b")}
    assert pages[0]["title"] == "Home"
    assert all(page["content_length"] for page in pages)
    stats = {row["status"]: row["count"] for row in await db.fetch(nuq.STATS, UUID(crawl_id))}
    assert stats == {"completed": 3, "failed": 1, "backlog": 0}
    progress = await db.fetchrow(nuq.PROGRESS, UUID(crawl_id))
    assert (progress["crawl_status"], progress["completed_count"]) == ("completed", 3)
    assert (progress["failed_count"], progress["total_count"]) == (1, 4)
    [recent] = await db.fetch(nuq.RECENT_OF_TEAM, "bypass")
    assert (str(recent["id"]), recent["url"]) == (single.id, f"{site.url}/a")
    assert json.loads(recent["returnvalue"])["metadata"]["statusCode"] == 200


async def test_windrows_own_pages_are_not_written_through_the_views_n10(
    db: Any, store: Store, site: Site
) -> None:
    queue = Queue(store)
    waiting = await web.start_scrape(queue, f"{site.url}/b")
    waiting_id = UUID(waiting.id)
    assert await db.fetch(nuq.PROMOTE, waiting_id) == []
    lease = await queue.claim(["web"], limit=1, seconds=60, worker="gone")
    await db.execute("UPDATE windrow.lease SET expires_at = now() - interval '1 minute'")
    assert await nuq.see(db, waiting_id)
    for statement in nuq.CRON.values():
        await db.execute(statement)
    assert await db.execute("DELETE FROM nuq.queue_scrape WHERE id = $1", waiting_id) == "DELETE 0"
    assert (await queue.get(waiting.id)).crashes == 0
    assert lease.jobs[0].id == waiting.id
    await store.rescue_jobs()
