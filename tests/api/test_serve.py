"""`windrow serve`: from its start to its end, and after a sudden one."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tests.api.server import Server
from tests.web.site import Site
from windrow.cli.main import app

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
    batch = httpx.post(f"{server.url}/v2/batch/scrape", json=body).json()
    until(batch["url"], "completed", 1)
    return str(batch["url"])


def until(url: str, name: str, count: int, seconds: float = 60) -> dict:
    give_up_at = time.monotonic() + seconds
    while (status := httpx.get(url).json())[name] < count:
        assert time.monotonic() < give_up_at, status
        time.sleep(0.05)
    return status
