"""Every option of a crawl, with the exact pages that it gives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.web.crawling import crawl, pages, work
from tests.web.site import Page, Site, SiteServer
from windrow import Queue
from windrow.ingest.fetch import resolver
from windrow.pipelines.web.context import HOST_CONCURRENCY
from windrow.pipelines.web.payloads import SCRAPE
from windrow.services import web

QUIET: dict[str, Any] = {"sitemap": "skip", "llmsTxt": False}


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[Queue]:
    """What belongs to a crawl is decided above the stores: one of them will do."""
    async with Queue.open(f"sqlite:///{tmp_path}/jobs.db") as queue:
        yield queue


@pytest.fixture(scope="module")
def garden(site_server: SiteServer) -> Site:
    """A site with something of everything."""
    site = site_server.site()
    site.page(
        "/docs/",
        links=[
            "/docs/a",
            "/docs/b?page=1",
            "/docs/b?page=2",
            "/docs/index.html",
            "/docs/old/x",
            "/docs/secret",
            "/docs/paper.pdf",
            "/docs/logo.png",
            "/blog",
            "mailto:someone@example.org",
            f"http://127.0.0.2:{site.port}/away",
        ],
    )
    site.page("/docs/index.html")
    site.page("/docs/a", links=["/docs/a/deep", "/docs/a/"])
    site.page("/docs/a/", links=[])
    site.page("/docs/a/deep", links=["/docs/a/deeper"])
    site.page("/docs/a/deeper")
    site.page("/docs/b", links=["/docs/"])
    site.page("/docs/old/x", links=["/docs/old/y"])
    site.page("/docs/old/y")
    site.page("/docs/secret")
    site.pdf("/docs/paper.pdf", "Hay")
    site.page("/blog", links=["/blog/one"])
    site.page("/blog/one")
    site.page("/docs/listed")
    site.page("/docs/zipped")
    site.page("/docs/for-machines")
    site.robots("User-agent: *\nDisallow: /docs/secret\nSitemap: /maps/index.xml\n")
    site.sitemap("/maps/index.xml", ["more.xml.gz", "/maps/index.xml"], kind="sitemap")
    site.sitemap(
        "/maps/more.xml.gz", ["/docs/zipped", "/blog/one", "http://else.example/"], zip_=True
    )
    site.sitemap("/docs/sitemap.xml", ["/docs/listed", "/docs/secret"])
    site.text("/docs/llms.txt", "# Docs\n- [For machines](/docs/for-machines)\n- [A](/docs/a)\n")
    return site


FIRST = {"/docs/", "/docs/a", "/docs/b?page=1", "/docs/b?page=2", "/docs/old/x", "/docs/paper.pdf"}
LINKED = FIRST | {"/docs/a/deep", "/docs/a/deeper", "/docs/old/y"}
LISTED = {"/docs/listed", "/docs/zipped"}
LLMS = {"/docs/llms.txt", "/docs/for-machines"}
USUAL = LINKED | LISTED | LLMS


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, USUAL),
        ({"llmsTxt": False}, LINKED | LISTED),
        ({"sitemap": "skip"}, LINKED | LLMS),
        ({"sitemap": "only"}, {"/docs/"} | LISTED),
        ({"sitemap": "skip", "llmsTxt": False}, LINKED),
        ({"ignoreRobotsTxt": True}, (USUAL | {"/docs/secret"}) - {"/docs/zipped"}),
        ({"crawlEntireDomain": True}, USUAL | {"/blog", "/blog/one"}),
        ({"allowExternalLinks": True}, USUAL | {"/away"}),
        ({"maxDiscoveryDepth": 0}, {"/docs/"} | LISTED | LLMS | {"/docs/a"}),
        ({"maxDiscoveryDepth": 0, "sitemap": "skip", "llmsTxt": False}, {"/docs/"}),
        ({"maxDiscoveryDepth": 1, "sitemap": "skip", "llmsTxt": False}, FIRST),
        ({"includePaths": ["^/docs/a"]}, {"/docs/", "/docs/a", "/docs/a/deep", "/docs/a/deeper"}),
        (
            {"excludePaths": ["/old/", "paper", "a/deep$"]},
            USUAL
            - {
                "/docs/old/x",
                "/docs/old/y",
                "/docs/paper.pdf",
                "/docs/a/deep",
                "/docs/a/deeper",
            },
        ),
        ({"includePaths": ["docs"], "excludePaths": ["docs/[a-z]"]}, {"/docs/"}),
        ({"excludePaths": [r"page=\d"]}, USUAL),
        (
            {"excludePaths": [r"page=\d"], "regexOnFullURL": True},
            USUAL
            - {
                "/docs/b?page=1",
                "/docs/b?page=2",
            },
        ),
        (
            {"ignoreQueryParameters": True},
            (USUAL | {"/docs/b"})
            - {
                "/docs/b?page=1",
                "/docs/b?page=2",
            },
        ),
        ({"deduplicateSimilarURLs": False}, USUAL | {"/docs/index.html", "/docs/a/"}),
        ({"robotsUserAgent": "Other"}, USUAL),
    ],
)
async def test_crawl_has_these_pages_and_no_others(
    queue: Queue, garden: Site, options: dict[str, Any], wanted: set[str]
) -> None:
    crawl_id = await crawl(queue, garden, "/docs/", **options)

    assert await pages(queue, crawl_id) == wanted
    found = await web.get_crawl(queue, crawl_id)
    assert (found.status, found.failed) == ("completed", 0)


@pytest.mark.parametrize("limit", [1, 2, 7, 40])
async def test_limit_is_exact(queue: Queue, site: Site, limit: int) -> None:
    site.generate(200, fan_out=10)
    site.sitemap("/sitemap.xml", [f"/p/{number}" for number in range(100, 200)])

    crawl_id = await crawl(queue, site, "/p/0", limit=limit, crawlEntireDomain=True)

    assert len(await pages(queue, crawl_id)) == limit
    assert len(site.pages_hit()) == limit
    assert sum(site.hits[path] for path in site.pages_hit()) == limit


async def test_subdomains_are_followed_if_allowed(
    queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "_look_up", _loopback(resolver._look_up))
    home = f"http://farm.test:{site.port}"
    site.page("/", links=["/a", f"http://blog.farm.test:{site.port}/post"])
    site.page("/a")
    site.page("/post", host="blog", links=["/more", f"{home}/a"])
    site.page("/more", host="blog")

    for allowed, wanted in ((False, {"/", "/a"}), (True, {"/", "/a", "/post", "/more"})):
        crawl_id = await web.start_crawl(queue, home, {"allowSubdomains": allowed})
        await _work_anywhere(queue)
        assert await pages(queue, crawl_id) == wanted


async def test_max_concurrency_is_kept(queue: Queue, site: Site) -> None:
    site.generate(30, fan_out=30, seconds=0.02)

    crawl_id = await crawl(
        queue, site, "/p/0", maxConcurrency=3, ignoreRobotsTxt=True, **QUIET, crawlEntireDomain=True
    )

    assert len(await pages(queue, crawl_id)) == 30
    assert site.most_in_flight == 3
    assert [one.key for one in await queue.limits() if one.active] == [], "the limit went with it"


@pytest.mark.parametrize("by_robots", [False, True])
async def test_delay_lets_one_page_start_after_the_other(
    queue: Queue, site: Site, by_robots: bool
) -> None:
    site.generate(5, fan_out=5)
    options: dict[str, Any] = {"delay": 0.15}
    if by_robots:
        site.robots("User-agent: *\nCrawl-delay: 0.15\n")
        options = {}

    crawl_id = await crawl(queue, site, "/p/0", **options, **QUIET, crawlEntireDomain=True)

    # They are let go so far apart; how long after that they are fetched is up to the machine.
    jobs = await queue.list(group=crawl_id, kind=SCRAPE)
    began = min(job.created_at for job in jobs)
    starts = sorted(job.started_at - began for job in jobs if job.started_at is not None)
    assert len(starts) == 5
    for number, after in enumerate(starts):
        assert after >= number * timedelta(seconds=0.149), starts
    assert site.most_in_flight == 1


async def test_redirects_are_judged_by_where_they_lead(queue: Queue, site: Site) -> None:
    site.page("/docs/", links=["moved", "away", "twice", "up", "b"])
    site.redirect("/docs/moved", "/docs/new")
    site.page("/docs/new", links=["/docs/found"])
    site.page("/docs/found")
    site.redirect("/docs/away", f"http://127.0.0.2:{site.port}/docs/x")
    site.redirect("/docs/up", "/other")
    site.page("/other")
    site.redirect("/docs/twice", "/docs/b")
    site.page("/docs/b")

    crawl_id = await crawl(queue, site, "/docs/", concurrency=1, **QUIET)

    # Whoever of the redirect and the page itself came first has it.
    found = await pages(queue, crawl_id)
    assert found - {"/docs/twice", "/docs/b"} == {"/docs/", "/docs/moved", "/docs/found"}
    assert len(found & {"/docs/twice", "/docs/b"}) == 1
    errors = (await web.get_errors(queue, crawl_id)).errors
    assert {(error.url.removeprefix(site.url), error.code) for error in errors} == {
        ("/docs/away", "SCRAPE_REDIRECT_OUT_OF_SCOPE"),
        ("/docs/up", "SCRAPE_REDIRECT_OUT_OF_SCOPE"),
    }


async def test_page_that_was_reached_by_redirect_is_not_crawled_again(
    queue: Queue, site: Site
) -> None:
    site.page("/", links=["/moved"])
    site.redirect("/moved", "/new")
    site.page("/new", links=["/last"])
    site.page("/last", links=["/new"])

    crawl_id = await crawl(queue, site, **QUIET)

    assert await pages(queue, crawl_id) == {"/", "/moved", "/last"}
    assert site.hits["/new"] == 1


async def test_crawl_whose_start_redirects_goes_on_where_it_leads(queue: Queue, site: Site) -> None:
    site.redirect("/start/here", "/welcome/")
    site.page("/welcome/", links=["/welcome/a", "/elsewhere"])
    site.page("/welcome/a")
    site.page("/elsewhere")

    crawl_id = await crawl(queue, site, "/start/here", **QUIET)

    assert await pages(queue, crawl_id) == {"/start/here", "/welcome/a"}


async def test_pages_of_errors_are_pages_and_what_cannot_be_had_is_an_error(
    queue: Queue, site: Site
) -> None:
    site.page("/", links=["/missing", "/gone", "/broken", "/film", "http://127.0.0.1:1/"])
    site.page("/gone", status=410)
    site.page("/broken", status=500)
    site.put("/film", Page(b"\0\1\2\3", content_type="video/mp4"))

    crawl_id = await crawl(queue, site, **QUIET)

    statuses = {
        document.url: document.metadata.status_code
        async for job in web.iterate_pages(queue, crawl_id)
        for document in [web.document_of(job)]
    }
    assert statuses == {
        f"{site.url}/": 200,
        f"{site.url}/missing": 404,
        f"{site.url}/gone": 410,
        f"{site.url}/broken": 500,
    }
    [error] = (await web.get_errors(queue, crawl_id)).errors
    assert error.code == "SCRAPE_UNSUPPORTED_FILE_ERROR"
    assert error.url == f"{site.url}/film"


async def test_host_that_asks_for_a_pause_gets_it_and_no_attempt_is_lost(
    queue: Queue, site: Site
) -> None:
    site.page("/", links=["/busy", "/other"])
    busy = Page(b"<p>here</p>", first=[429], first_headers={"Retry-After": "1"})
    site.put("/busy", busy)
    site.page("/other")

    crawl_id = await crawl(queue, site, concurrency=1, **QUIET)

    assert await pages(queue, crawl_id) == {"/", "/busy", "/other"}
    assert site.hits["/busy"] == 2
    first, *_, last = [at for at, path in site.starts if path == "/busy"]
    assert last - first > 0.9
    assert all(job.attempts == 0 for job in await queue.list(group=crawl_id))


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://name.invalid/", "SCRAPE_DNS_RESOLUTION_ERROR"),
        ("http://10.1.2.3/", "SCRAPE_FORBIDDEN_TARGET"),
    ],
)
async def test_crawl_that_cannot_begin_fails_with_a_code(queue: Queue, url: str, code: str) -> None:
    crawl_id = await web.start_crawl(queue, url)
    await _work_anywhere(queue)
    found = await web.get_crawl(queue, crawl_id)
    assert found.status == "failed"
    assert found.code == code
    assert found.error is not None
    assert url in found.error


async def test_only_failed_pages_are_tried_again(queue: Queue, site: Site) -> None:
    site.page("/", links=["/film", "/fine"])
    site.put("/film", Page(b"\0\1", content_type="video/mp4"))
    site.page("/fine")
    crawl_id = await crawl(queue, site, **QUIET)
    assert (await web.get_crawl(queue, crawl_id)).failed == 1

    site.forget()
    site.page("/film", links=["/late"])
    site.page("/late")
    assert await web.retry_failed(queue, crawl_id) == 1
    await _work_anywhere(queue)

    assert "/film" in await pages(queue, crawl_id)
    assert site.hits["/film"] == 1
    assert site.hits["/fine"] == site.hits["/"] == 0


async def test_pages_that_are_tried_again_keep_the_pause_that_robots_txt_asks_for(
    queue: Queue, site: Site
) -> None:
    site.robots("User-agent: *\nCrawl-delay: 0.05")
    site.page("/", links=["/film"])
    site.put("/film", Page(b"\0\1", content_type="video/mp4"))
    crawl_id = await crawl(queue, site, **QUIET)
    limit = {one.key: one for one in await queue.limits()}.get(f"crawl:{crawl_id}")
    assert limit is None or limit.active is None, "it goes with the crawl"

    assert await web.retry_failed(queue, crawl_id) == 1
    again = {one.key: one for one in await queue.limits()}[f"crawl:{crawl_id}"]
    assert (again.active, again.per_second) == (1, 20.0)


async def test_a_site_is_asked_for_a_few_pages_at_once_unless_somebody_says_how_many(
    queue: Queue, site: Site
) -> None:
    site.generate(40, seconds=0.02)
    options = {**QUIET, "crawlEntireDomain": True}
    crawl_id = await crawl(queue, site, "/p/0", concurrency=30, **options)
    assert len(await pages(queue, crawl_id)) == 40
    assert 2 <= site.most_in_flight <= HOST_CONCURRENCY

    site.forget()
    urls = [f"{site.url}/p/{number}" for number in range(40)]
    await web.start_batch(queue, urls)
    await work(queue, concurrency=30)
    assert 2 <= site.most_in_flight <= HOST_CONCURRENCY


async def _work_anywhere(queue: Queue) -> None:
    async with asyncio.timeout(60):
        await work(queue)


def _loopback(look_up: Any) -> Any:
    def look(host: str, port: int, family: int) -> Any:
        return look_up("127.0.0.1" if host.endswith(".test") else host, port, family)

    return look
