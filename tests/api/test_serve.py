"""`windrow serve`: from its start to its end, and after a sudden one."""

from __future__ import annotations

import asyncio
import inspect
import logging
import resource
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from firecrawl import AsyncFirecrawl, Firecrawl
from typer.testing import CliRunner

from tests.api.server import Server
from tests.conftest import MakeDatabase
from tests.web.site import Site
from windrow import Queue
from windrow.cli.main import app
from windrow.services import serving
from windrow.services.serving import raise_open_files

PAGES = 40


def test_a_batch_goes_on_where_the_server_was_stopped(tmp_path: Path, site: Site) -> None:
    with Server(tmp_path) as server:
        batch = start_batch(server, site)
        assert server.stop() == 0
        server.start()
        assert until(batch, "completed", PAGES)["total"] == PAGES
    assert max(site.hits.values()) == 1


@pytest.mark.chaos  # the jobs of a killed worker wait for its leases to end
def test_a_batch_goes_on_where_the_server_was_killed(tmp_path: Path, site: Site) -> None:
    with Server(tmp_path) as server:
        batch = start_batch(server, site)
        server.kill()
        server.start()
        assert until(batch, "completed", PAGES, seconds=120)["total"] == PAGES


@pytest.mark.chaos  # the jobs of a killed worker wait for its leases to end
@pytest.mark.parametrize("kind", [Firecrawl, AsyncFirecrawl])
def test_n10_a_client_gets_the_crawl_of_a_server_that_was_killed(
    kind: type, tmp_path: Path, site: Site
) -> None:
    start = site.generate(PAGES, seconds=0.1)
    with Server(tmp_path) as server:
        client = kind(api_url=server.url)

        def call(name: str, *args: Any, **options: Any) -> Any:
            made = getattr(client, name)(*args, **options)
            return asyncio.run(made) if inspect.iscoroutine(made) else made

        started = call("start_crawl", start, limit=PAGES, crawl_entire_domain=True)
        until(started.url, "completed", 1)
        server.kill()
        server.start()
        until(started.url, "completed", PAGES, seconds=120)

        crawl = call("get_crawl_status", started.id)
        assert crawl.status == "completed"
        urls = [one.metadata.source_url for one in crawl.data]
        assert len(urls) == len(set(urls)) == PAGES
        assert call("get_crawl_errors", started.id).errors == []
        assert call("cancel_crawl", started.id) is False


async def test_n10_workers_in_processes_of_their_own_on_postgres(
    tmp_path: Path, site: Site, make_database: MakeDatabase
) -> None:
    url = make_database()
    async with Queue.open(url, migrate=True):
        pass
    start = site.generate(10)
    with Server(tmp_path, "--workers", "2", WINDROW_DATABASE_URL=url) as server:
        client = Firecrawl(api_url=server.url)
        started = client.start_crawl(start, limit=10, crawl_entire_domain=True)
        assert until(started.url, "completed", 10)["total"] == 10
        assert client.get_concurrency().max_concurrency >= 10
        assert server.stop() == 0
    async with Queue.open(url) as queue:
        assert await queue.workers() == []


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::"])
def test_without_a_key_only_loopback_is_served(host: str, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'jobs.db'}"
    refused = CliRunner().invoke(app, ["serve", "--host", host, "-d", database])

    assert refused.exit_code == 2
    assert "only this machine is served" in refused.stderr


def start_batch(server: Server, site: Site) -> str:
    """A batch of which some pages are done; its address."""
    site.generate(PAGES, seconds=0.1)
    body = {"urls": [f"{site.url}/p/{number}" for number in range(PAGES)]}
    batch = httpx.post(f"{server.url}/v2/batch/scrape", json=body, timeout=60).json()
    until(batch["url"], "completed", 1)
    return str(batch["url"])


def until(url: str, name: str, count: int, seconds: float = 60) -> dict:
    give_up_at = time.monotonic() + seconds
    while (status := httpx.get(url, timeout=seconds).json())[name] < count:
        assert time.monotonic() < give_up_at, status
        time.sleep(0.05)
    return status


def test_server_takes_as_many_open_files_as_it_may() -> None:
    """Found with 5,000 listeners: past the usual 1,024 connections were reset."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, most), most))
    try:
        raise_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))


def test_what_the_server_logs_is_told_under_our_name(caplog: pytest.LogCaptureFixture) -> None:
    serving._make_server(object(), lambda: None)
    with caplog.at_level(logging.INFO):
        logging.getLogger("uvicorn.error").info("Started server process")
    assert [record.name for record in caplog.records] == ["windrow.services.serving"]
