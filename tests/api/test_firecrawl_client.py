"""N8: the unmodified client of Firecrawl, in both its kinds, against `windrow serve`."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from firecrawl import AsyncFirecrawl, Firecrawl
from firecrawl.v2.types import PaginationConfig, ParseOptions
from firecrawl.v2.utils.error_handler import BadRequestError, FirecrawlError, RequestTimeoutError

from tests.api.server import Server
from tests.web.site import Site
from windrow import Queue

Call = Callable[..., Any]
NOWHERE = "01999999-0000-7000-8000-000000000000"


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest, server: Server) -> Call:
    """Call a method of a client, by name."""
    kind = Firecrawl if request.param == "sync" else AsyncFirecrawl
    client = kind(api_key="any", api_url=server.url)

    def call(name: str, *args: Any, **options: Any) -> Any:
        made = getattr(client, name)(*args, **options)
        return asyncio.run(made) if inspect.iscoroutine(made) else made

    return call


def small_site(site: Site) -> str:
    """Five pages; one of them is broken, one forbidden."""
    site.robots("User-agent: *\nDisallow: /secret")
    site.page("/", links=["/a", "/b", "/secret", "/broken"])
    site.page("/a", links=["/"])
    site.page("/b")
    site.text("/broken", "%PDF-1.4 and nothing more", content_type="application/pdf")
    return site.url


def test_n8_a_page_is_scraped(call: Call, site: Site) -> None:
    site.page("/", links=["/a"], title="Meadow", text="Hay lies in rows.")

    document = call("scrape", site.url, formats=["markdown", "links"])

    assert "Hay lies in rows." in document.markdown
    assert document.links == [f"{site.url}/a"]
    assert document.metadata.title == "Meadow"
    assert document.metadata.status_code == 200


def test_n13_a_scraped_page_is_found_unless_the_request_says_otherwise(
    call: Call, site: Site, server: Server
) -> None:
    site.page("/", text="Quokkas browse the tussocks.")
    body = {"url": f"{site.url}/kept-out", "index": False}
    site.page("/kept-out", text="Quokkas that nobody may find.")
    assert httpx.post(f"{server.url}/v2/scrape", json=body, timeout=60).status_code == 200

    call("scrape", site.url)
    asyncio.run(until_indexed(server))

    found = {page.url for page in call("search", "quokkas browse tussocks", limit=100).web}
    assert f"{site.url}/" in found
    assert f"{site.url}/kept-out" not in found


async def until_indexed(server: Server) -> None:
    async with Queue.open(server.database) as queue:
        for job in await queue.list(kind="index.write", limit=1000):
            await queue.wait(job.id, timeout=60)


def test_n8_a_missing_page_is_a_document_with_its_status(call: Call, site: Site) -> None:
    document = call("scrape", f"{site.url}/nothing")

    assert document.metadata.status_code == 404


def test_n8_a_page_that_takes_too_long_is_a_timeout(call: Call, site: Site) -> None:
    site.page("/slow", seconds=20)

    with pytest.raises(RequestTimeoutError):
        call("scrape", f"{site.url}/slow", timeout=1000)


def test_n8_a_crawl_is_seen_through(call: Call, site: Site) -> None:
    job = call("crawl", url=small_site(site), poll_interval=1, timeout=60)

    assert job.status == "completed"
    assert {one.metadata.source_url for one in job.data} == {
        f"{site.url}/",
        f"{site.url}/a",
        f"{site.url}/b",
    }
    assert (job.completed, job.total, job.credits_used) == (3, 3, 3)
    assert job.expires_at is not None

    errors = call("get_crawl_errors", job.id)
    assert errors.robots_blocked == [f"{site.url}/secret"]
    assert [one.url for one in errors.errors] == [f"{site.url}/broken"]
    assert errors.errors[0].code == "SCRAPE_CONVERSION_ERROR"
    assert call("cancel_crawl", job.id) is False


def test_n8_a_crawl_that_is_cancelled_stays_readable(call: Call, site: Site) -> None:
    start = site.generate(1000, seconds=0.2)
    started = call("start_crawl", start, limit=500, crawl_entire_domain=True)
    assert started.url.endswith(f"/v2/crawl/{started.id}")
    wait_for(lambda: call("get_crawl_status", started.id).data)
    assert started.id in [one.id for one in call("active_crawls").crawls]

    assert call("cancel_crawl", started.id) is True

    job = call("get_crawl_status", started.id)
    assert job.status == "cancelled"
    assert job.data
    assert started.id not in [one.id for one in call("active_crawls").crawls]


@pytest.mark.parametrize("kind", ["crawl", "batch/scrape"])
def test_n8_nothing_is_fetched_after_a_cancel_was_answered(
    store_url: str, tmp_path: Path, site: Site, kind: str
) -> None:
    answers = threading.Event()
    paths = [f"/p{number}" for number in range(11)]
    site.page("/", links=paths)
    for path in paths:
        site.page(path, until=answers)
    site.robots("", until=answers)
    wanted: dict[str, Any] = {"url": site.url}
    if kind != "crawl":
        wanted = {"urls": [f"{site.url}{path}" for path in paths], "maxConcurrency": 2}
    with Server(tmp_path, WINDROW_DATABASE_URL=store_url) as server:
        started = httpx.post(f"{server.url}/v2/{kind}", json=wanted, timeout=60).json()
        address = f"{server.url}/v2/{kind}/{started['id']}"
        wait_for(lambda: site.hits)
        assert httpx.delete(address, timeout=60).json()["status"] == "cancelled"
        assert httpx.get(address, timeout=60).json()["status"] == "cancelled"
        before = set(site.hits)
        answers.set()
        wait_for(lambda: _has_nothing_to_do(server))
        assert httpx.get(address, timeout=60).json()["status"] == "cancelled"

    # Of a batch a page may have been claimed whose request was on its way.
    assert len(before) <= 2
    assert len(set(site.hits)) <= (1 if kind == "crawl" else 2)


def _has_nothing_to_do(server: Server) -> bool:
    found = httpx.get(f"{server.url}/v2/team/queue-status", timeout=60).json()
    return bool(found["jobsInQueue"] == 0)


def test_n8_all_documents_are_read_page_by_page(call: Call, site: Site, server: Server) -> None:
    site.generate(30)
    started = call("start_batch_scrape", [f"{site.url}/p/{n}" for n in range(25)])
    wait_for(lambda: call("get_batch_scrape_status", started.id).status == "completed")

    asked = f"{server.url}/v2/batch/scrape/{started.id}"
    first = httpx.get(f"{asked}?limit=10", timeout=60).json()
    second = httpx.get(first["next"], timeout=60).json()
    third = httpx.get(second["next"], timeout=60).json()

    assert first["next"] == f"{asked}?skip=10&limit=10"
    assert [len(one["data"]) for one in (first, second, third)] == [10, 10, 5]
    assert "next" not in third
    urls = [doc["metadata"]["sourceURL"] for one in (first, second, third) for doc in one["data"]]
    assert len(set(urls)) == 25
    pages = PaginationConfig(auto_paginate=False)
    assert len(call("get_batch_scrape_status", started.id, pagination_config=pages).data) == 25


def test_n8_a_batch_takes_more_pages_while_it_runs(call: Call, site: Site) -> None:
    is_appended = threading.Event()
    site.page("/slow", until=is_appended)
    for path in ("/a", "/b"):
        site.page(path)

    started = call(
        "start_batch_scrape",
        [f"{site.url}/slow", f"{site.url}/a", "http://[broken"],
        ignore_invalid_urls=True,
    )
    call("start_batch_scrape", [f"{site.url}/b"], append_to_id=started.id)
    is_appended.set()

    assert started.invalid_urls == ["http://[broken"]
    job = wait_for(lambda: completed(call("get_batch_scrape_status", started.id)))
    assert {one.metadata.source_url for one in job.data} == {
        f"{site.url}{path}" for path in ("/slow", "/a", "/b")
    }
    errors = call("get_batch_scrape_errors", started.id)  # the async client gives a dict
    assert dict(errors)["errors"] == []


def test_n8_the_same_idempotency_key_begins_one_batch(server: Server, site: Site) -> None:
    site.page("/")
    client = Firecrawl(api_url=server.url)  # the other kind does not send the key
    first = client.start_batch_scrape([site.url], idempotency_key="once")
    again = client.start_batch_scrape([site.url], idempotency_key="once")  # its answer was lost

    assert again.id == first.id
    with pytest.raises(FirecrawlError) as refused:
        client.start_batch_scrape([f"{site.url}/other"], idempotency_key="once")
    assert refused.value.status_code == 409


def test_n8_the_same_idempotency_key_scrapes_a_page_once(server: Server, site: Site) -> None:
    site.page("/")
    headers = {"x-idempotency-key": "page"}
    answers = [
        httpx.post(f"{server.url}/v2/scrape", json={"url": url}, headers=headers, timeout=60)
        for url in (site.url, site.url, f"{site.url}/other")
    ]

    assert [one.status_code for one in answers] == [200, 200, 409]
    assert answers[0].json() == answers[1].json()
    assert site.hits["/"] == 1


def test_n8_a_site_is_mapped(call: Call, site: Site) -> None:
    site.page("/", links=["/a"])
    site.sitemap("/sitemap.xml", [f"{site.url}/from-the-sitemap"])

    links = call("map", site.url).links

    assert {one.url for one in links} == {
        f"{site.url}/",
        f"{site.url}/a",
        f"{site.url}/from-the-sitemap",
    }


def test_n8_a_map_is_of_what_lies_under_the_start(call: Call, server: Server, site: Site) -> None:
    site.page("/docs/", links=["/docs/a", "/other"])
    site.sitemap("/sitemap.xml", [f"{site.url}/docs/b", f"{site.url}/elsewhere"])

    links = call("map", f"{site.url}/docs/").links
    body = {
        "url": f"{site.url}/docs/",
        "filterByPath": False,
        "headers": {"X-Key": "hay"},
        "location": {"country": "DE", "languages": ["de-DE", "de"]},
    }
    all_ = httpx.post(f"{server.url}/v2/map", json=body, timeout=60).json()["links"]

    paths = {one.url.removeprefix(site.url) for one in links}
    assert paths == {"/docs/", "/docs/a", "/docs/b"}
    assert {one["url"].removeprefix(site.url) for one in all_} == {*paths, "/other", "/elsewhere"}
    assert site.headers["/sitemap.xml"]["X-Key"] == "hay"
    assert site.headers["/docs/"]["Accept-Language"] == "de-DE, de"


def test_n8_a_file_is_parsed(call: Call, server: Server, tmp_path: Path) -> None:
    page = (
        b"<html><title>Meadow</title><p>Hay lies in <b>rows</b>. <a href='/a'>More</a></p></html>"
    )
    (tmp_path / "notes.md").write_text("# Barn\n\nA roof.")

    document = call(
        "parse", page, filename="meadow.html", options=ParseOptions(formats=["markdown"])
    )
    notes = call("parse", tmp_path / "notes.md")

    assert "Hay lies in **rows**." in document.markdown
    assert (document.metadata.title, document.metadata.status_code) == ("Meadow", 200)
    assert document.metadata.source_url == "meadow.html"
    assert notes.markdown == "# Barn\n\nA roof."
    with pytest.raises(FirecrawlError) as refused:
        call("parse", b"%PDF-1.4 and nothing more", filename="broken.pdf")
    assert refused.value.status_code == 500
    picture = {"file": ("a.png", b"\x89PNG\r\n\x1a\n and nothing more", "image/png")}
    unsupported = httpx.post(f"{server.url}/v2/parse", files=picture, timeout=60)
    assert (unsupported.status_code, unsupported.json()["code"]) == (400, "UNSUPPORTED_FILE_TYPE")
    for options, said in (
        ('{"mobile": true}', "mobile"),
        ('{"formats": ["screenshot"]}', "screenshot"),
        ('{"colour": 1}', "Unrecognized key in body"),
        ("nonsense", "options"),
    ):
        files = {"file": ("a.txt", b"hay", "text/plain")}
        answer = httpx.post(
            f"{server.url}/v2/parse", files=files, data={"options": options}, timeout=60
        )
        assert (answer.status_code, said in answer.json()["error"]) == (400, True), answer.text
    assert httpx.post(f"{server.url}/v2/parse", json={}, timeout=60).status_code == 400


def test_n8_a_search_that_finds_nothing_says_where_it_looked(server: Server) -> None:
    body = {"query": "hay", "includeDomains": ["nowhere.test"]}
    answer = httpx.post(f"{server.url}/v2/search", json=body, timeout=60).json()
    assert answer["data"] == {"web": [], "news": [], "images": []}
    assert "index" in answer["warning"]


def test_n8_what_a_team_has_and_may_use(call: Call) -> None:
    assert call("get_queue_status").max_concurrency == 10
    assert call("get_concurrency").max_concurrency == 10
    assert call("get_credit_usage").remaining_credits > 0
    assert call("get_token_usage").remaining_tokens > 0


def test_n8_bad_requests_are_told_apart(call: Call, site: Site) -> None:
    with pytest.raises(BadRequestError, match="no regular expression"):
        call("start_crawl", site.url, include_paths=["("])
    with pytest.raises(BadRequestError, match="No valid URLs"):
        call("start_batch_scrape", ["http://[broken"])
    with pytest.raises(FirecrawlError) as missing:
        call("get_crawl_status", NOWHERE)
    assert missing.value.status_code == 404
    with pytest.raises(FirecrawlError) as missing:
        call("start_batch_scrape", [site.url], append_to_id=NOWHERE)
    assert missing.value.status_code == 404


def completed(job: Any) -> Any:
    return job if job.status == "completed" else None


def wait_for(look: Callable[[], Any], seconds: float = 60) -> Any:
    """What a look finds, once it finds something."""
    give_up_at = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < give_up_at, "nothing came"
        time.sleep(0.05)
    return found


async def test_n8_a_crawl_is_watched_to_its_end(server: Server, site: Site) -> None:
    site.generate(12, seconds=0.05)
    client = AsyncFirecrawl(api_url=server.url)
    started = await client.start_crawl(f"{site.url}/p/0", crawl_entire_domain=True, limit=12)

    address = f"{server.url}/v2/crawl/{started.id}".replace("http://", "ws://")
    async with websockets.connect(address, max_size=None) as socket:
        messages = [json.loads(message) async for message in socket]

    assert messages[0]["type"] == "catchup"
    assert messages[-1]["type"] == "done"
    assert (messages[-1]["data"]["completed"], messages[-1]["data"]["data"]) == (12, [])
    pushed = [one["data"] for one in messages if one["type"] == "document"]
    documents = messages[0]["data"]["data"] + pushed
    urls = [one["metadata"]["sourceURL"] for one in documents]
    assert len(urls) == len(set(urls)) == 12
    assert socket.close_code == 1000


def test_n8_the_clients_own_watcher_sees_the_end(server: Server, site: Site) -> None:
    site.page("/", links=["/a"])
    site.page("/a")
    client = Firecrawl(api_url=server.url)
    started = client.start_crawl(site.url)
    ended = threading.Event()
    watcher = client.watcher(started.id, kind="crawl", poll_interval=60)
    watcher.add_event_listener("done", lambda _: ended.set())

    watcher.start()

    assert ended.wait(60)
    assert {one["metadata"]["sourceURL"] for one in watcher.data} == {
        f"{site.url}/",
        f"{site.url}/a",
    }
    watcher.stop()


@pytest.mark.parametrize("kind", ["crawl", "batch"])
@pytest.mark.parametrize("milliseconds", [1010, 1300, 1600, 1900])
def test_n8_the_clients_own_watcher_gets_the_last_documents(
    server: Server, site: Site, kind: Any, milliseconds: int
) -> None:
    """It asks by GET when it hears nothing for its poll interval, and then leaves at the end."""
    paths = ["/", "/a", "/b"]
    site.page("/", links=paths)
    for path in paths[1:]:
        site.page(path, seconds=milliseconds / 1000)
    client = Firecrawl(api_url=server.url)
    urls = [f"{site.url}{path}" for path in paths]
    if kind == "crawl":
        started = client.start_crawl(site.url)
    else:
        started = client.start_batch_scrape(urls)
    seen: list[str] = []
    ended = threading.Event()
    watcher = client.watcher(started.id, kind=kind, poll_interval=1)
    watcher.add_event_listener(
        "document", lambda event: seen.append(event["data"]["metadata"]["sourceURL"])
    )
    watcher.add_event_listener("done", lambda _: ended.set())
    watcher.start()

    assert ended.wait(60)
    assert sorted(seen) == sorted(urls)
    assert {one["metadata"]["sourceURL"] for one in watcher.data} == set(urls)
    watcher.stop()


async def test_last_snapshot_of_the_clients_own_watcher_counts_all_pages(
    server: Server, site: Site
) -> None:
    site.page("/", links=["/a", "/b"])
    site.page("/a", seconds=0.3)
    site.page("/b", seconds=0.3)
    client = AsyncFirecrawl(api_url=server.url)
    started = await client.start_crawl(site.url)
    *_, last = [one async for one in client.watcher(started.id, kind="crawl", timeout=60)]

    assert (last.status, last.completed, last.total, len(last.data)) == ("completed", 3, 3, 3)


def test_n8_a_crawl_that_robots_txt_forbids_says_so(call: Call, server: Server, site: Site) -> None:
    site.robots("User-agent: *\nDisallow: /\n")
    site.page("/")
    job = call("crawl", url=site.url, poll_interval=1, timeout=60)

    assert (job.status, job.data) == ("completed", [])
    body = httpx.get(f"{server.url}/v2/crawl/{job.id}", timeout=60).json()
    assert f"robots.txt forbids {site.url}/" in body["warning"]
    assert site.hits["/"] == 0
    page = httpx.get(f"{server.url}/ui/runs/{job.id}", timeout=60).text
    assert f"robots.txt forbids {site.url}/" in page


def test_n8_a_page_that_answers_with_an_error_names_it(call: Call, site: Site) -> None:
    site.page("/broken", status=500)
    document = call("scrape", f"{site.url}/broken")

    assert (document.metadata.status_code, document.metadata.error) == (
        500,
        "Internal Server Error",
    )


def test_a_server_that_works_is_healthy_and_counts(server: Server, site: Site) -> None:
    site.page("/")
    Firecrawl(api_url=server.url).scrape(site.url)

    assert httpx.get(f"{server.url}/health", timeout=60).json() == {"status": "ok"}
    text = httpx.get(f"{server.url}/metrics", timeout=60).text
    assert 'windrow_jobs_claimed_total{kind="web.scrape",queue="web"}' in text
    assert 'windrow_queue_jobs{queue="web",state="completed"}' in text
