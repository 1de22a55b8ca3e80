"""What a caller from elsewhere writes is never a path of the server: entrance by entrance.

MCP, whose server is a process of its own, is asked in `tests/mcp/test_http.py`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.trust.scorecard import record_input
from windrow import Queue
from windrow.api.app import create_app
from windrow.catalog import Catalog
from windrow.errors import InvalidOptions
from windrow.ingest.web.urls import normalise
from windrow.pipelines.knowledge.items import OPERATIONS
from windrow.services.knowledge import add, add_site
from windrow.settings import Settings
from windrow.web.site import create_site

WEB = {"web.crawl", "web.scrape", "web.map", "web.batch"}
KEYS = "writer=acme:write chief=acme:admin all=*:write root"
TOKEN = re.compile(r'name="token" value="([^"]+)"')


def spellings(path: Path) -> list[str]:
    """A file of this machine as somebody may write it who hopes to be taken for a neighbour."""
    up = "../" * 20
    written = [
        f"{scheme}{slashes}{place}"
        for scheme in ("HTTP:", "Https:", "http:", "FILE:", "file:", "ftp:", "")
        for slashes in ("//", "/", "")
        for place in (f"{up}{path}", str(path), f"localhost/{up}{path}", f"%2e%2e/{up}{path}")
    ]
    return [*written, "library:pytest", "~/.ssh", ".", ""]


class Place:
    """A server without a worker, and a file on its machine."""

    def __init__(self, queue: Queue, folder: Path) -> None:
        self.queue = queue
        self.secret = folder / "secret.md"
        self.secret.write_text("the cows come home at nine")
        self._settings = Settings(api_keys=KEYS, data_dir=str(folder))

    async def ask(self, path: str, body: Any, key: str = "writer") -> httpx.Response:
        app = create_app(self.queue, self._settings)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as http:
            return await http.post(path, json=body, headers={"Authorization": f"Bearer {key}"})

    async def fill_in(self, form: Mapping[str, str]) -> httpx.Response:
        """The dashboard's form, by somebody who has logged in."""
        app = create_site(self.queue, self._settings)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as http:
            await http.post("/ui/login", data={"key": "writer"})
            token = TOKEN.search((await http.get("/ui/add")).text)
            assert token is not None
            return await http.post("/ui/add", data={**form, "token": token[1]})

    async def check_is_refused(self, said: httpx.Response, given: str) -> None:
        """Or fetched, if it is an address of the web after all."""
        assert said.status_code < 500, (given, said.text)
        jobs, sources = await self.queue.list(), await Catalog(self.queue.database).sources.page()
        if said.status_code < 400:
            assert normalise(given), given
        assert {job.kind for job in jobs} <= WEB, given
        asked = [job.payload.get("urls") or [job.payload["url"]] for job in jobs]
        fetched = [*chain.from_iterable(asked), *(one.uri for one in sources)]
        assert [one for one in fetched if normalise(one) != one] == [], given
        assert {one.kind for one in sources} <= {"site"}, given


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        yield Place(queue, tmp_path)


async def test_knowledge_api_adds_no_file_of_the_server(place: Place) -> None:
    given = spellings(place.secret)
    for path in ("/knowledge-items/crawl", "/api/knowledge-items/crawl"):
        for url in given:
            said = await place.ask(path, {"url": url})
            await place.check_is_refused(said, url)
    record_input(
        "addresses that are paths of the server",
        given=2 * len(given),
        store="sqlite",
        note="with a tenant's key that may write",
    )


@pytest.mark.parametrize("key", ["all", "root"])
async def test_knowledge_api_adds_no_file_with_any_key(place: Place, key: str) -> None:
    for url in spellings(place.secret):
        said = await place.ask("/knowledge-items/crawl", {"url": url}, key)
        await place.check_is_refused(said, url)


async def test_dashboard_adds_no_file_of_the_server(place: Place) -> None:
    for url in ["HTTP://" + "../" * 20 + str(place.secret), str(place.secret), "library:pytest"]:
        said = await place.fill_in({"do": "site", "url": url})
        await place.check_is_refused(said, url)


@pytest.mark.parametrize("verb", ["scrape", "crawl", "map"])
async def test_v2_fetches_no_file_of_the_server(place: Place, verb: str) -> None:
    for url in spellings(place.secret):
        if "://" in url:  # all else is meant as the name of a host
            said = await place.ask(f"/v2/{verb}", {"url": url, "timeout": 100})
            await place.check_is_refused(said, url)


async def test_v2_batch_fetches_no_file_of_the_server(place: Place) -> None:
    for url in spellings(place.secret):
        said = await place.ask("/v2/batch/scrape", {"urls": [url]})
        await place.check_is_refused(said, url)


@pytest.mark.parametrize("key", ["writer", "chief", "all"])
async def test_only_an_operator_makes_items_that_read_files(place: Place, key: str) -> None:
    for kind in [f"{type}.{op}" for type, all_of in OPERATIONS.items() for op in all_of]:
        path = str(place.secret)
        payload = {"file_path": path, "folder_path": path, "project_root": path}
        job = {"kind": kind, "queue": "unified_queue", "payload": payload}
        for body in (job, {"jobs": [job]}):
            said = await place.ask("/queue/jobs", body, key)
            assert said.status_code == 400
            assert "admin's key of all tenants" in said.text
    assert await place.queue.list() == []


async def test_only_an_operator_makes_such_items_of_other_jobs(place: Place) -> None:
    begun = (await place.ask("/queue/jobs", {"kind": "mail"}, "all")).json()["job"]["id"]
    [job] = (await place.ask("/queue/claim", {"queues": ["default"]}, "all")).json()["jobs"]
    item = {"kind": "file.ingest", "payload": {"file_path": str(place.secret)}}
    done = {"lease": job["lease"], "then": [item]}

    assert (await place.ask(f"/queue/jobs/{begun}/complete", done, "all")).status_code == 400
    assert (await place.ask(f"/queue/jobs/{begun}/complete", done, "root")).status_code == 200
    assert [one.kind for one in await place.queue.list(state="ready")] == ["file.ingest"]


async def test_schemes_have_no_case_and_unknown_ones_are_said_to_be(place: Place) -> None:
    added = await add(place.queue, "HTTPS://Example.org/Docs")
    assert (added.source.kind, added.source.uri) == ("site", "https://example.org/Docs")
    for url in ("ftp://x", "FILE:///etc/hostname", "s3://bucket/key"):
        for way in (add, add_site):
            with pytest.raises(InvalidOptions, match="not supported: only addresses"):
                await way(place.queue, url)
