"""What people ask of the web beside a crawl: one page, many, a map; and to stop."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.web.crawling import LOOPBACK, crawl, pages, path_of, work
from tests.web.site import Site
from windrow import Queue, Worker
from windrow.errors import DuplicateJob, GroupEnded, IllegalTransition, InvalidOptions, JobNotFound
from windrow.ids import new_id
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.pipelines.web import context
from windrow.pipelines.web.context import Web
from windrow.pipelines.web.handlers import web_handlers
from windrow.pipelines.web.mapping import order
from windrow.queue.job import JobState
from windrow.services import web


async def test_single_page_is_a_job_whose_result_is_the_document(queue: Queue, site: Site) -> None:
    site.page("/", links=["/a"], title="Home")
    job = await web.start_scrape(queue, site.url, {"formats": ["markdown", "links"]})
    await work(queue)

    document = web.document_of(await queue.get(job.id))
    assert document.metadata.title == "Home"
    assert document.links == [f"{site.url}/a"]
    assert site.hits["/a"] == 0
    assert site.hits["/robots.txt"] == 0, "who names a page wants that page"


async def test_batch_scrapes_what_it_is_given_once(queue: Queue, site: Site) -> None:
    site.page("/a", links=["/b"])
    urls = [f"{site.url}/a", f"{site.url}/c", f"{site.url}/a", "no address"]
    started = await web.start_batch(queue, urls)
    assert started.invalid_urls == ["no address"]
    await work(queue)

    assert await pages(queue, started.id) == {"/a", "/c"}
    found = await web.get_crawl(queue, started.id)
    assert (found.kind, found.status, found.completed) == ("web.batch", "completed", 2)
    payloads = [job.payload for job in await queue.list(group=started.id)]
    assert [payload["crawlerOptions"] for payload in payloads] == [None, None]
    with pytest.raises(GroupEnded):
        await web.start_batch(queue, [f"{site.url}/d"], append_to=started.id)


@pytest.mark.parametrize(
    ("urls", "options", "complaint"),
    [
        (["nothing"], {}, "No valid URLs provided"),
        (["nothing", "https://example.org"], {"ignore_invalid": False}, "'nothing'"),
        (["https://example.org"], {"max_concurrency": 0}, "maxConcurrency"),
        (["https://example.org"], {"scrape_options": {"formts": []}}, "formts"),
    ],
)
async def test_bad_batch_is_refused(
    queue: Queue, urls: list[str], options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidOptions, match=complaint):
        await web.start_batch(queue, urls, **options)
    assert await queue.list() == []


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, ["/", "/b/hay", "/a", "/listed"]),
        ({"limit": 2}, ["/", "/b/hay"]),
        ({"sitemap": "skip"}, ["/", "/b/hay", "/a"]),
        ({"sitemap": "only"}, ["/listed", "/a"]),
        ({"search": "listed hay"}, ["/b/hay", "/listed", "/", "/a"]),
        ({"ignoreQueryParameters": False}, ["/", "/b/hay", "/a?x=1", "/listed", "/a"]),
    ],
)
async def test_map_lists_the_addresses_of_a_site(
    queue: Queue, site: Site, options: dict[str, Any], wanted: list[str]
) -> None:
    site.page("/", links=["/b/hay", "/a?x=1", "http://else.example/", "/logo.png"])
    site.sitemap("/sitemap.xml", ["/listed", "/a", "http://else.example/b"])
    job = await web.start_map(queue, site.url, options)
    await work(queue)

    links = (await queue.get(job.id)).result["links"]
    assert [path_of(link) for link in links] == wanted


async def test_map_adds_what_the_tenant_has_scraped_of_the_site_before(
    queue: Queue, site: Site
) -> None:
    site.page("/", links=["/a"])
    site.page("/a", links=["/deep"])
    site.page("/deep")
    site.page("/kept")
    await web.start_crawl(queue, site.url, {"sitemap": "skip", "llmsTxt": False}, tenant="acme")
    await web.start_scrape(queue, f"{site.url}/kept", {"maxAge": 1000}, tenant="acme")
    await web.start_scrape(queue, f"{site.url}/nobodys", {"maxAge": 1000})
    await work(queue)
    maps = [
        await web.start_map(queue, site.url, tenant="acme"),
        await web.start_map(queue, site.url, {"useIndex": False}, tenant="acme"),
        await web.start_map(queue, site.url, tenant="globex"),
    ]
    await work(queue)

    known, *others = [(await queue.get(job.id)).result["links"] for job in maps]
    assert [path_of(link) for link in known] == ["/", "/a", "/kept", "/deep"]
    assert [[path_of(link) for link in links] for links in others] == [["/", "/a"], ["/", "/a"]]


def test_search_puts_what_it_is_about_first_and_keeps_the_rest_in_order() -> None:
    urls = ["https://a/x", "https://a/hay-bales", "https://a/y", "https://a/Hay/rows"]
    assert order(urls, "hay rows") == [urls[3], urls[1], urls[0], urls[2]]
    assert order(urls, None) == urls


async def test_cancelled_crawl_stops_and_says_so(queue: Queue, site: Site) -> None:
    site.generate(500, seconds=0.01)
    options = {"crawlEntireDomain": True, "sitemap": "skip", "llmsTxt": False}
    crawl_id = await web.start_crawl(queue, f"{site.url}/p/0", options)
    async with web_handlers(queue, guard=LOOPBACK) as handlers:
        worker = Worker(queue, handlers)
        running = asyncio.create_task(worker.run(until_idle=True))
        async with asyncio.timeout(60):
            while len(site.hits) < 20:
                await asyncio.sleep(0.01)
            assert (await web.cancel_crawl(queue, crawl_id)).status == "cancelled"
            await running

    found = await web.get_crawl(queue, crawl_id)
    assert (found.status, found.pending) == ("cancelled", 0)
    assert len(site.hits) < 500
    with pytest.raises(IllegalTransition):
        await web.cancel_crawl(queue, crawl_id)


async def test_crawl_that_has_not_begun_is_known_and_can_be_cancelled(queue: Queue) -> None:
    crawl_id = await web.start_crawl(queue, "example.org", {"limit": 3})
    found = await web.get_crawl(queue, crawl_id)
    assert (found.status, found.url, found.total) == ("scraping", "https://example.org/", 0)
    assert (await web.cancel_crawl(queue, crawl_id)).status == "cancelled"
    with pytest.raises(JobNotFound):
        await web.get_crawl(queue, new_id())


async def test_running_crawls_are_listed_and_ended_ones_are_not(queue: Queue, site: Site) -> None:
    site.page("/")
    crawl_id = await crawl(queue, site)
    assert await web.list_crawls(queue) == []
    assert (await queue.get(crawl_id)).state is JobState.COMPLETED


async def test_what_a_worker_remembers_has_an_end(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "KEPT_KEYS", 10)
    monkeypatch.setattr(context, "KEPT_CRAWLS", 3)
    monkeypatch.setattr(context, "KEPT_NOTES", 5)
    shared = Web(queue, Fetcher())
    for number in range(100):
        assert hash(f"{number}") in shared.met(f"crawl {number % 7}", f"{number}")
        assert len(shared.met("one", f"{number}")) <= 10
        assert shared.not_noted("one", "job", [f"{number}"]) == [f"{number}"]
        assert shared.not_noted("one", "other", [f"{number}"]) == []
    assert len(shared._met) <= 3
    assert len(shared._noted) <= 5


@pytest.mark.parametrize(
    "url", ["mailto:me@example.org", "ftp://example.org/a", "javascript:void(0)", "data:,a"]
)
async def test_what_is_no_address_of_the_web_is_refused_with_its_reason(
    queue: Queue, url: str
) -> None:
    for start in (web.start_scrape, web.start_crawl, web.start_map):
        with pytest.raises(InvalidOptions, match="only http and https"):
            await start(queue, url)
    assert await queue.list() == []


@pytest.mark.parametrize("url", ["localhost:8080/a", "example.org", " https://example.org/a:b "])
async def test_address_may_leave_out_its_scheme(queue: Queue, url: str) -> None:
    job = await web.start_scrape(queue, url)
    assert job.payload["url"].startswith("https://")


async def test_new_pages_come_once_and_in_the_order_in_which_they_were_done(
    queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.services.web.pages.PAGE", 3)
    monkeypatch.setattr("windrow.services.web.pages.LOOK_BACK", timedelta(0))
    site.page("/", links=[f"/{n}" for n in range(8)])
    crawl_id = await crawl(queue, site, concurrency=1)
    new = web.NewPages(queue, crawl_id)

    pages = await new.read()
    listed = [job async for job in web.iterate_pages(queue, crawl_id)]
    assert [page.id for page in pages] == [job.id for job in listed]
    times = [job.finished_at.timestamp() for job in listed if job.finished_at]
    assert times == sorted(times)
    assert len(pages) == 9
    assert await new.read() == []
    assert len(new._read) < 9, "those that none can come before are forgotten"


async def test_a_lost_answer_is_asked_for_again_by_its_idempotency_key(queue: Queue) -> None:
    async def begin(url: str, tenant: str | None = None) -> str:
        options = {"formats": ["markdown", "links"], "headers": {"A": "b"}}
        started = await web.start_batch(
            queue, [url], options, max_concurrency=3, tenant=tenant, idempotency_key="once"
        )
        return started.id

    raced = await asyncio.gather(*(begin("http://example.org/a") for _ in range(10)))
    asked: dict[str, Any] = {"idempotency_key": "once", "webhook": "http://example.org/hook"}
    crawls = [await web.start_crawl(queue, "http://example.org", **asked) for _ in range(2)]

    assert len({*raced}) == len({*crawls}) == 1
    assert len({*raced, *crawls, await begin("http://example.org/a", "acme")}) == 3
    assert len(await queue.list()) == 3
    with pytest.raises(DuplicateJob):
        await begin("http://example.org/b")
    with pytest.raises(DuplicateJob):
        await web.start_crawl(queue, "http://example.org/b", **asked)


async def test_a_crawl_that_waits_for_a_worker_has_not_ended(queue: Queue, site: Site) -> None:
    site.page("/")
    crawl_id = await web.start_crawl(queue, site.url, tenant="acme")

    [waiting] = await web.list_crawls(queue, tenant="acme")

    assert (waiting.id, waiting.status) == (crawl_id, "scraping")
    assert await web.list_crawls(queue, tenant="globex") == []
    await work(queue)
    assert await web.list_crawls(queue) == []
