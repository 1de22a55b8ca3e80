"""Seed N: the printed queries find Windrow's own scrapes, crawls and batches, and who works for NuQ
neither takes nor changes them (N10)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.indexing.helpers import Library
from tests.seeds import nuq
from tests.web.crawling import LOOPBACK, work
from tests.web.site import Site, SiteServer
from windrow import Queue, Worker
from windrow.index.edge import EdgeIndex
from windrow.pipelines.index import writing
from windrow.pipelines.index.writing import Timings
from windrow.pipelines.web.handlers import web_handlers
from windrow.queue.job import JobState
from windrow.queue.store import Store
from windrow.services import web
from windrow.services.working import run_worker
from windrow.settings import Settings

DIALECT = "nuq"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with SiteServer() as server:
        site = server.site()
        site.page("/", ["/a", "/b", "/gone"], title="Home")
        site.page("/a")
        site.page("/b")
        site.page("/alone")
        site.redirect("/gone", "http://10.0.0.1/")  # where nobody may go
        yield site


async def test_printed_queries_find_a_crawl_of_windrows_own_n10(
    db: Any, store: Store, site: Site
) -> None:
    queue = Queue(store)
    crawl_id = await web.start_crawl(queue, site.url, {"sitemap": "skip", "llmsTxt": False})
    single = await web.start_scrape(queue, f"{site.url}/a")
    assert await nuq.see(db, UUID(single.id)) is None  # it waits where nobody takes it
    assert (
        await db.fetchval("SELECT count(*) FROM nuq.queue_scrape_backlog") == 2
    )  # and the kickoff
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


class EvenTimings(Timings):
    """Every step takes ten milliseconds: a real one may be shorter than the clock can tell."""

    def ended(self, step: str) -> None:
        self.seconds[step] += 0.01


async def test_crawl_sessions_say_what_a_crawl_brought_into_the_index_n13(
    db: Any, store: Store, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "Timings", EvenTimings)
    queue = Queue(store)
    # A page of its own: one that several crawls bring at once counts for the last of them.
    batch = await web.start_batch(queue, [f"{site.url}/alone"])
    crawl_id = await web.start_crawl(queue, site.url, {"sitemap": "skip", "llmsTxt": False})
    left_out = await web.start_crawl(queue, site.url, scrape_options={"index": False})
    index = EdgeIndex(tmp_path / "index")
    async with web_handlers(queue, guard=LOOPBACK, index_pages=True) as handlers:
        await Worker(queue, handlers).run(until_idle=True)
        by_id = "SELECT * FROM webhook.crawl_sessions WHERE job_id = $1"
        assert (await db.fetchrow(by_id, UUID(crawl_id)))["pages_indexed"] == 0
        await Library(queue, index).work()
    await index.close()

    crawl = await db.fetchrow(by_id, UUID(crawl_id))
    assert (crawl["base_url"], crawl["operation_type"]) == (f"{site.url}/", "crawl")
    assert (crawl["status"], crawl["success"]) == ("completed", True)
    assert (crawl["total_pages"], crawl["pages_indexed"], crawl["pages_failed"]) == (4, 3, 1)
    steps = ("total_chunking_ms", "total_embedding_ms", "total_indexing_ms")
    assert min(crawl[step] for step in steps) >= 1
    assert crawl["e2e_duration_ms"] > crawl["duration_ms"] > 0
    # The names of the bridge's own table; words and vectors are written at once.
    assert (crawl["total_qdrant_ms"], crawl["total_bm25_ms"]) == (crawl["total_indexing_ms"], 0)
    assert crawl["initiated_at"] <= crawl["started_at"] <= crawl["updated_at"]
    assert crawl["extra_metadata"] is None
    found = await db.fetch("SELECT job_id, operation_type FROM webhook.crawl_sessions")
    assert {str(one["job_id"]) for one in found} == {crawl_id, batch.id}
    assert left_out not in {str(one["job_id"]) for one in found}


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


async def test_kickoff_and_finish_of_a_crawl_of_windrows_own_are_shown(
    db: Any, store: Store, site: Site
) -> None:
    queue = Queue(store)
    crawl_id = await web.start_crawl(queue, site.url, {"sitemap": "skip", "llmsTxt": False})
    id = UUID(crawl_id)
    kickoff = "SELECT * FROM nuq.{} WHERE group_id = $1 AND data->>'mode' = 'kickoff'"
    [row] = await db.fetch(kickoff.format("queue_scrape_backlog"), id)
    assert (str(row["id"]), json.loads(row["data"])["url"]) == (crawl_id, f"{site.url}/")
    assert await nuq.take(db) is None
    await work(queue)

    assert await db.fetch(kickoff.format("queue_scrape_backlog"), id) == []
    [row] = await db.fetch(kickoff.format("queue_scrape"), id)
    assert (str(row["id"]), row["status"], row["returnvalue"]) == (crawl_id, "completed", None)
    data = json.loads(row["data"])
    assert (data["crawl_id"], data["team_id"], data["url"]) == (crawl_id, "bypass", f"{site.url}/")
    assert "crawlerOptions" in data
    everything = await db.fetch("SELECT id FROM nuq.queue_scrape WHERE group_id = $1", id)
    assert len(everything) == 1 + 4
    # It is no result that stands alone, and none of the pages.
    assert await db.fetch(nuq.RECENT) == []
    assert {page["id"] for page in await db.fetch(nuq.PAGES, id)}.isdisjoint({id})

    [row] = await db.fetch("SELECT * FROM nuq.queue_crawl_finished WHERE group_id = $1", id)
    assert (row["status"], row["owner_id"]) == ("completed", None)
    assert json.loads(row["data"])["crawl_id"] == crawl_id
    # They are not for others to write, and go with their crawl.
    for relation in ("queue_scrape", "queue_crawl_finished"):
        for change in ("UPDATE nuq.{} SET priority = 9", "DELETE FROM nuq.{}"):
            answer = await db.execute(f"{change.format(relation)} WHERE group_id = $1", id)
            assert answer.endswith(" 0")
    await db.execute("UPDATE nuq.group_crawl SET expires_at = now() - interval '1 s'")
    for statement in nuq.CRON.values():
        await db.execute(statement)
    gone = "SELECT count(*) FROM nuq.queue_crawl_finished WHERE group_id = $1"
    assert await db.fetchval(gone, id) == 0


async def work_on_rows(queue: Queue) -> None:
    async with web_handlers(queue, guard=LOOPBACK, with_nuq_rows=True) as handlers:
        await Worker(queue, handlers).run(until_idle=True)


async def test_row_of_an_outside_producer_is_scraped(db: Any, store: Store, site: Site) -> None:
    queue = Queue(store)
    group = await nuq.add_group(db, nuq.OWNER)
    data = {"url": f"{site.url}/", "mode": "single_urls", "team_id": "bypass", "origin": "api"}
    single = await nuq.add(db, data={**data, "scrapeOptions": {"formats": ["markdown", "links"]}})
    member = await nuq.add(db, data={**data, "crawl_id": str(group)}, group=group, owner=nuq.OWNER)
    heard: asyncio.Queue[str] = asyncio.Queue()
    await db.add_listener("nuq.queue_scrape", lambda *told: heard.put_nowait(told[-1]))
    await work_on_rows(queue)

    row = await nuq.see(db, single)
    assert (row["status"], row["lock"], row["failedreason"]) == ("completed", None, None)
    document = json.loads(row["returnvalue"])
    assert document["metadata"]["title"] == "Home"
    assert (document["metadata"]["statusCode"], document["metadata"]["proxyUsed"]) == (200, "basic")
    assert f"{site.url}/a" in document["links"]
    [page] = await db.fetch(nuq.PAGES, group)
    assert (page["id"], page["title"]) == (member, "Home")
    [done] = await db.fetch("SELECT * FROM nuq.queue_crawl_finished")
    assert (done["group_id"], done["status"]) == (group, "queued")
    async with asyncio.timeout(10):
        told = {await heard.get() for _ in range(2)}
    assert told == {f"{single}|completed", f"{member}|completed"}
    await db.remove_listener("nuq.queue_scrape", lambda *told: None)


async def test_row_with_the_whole_request_of_nuqs_api_is_scraped(
    db: Any, store: Store, site: Site
) -> None:
    request = {
        "url": f"{site.url}/a",
        "origin": "api",
        "formats": [{"type": "markdown"}, {"type": "links"}],
        "onlyMainContent": True,
        "onlyCleanContent": False,
        "waitFor": 0,
        "mobile": False,
        "skipTlsVerification": True,
        "removeBase64Images": True,
        "fastMode": False,
        "blockAds": True,
        "proxy": "auto",
        "maxAge": 172_800_000,
        "storeInCache": True,
        "zeroDataRetention": False,
        "__experimental_omce": False,
        "__experimental_engpicker": False,
    }
    data = {
        "url": f"{site.url}/a",
        "mode": "single_urls",
        "team_id": "bypass",
        "scrapeOptions": request,
        "internalOptions": {"teamId": "bypass", "bypassBilling": False, "teamFlags": None},
        "skipNuq": False,
        "startTime": 1_760_000_000_000,
        "apiKeyId": None,
        "concurrencyLimited": False,
    }
    job_id = await nuq.add(db, data=data)
    await work_on_rows(Queue(store))

    row = await nuq.see(db, job_id)
    assert (row["status"], row["failedreason"]) == ("completed", None)
    document = json.loads(row["returnvalue"])
    assert {"markdown", "links"} <= document.keys()
    assert "warning" not in document


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"url": "{site}/gone"}, "SCRAPE_"),
        ({"url": "ftp://127.0.0.1/"}, "not an http or https URL"),
        ({"url": "http://169.254.169.254/"}, "SCRAPE_"),
        ({"url": "{site}/", "mode": "kickoff"}, "mode 'kickoff' is not supported"),
        ({"url": "{site}/", "scrapeOptions": {"formats": ["nonsense"]}}, "formats"),
        ({"mode": "single_urls"}, "url"),
    ],
)
async def test_row_that_cannot_be_scraped_fails_with_the_reason(
    db: Any, store: Store, site: Site, data: dict[str, Any], reason: str
) -> None:
    if "url" in data:
        data = {**data, "url": data["url"].replace("{site}", site.url)}
    job_id = await nuq.add(db, data=data)
    await work_on_rows(Queue(store))

    row = await nuq.see(db, job_id)
    assert (row["status"], row["returnvalue"]) == ("failed", None)
    assert reason in row["failedreason"]


async def test_fetches_of_a_cancelled_group_are_stopped(db: Any, store: Store, site: Site) -> None:
    queue = Queue(store)
    never = threading.Event()
    site.page("/never", until=never)
    group = await nuq.add_group(db, nuq.OWNER)
    row = await nuq.add(db, data={"url": f"{site.url}/never"}, group=group, owner=nuq.OWNER)
    worker = asyncio.create_task(work_on_rows(queue))
    async with asyncio.timeout(30):
        while not site.hits["/never"]:
            await asyncio.sleep(0.01)
    await db.execute("UPDATE nuq.group_crawl SET status = 'cancelled' WHERE id = $1", group)

    assert (await queue.wait(str(row), timeout=20)).state is JobState.CANCELLED
    never.set()
    await worker


@pytest.mark.parametrize(
    "data", [{"zeroDataRetention": True}, {"internalOptions": {"zeroDataRetention": True}}]
)
async def test_row_with_zero_data_retention_is_not_indexed(
    db: Any, store: Store, site: Site, data: dict[str, Any]
) -> None:
    queue = Queue(store)
    kept = await nuq.add(db, data={"url": f"{site.url}/a", "internalOptions": {"teamId": "x"}})
    secret = await nuq.add(db, data={"url": f"{site.url}/b", **data})
    async with web_handlers(
        queue, guard=LOOPBACK, index_pages=True, with_nuq_rows=True
    ) as handlers:
        await Worker(queue, handlers).run(until_idle=True)

    for job_id in (kept, secret):
        assert (await nuq.see(db, job_id))["status"] == "completed"
    assert await db.fetch("SELECT uri FROM windrow.document") == [(f"{site.url}/a",)]


async def test_workers_of_windrow_and_of_nuq_share_the_rows(
    db: Any, store: Store, site: Site
) -> None:
    ids = {await nuq.add(db, data={"url": f"{site.url}/a?n={n}"}) for n in range(20)}
    worker = asyncio.create_task(work_on_rows(Queue(store)))
    theirs = set()
    while (job := await nuq.take(db)) is not None:
        theirs.add(job["id"])
        assert await nuq.finish(db, job, {"markdown": "theirs"})
    await worker

    rows = await db.fetch("SELECT id, status::text, returnvalue FROM nuq.queue_scrape")
    assert {row["id"] for row in rows} == ids
    assert {row["status"] for row in rows} == {"completed"}
    marked = {row["id"] for row in rows if json.loads(row["returnvalue"])["markdown"] == "theirs"}
    assert marked == theirs


async def test_default_worker_scrapes_the_rows(
    db: Any, dialect_url: str, site: Site, tmp_path: Path
) -> None:
    job_id = await nuq.add(db, data={"url": f"{site.url}/a", "mode": "single_urls"})
    settings = Settings(database_url=dialect_url, data_dir=str(tmp_path), allow_hosts="127.0.0.0/8")
    assert await run_worker(settings, [], until_idle=True) == 0

    row = await nuq.see(db, job_id)
    assert (row["status"], row["failedreason"]) == ("completed", None)
    assert json.loads(row["returnvalue"])["metadata"]["statusCode"] == 200
