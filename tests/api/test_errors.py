"""What goes wrong has a status, a code and words, and no stack trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from windrow import Queue, errors
from windrow.api import bodies
from windrow.api.app import create_app
from windrow.api.errors import INTERNAL, to_api_error
from windrow.settings import Settings


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        app = create_app(queue, Settings())

        @app.get("/broken")
        async def broken() -> None:
            raise RuntimeError("a secret of the inside")

        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield client


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/v2/scrape", {}, "url: Required"),
        ("/v2/scrape", {"url": 5}, "url: Expected `str`"),
        ("/v2/scrape", {"url": "ftp://example.org"}, "no address of the web"),
        ("/v2/scrape", {"url": "http://e.org", "colour": 1}, "Unrecognized key in body"),
        ("/v2/scrape", {"url": "http://e.org", "timeout": "soon"}, "timeout"),
        ("/v2/scrape", {"url": "http://e.org", "formats": ["nonsense"]}, "Invalid enum value"),
        ("/v2/crawl", {"url": "http://e.org", "colour": 1}, "Unrecognized key in body"),
        ("/v2/crawl", {"url": "http://e.org", "limit": 0}, "limit must be at least 1"),
        ("/v2/crawl", {"url": "http://e.org", "scrapeOptions": 1}, "scrapeOptions"),
        ("/v2/crawl", {"url": "http://e.org", "prompt": 1}, "prompt"),
        ("/v2/crawl/params-preview", {"url": "http://e.org"}, "prompt: Required"),
        ("/v2/extract", {"prompt": "all"}, "urls"),
        ("/v2/extract", {"urls": ["http://e.org"], "colour": 1}, "Unrecognized key in body"),
        ("/v2/extract", {"urls": ["http://e.org"], "agent": {}}, "agent"),
        ("/v2/crawl", {"url": "http://e.org", "webhook": 5}, "webhook"),
        ("/v2/map", {"url": "http://e.org", "colour": 1}, "Unrecognized key in body"),
        ("/v2/map", {"url": "http://e.org", "timeout": 1.5}, "timeout"),
        ("/v2/batch/scrape", {}, "urls"),
        ("/v2/batch/scrape", {"urls": "http://e.org"}, "urls"),
        ("/v2/batch/scrape", {"urls": [1]}, "urls"),
        ("/v2/batch/scrape", {"urls": ["nonsense"]}, "No valid URLs provided"),
        ("/v2/batch/scrape", {"urls": ["http://e.org"], "appendToId": "x"}, "appendToId"),
        ("/v2/batch/scrape", {"urls": ["http://e.org"], "maxConcurrency": 0}, "maxConcurrency"),
        ("/v2/batch/scrape", {"urls": ["http://e.org"], "maxConcurrency": True}, "maxConcurrency"),
        ("/v2/search", {}, "query: Required"),
        ("/v2/search", {"query": "hay", "limit": 101}, "limit must be from 1 to 100"),
        ("/v2/search", {"query": "hay", "colour": 1}, "Unrecognized key in body"),
        ("/v2/scrape", [], "JSON object"),
    ],
)
async def test_a_bad_body_is_told_what_is_wrong(
    client: httpx.AsyncClient, path: str, body: Any, said: str
) -> None:
    answer = await client.post(path, json=body)

    assert answer.status_code == 400
    assert answer.json()["success"] is False
    assert answer.json()["code"] == "BAD_REQUEST"
    assert said in answer.json()["error"]
    assert said in answer.json()["details"][0]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"url": "\xff"}', b"nonsense"])
async def test_what_is_no_json_is_told_so(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post("/v2/scrape", content=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_REQUEST_INVALID_JSON")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/crawl/nonsense", 400),
        ("GET", "/v2/crawl/01999999-0000-7000-8000-000000000000", 404),
        ("GET", "/v2/crawl/01999999-0000-7000-8000-000000000000?skip=-1", 400),
        ("GET", "/v2/crawl/01999999-0000-7000-8000-000000000000/errors", 404),
        ("DELETE", "/v2/batch/scrape/01999999-0000-7000-8000-000000000000", 404),
        ("GET", "/v2/scrape/01999999-0000-7000-8000-000000000000", 404),
        ("GET", "/v2/nowhere", 404),
        ("PUT", "/v2/scrape", 405),
    ],
)
async def test_what_is_not_there_has_a_status(
    client: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    answer = await client.request(method, path)

    assert answer.status_code == status
    assert answer.json()["success"] is False


async def test_a_body_that_is_too_large_is_refused(client: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b" " * 1024 * 1024

    told = await client.post("/v2/scrape", content=b" " * (10 * 1024 * 1024 + 1))
    untold = await client.post("/v2/scrape", content=endless())

    assert (told.status_code, untold.status_code) == (413, 413)


async def test_a_body_that_does_not_come_is_not_waited_for(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stuck() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.05)

    answer = await client.post("/v2/scrape", content=stuck())

    assert (answer.status_code, answer.json()["code"]) == (408, "REQUEST_TIMEOUT")


async def test_an_error_of_the_inside_stays_inside(client: httpx.AsyncClient) -> None:
    answer = await client.get("/broken")

    assert answer.status_code == 500
    assert answer.json() == {"success": False, "code": "UNKNOWN_ERROR", "error": INTERNAL}


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.QueueFull("web", 5, 5), 429, "QUEUE_FULL"),
        (errors.GroupEnded("x"), 409, "CONFLICT"),
        (errors.PayloadTooLarge(), 413, "PAYLOAD_TOO_LARGE"),
        (errors.StoreUnavailable("postgresql://user:password@host"), 503, "STORE_ERROR"),
        (errors.FetchTimeout("http://e.org", "slow"), 408, "SCRAPE_TIMEOUT"),
        (errors.Blocked("http://e.org", "private"), 403, "SCRAPE_FORBIDDEN_TARGET"),
        (errors.ConversionError("application/pdf", "broken"), 500, "SCRAPE_CONVERSION_ERROR"),
        (errors.LeaseLost("x"), 409, "LEASE_LOST"),
        (errors.ScheduleNotFound("x"), 404, "NOT_FOUND"),
        (errors.HandlerTimeout(5), 500, "UNKNOWN_ERROR"),
    ],
)
def test_each_error_has_a_status(error: errors.WindrowError, status: int, code: str) -> None:
    made = to_api_error(error)

    assert (made.status, made.body["code"]) == (status, code)
    assert "password" not in made.body["error"]


async def test_a_page_of_another_site_cannot_use_a_server_without_keys(
    client: httpx.AsyncClient,
) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        answer = await client.get("/v2/crawl/active", headers=headers)
        assert answer.status_code == 403

    assert (await client.get("/v2/crawl/active")).status_code == 200
