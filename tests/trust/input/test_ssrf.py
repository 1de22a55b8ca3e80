"""Wherever a URL is taken, nothing private is connected to: entrance by entrance, every spelling.

`tests/ingest/fetch/test_guard.py` asks the fetcher itself; here the ways that lead to it are gone.
What counts is which addresses somebody tried to connect to.
"""

from __future__ import annotations

import random
import re
import socket
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ingest.fetch.tricky import NAMES, NO_URLS, PUBLIC, REFUSED, answer
from tests.trust.input.fuzzing import bend
from tests.trust.scorecard import record_input
from tests.web.site import Site, SiteServer
from windrow import Queue, Worker
from windrow.errors import FetchError, InvalidOptions, WindrowError
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.guard import Guard
from windrow.ingest.web.urls import normalise
from windrow.pipelines.video.looking import Videos, look_at
from windrow.pipelines.web.handlers import web_handlers
from windrow.pipelines.webhooks.sending import make_handlers
from windrow.queue.job import JobState
from windrow.services import knowledge
from windrow.services.web import check_webhook, start_batch, start_crawl, start_map, start_scrape
from windrow.settings import Settings

SOURCE = Path(__file__).parents[3] / "src" / "windrow"
TRICKY = [*REFUSED, *NO_URLS]
# Whoever else opens connections goes where the operator said, by a setting: models, indexes,
# providers, another server of ours. No address of a job or a request comes there.
BY_SETTING = {
    "index/embed/endpoint.py",
    "index/qdrant.py",
    "ingest/artifacts/bucket.py",
    "ingest/enrich/llm.py",
    "ingest/providers.py",
    "services/distant.py",
}
CLIENTS = re.compile(
    r"^ *(?:from|import) (?:aiohttp|boto3|http\.client|httpx|qdrant_client|requests|urllib\.req)",
    re.MULTILINE,
)


@pytest.fixture(autouse=True)
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The addresses that something tried to connect to; names are answered for as in NAMES."""
    tried: list[Any] = []
    connect = BaseSelectorEventLoop.sock_connect

    async def watched(loop: BaseSelectorEventLoop, sock: socket.socket, address: Any) -> None:
        tried.append(address)
        await connect(loop, sock, address)

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_connect", watched)
    monkeypatch.setattr("windrow.ingest.fetch.resolver._look_up", answer)
    return tried


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[Queue]:
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        yield queue


async def work(queue: Queue, guard: Guard | None = None) -> None:
    async with (
        Fetcher(guard=guard) as fetcher,
        web_handlers(queue, fetcher=fetcher) as handlers,
    ):
        hooks = make_handlers(queue, fetcher, "secret")
        await Worker(queue, [*handlers, *hooks], concurrency=20).run(until_idle=True)


async def test_pages_crawls_maps_and_sources_of_private_networks_fail(
    queue: Queue, connections: list[Any]
) -> None:
    assert len(TRICKY) >= 150
    refused = 0
    jobs = []
    for number, url in enumerate(TRICKY):
        starts: list[Any] = [start_scrape]
        if number % 16 == 0:  # the same check of the same address: some are enough
            starts += [start_crawl, start_map, add_site]
        for start in starts:
            try:
                made = await start(queue, url)
            except WindrowError:
                refused += 1
            else:
                jobs.append(made if isinstance(made, str) else made.id)
    batch = await start_batch(queue, TRICKY)
    await work(queue)

    assert connections == []
    assert refused >= len(NO_URLS) - 10
    for job in (await queue.get_many(jobs)).values():
        links = (job.result or {}).get("links", [])
        assert job.state == JobState.FAILED or links == [] or job.kind == "web.map", job
        assert "SCRAPE_" in (job.error or "SCRAPE_"), job.error
    pages = await queue.list(group=batch.id, limit=500)
    assert {page.state for page in pages if page.kind == "web.scrape"} == {JobState.FAILED}
    record_input(
        "addresses that lead into private networks",
        given=len(TRICKY),
        store="sqlite",
        note="pages, crawls, maps and sources: no connection was tried",
    )


async def add_site(queue: Queue, url: str) -> str:
    return (await knowledge.add(queue, url, knowledge.AddOptions())).job_id


def test_webhooks_into_private_networks_are_refused_before_anything_begins() -> None:
    settings = Settings()
    for url in TRICKY:
        if not any(name in url.lower() for name in NAMES):
            with pytest.raises(InvalidOptions):
                check_webhook(settings, {"url": url})
    for url in PUBLIC:
        check_webhook(settings, {"url": url})


async def test_webhooks_whose_names_lead_there_are_not_told(
    queue: Queue, connections: list[Any]
) -> None:
    """Public when it was checked, private when it is told."""
    for name in ("loop.example", "meta.example", "both.example"):
        await start_crawl(queue, "http://loop6.example/", webhook=f"http://{name}/hook")
    await work(queue)
    told = await queue.list(kind="webhook.deliver", limit=50)

    assert told
    assert {job.state for job in told} == {JobState.FAILED}
    assert connections == []


async def test_videos_of_private_networks_are_not_fetched(
    queue: Queue, connections: list[Any], tmp_path: Path
) -> None:
    async def step(name: str, do: Any, *arguments: Any) -> Any:
        return await do(*arguments)

    job: Any = SimpleNamespace(step=step)
    async with Fetcher() as fetcher:
        videos = Videos(queue, tmp_path, fetcher=fetcher)
        for url in [*TRICKY, "file:///etc/passwd", f"file://{tmp_path}/../x", "/etc/hostname"]:
            with pytest.raises(WindrowError):
                await look_at(videos, url, job)
    assert connections == []


@pytest.fixture(scope="module")
def site_server() -> Any:
    with SiteServer() as server:
        yield server


async def test_what_a_site_says_of_itself_leads_nowhere_private(
    queue: Queue, site_server: SiteServer, connections: list[Any]
) -> None:
    """Its robots.txt, sitemaps, links, redirects and canonical addresses; the site may be fetched,
    by its name alone."""
    site: Site = site_server.site()
    inside = site_server.site()
    inside.page("/secret", text="secret " * 50)
    inside.page("/sitemap.xml", text="secret")
    secret = inside.url.replace("127.0.0.1", "loop.example")
    here = f"http://good.example:{site.port}"
    locations = [
        f"{secret}/secret",
        f"{inside.url}/secret",
        "http://169.254.169.254/",
        *REFUSED[:9],
    ]
    site.robots(
        f"User-agent: *\nAllow: /\nSitemap: {inside.url}/sitemap.xml\nSitemap: {here}/s.xml\n"
        f"Sitemap: {here}/index.xml\n"
    )
    site.sitemap("/s.xml", [f"{here}/a", *locations])
    site.sitemap("/index.xml", locations, kind="sitemap")
    head = f'<link rel="canonical" href="{inside.url}/secret"><base href="{inside.url}/">'
    site.page("/", links=["/a", "/to", *locations], text="welcome " * 50)
    site.page("/a", text="another " * 50, head=head, links=["/secret"])
    site.redirect("/to", f"{inside.url}/secret")
    options = {"allowExternalLinks": True, "sitemap": "include", "limit": 50}
    crawl = await start_crawl(queue, f"{here}/", options)
    mapped = await start_map(queue, f"{here}/", {"sitemap": "include"})
    await work(queue, Guard(allow=["good.example"]))

    assert {port for _, port, *_ in connections} == {site.port}
    assert not inside.hits
    assert site.hits["/"] >= 1
    assert site.hits["/to"] >= 1
    assert site.hits["/s.xml"] >= 1
    pages = await queue.list(group=crawl, limit=100)
    kept = [page.payload["url"] for page in pages if page.state == JobState.COMPLETED]
    assert [url for url in kept if not url.startswith(here)] == []
    assert (await queue.get(mapped.id)).state == JobState.COMPLETED


def check_bent_addresses(seeds: range) -> int:
    """How many of them were taken."""
    guard, taken = Guard(), 0
    for seed in seeds:
        chance = random.Random(seed)
        url = bend(chance.choice([*TRICKY, *PUBLIC]).encode(), chance)[:300]
        text = url.decode("utf-8", "surrogateescape")
        with suppress(FetchError):
            guard.check_url(text)
        made = normalise(text, "https://example.org/a/")
        assert made is None or normalise(made) == made, seed
        taken += made is not None
    return taken


def test_addresses_that_are_bent_are_taken_or_refused() -> None:
    check_bent_addresses(range(1000))


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_very_many_addresses_that_are_bent_are_taken_or_refused() -> None:
    seeds = range(10_000, 300_000)
    record_input("addresses that are bent", given=len(seeds), taken=check_bent_addresses(seeds))


def test_nobody_else_opens_connections() -> None:
    """A module that asks the web by itself would have to have a guard of its own."""
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if CLIENTS.search(path.read_text())
    }
    assert {one for one in found if not one.startswith("ingest/fetch/")} == BY_SETTING
