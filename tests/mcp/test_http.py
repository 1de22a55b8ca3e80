"""`windrow mcp --http` beside `windrow serve`, which owns the index, with keys of two tenants."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.testclient import TestClient

from tests.api.server import Server
from tests.mcp.session import Session
from windrow.mcp.http import create_app
from windrow.queue.queue import Queue
from windrow.settings import Settings

KEYS = "boss reader=acme:read writer=acme:write other=globex:write"
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
PAGE = b"<html><title>Reeds</title><body><h1>Reeds</h1><p>Reeds grow at the lake of Constance.</p>"


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mcp-http")
    data = {"WINDROW_DATA_DIR": str(folder / "data"), "WINDROW_API_KEYS": KEYS}
    with Server(folder, **data) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "windrow", "mcp", "--http", "127.0.0.1:0"],
            env={**os.environ, **data, "WINDROW_DATABASE_URL": server.database},
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        yield found[0]
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()


@pytest.fixture(scope="module")
def connect(url: str) -> Iterator[Callable[[str], Session]]:
    with ExitStack() as stack:
        known: dict[str, Session] = {}

        def connect(key: str) -> Session:
            if key not in known:
                client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60)
                transport = streamable_http_client(url, http_client=client)
                known[key] = stack.enter_context(Session(transport))
            return known[key]

        yield connect


@pytest.fixture
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_page_that_a_tenant_added_is_found_by_it_and_by_no_other(
    connect: Callable[[str], Session], site: str
) -> None:
    added = connect("writer").call("add_source", what=site, is_page=True, wait_seconds=60)

    assert added["is_searchable"]
    for key in ("writer", "reader", "boss"):
        found = connect(key).call("search", query="where do reeds grow")["results"]
        assert [one["uri"] for one in found] == [site]
    document = found[0]["document"]
    assert "Constance" in connect("reader").call("read_document", document=document)["text"]

    other = connect("other")
    assert other.call("search", query="where do reeds grow")["results"] == []
    assert other.call("list_sources") == {"sources": [], "total": 0}
    assert "there is none" in other.fail("read_document", document=document)
    assert "there is none" in other.fail("read_document", document=site)
    assert "no source" in other.fail("search", query="reeds", source=added["source"]["id"])
    other.fail("job_status", job=added["job"])
    assert other.call("queue_status") == {"queues": [], "workers": None, "running": []}
    assert connect("reader").call("job_status", job=added["job"])["state"] == "completed"


def test_key_that_may_only_read_adds_nothing(connect: Callable[[str], Session]) -> None:
    assert "role write" in connect("reader").fail("add_source", text="a note")


async def test_address_in_capitals_is_an_address_and_never_a_path(
    connect: Callable[[str], Session], site: str
) -> None:
    writer = connect("writer")
    said = writer.fail("add_source", what="HTTP://../../../../../../etc/hostname")
    assert "is no address of the web" in said
    added = writer.call("add_source", what=site.upper(), is_page=True, wait_seconds=0)
    assert added["source"]["uri"].lower() == site
    assert added["source"]["kind"] == "page"


@pytest.mark.parametrize("what", ["/etc/hostname", "library:mcp", "file:///etc/hostname", "~/.ssh"])
def test_tenant_cannot_add_what_is_on_the_server(
    connect: Callable[[str], Session], what: str
) -> None:
    assert "only URLs and texts" in connect("writer").fail("add_source", what=what)


def test_folder_of_the_server_is_added_by_an_admin_of_all(
    connect: Callable[[str], Session], tmp_path: Path
) -> None:
    (tmp_path / "hay.md").write_text("# Hay\n\nIt lies in windrows.\n")
    added = connect("boss").call("add_source", what=str(tmp_path), wait_seconds=60)
    assert added["is_searchable"]
    assert added["source"]["documents"] == 1


async def test_client_that_shakes_hands_as_before_is_served(url: str) -> None:
    client = httpx2.AsyncClient(headers={"Authorization": "Bearer reader"})
    transport = streamable_http_client(url, http_client=client)
    async with Client(transport, mode="legacy") as old:
        assert len((await old.list_tools()).tools) == 6


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer boss", "Origin": "https://evil.example"}, 403),
    ],
)
def test_request_without_a_good_key_or_from_another_site_is_refused(
    url: str, headers: dict[str, str], status: int
) -> None:
    answer = httpx2.post(url, json=HELLO, headers={**ACCEPT, **headers})
    assert answer.status_code == status
    assert answer.json()["success"] is False


async def test_every_way_in_asks_for_a_key(sqlite_template: Path, tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.write_bytes(sqlite_template.read_bytes())
    settings = Settings(
        database_url=f"sqlite:///{path}", data_dir=str(tmp_path / "data"), api_keys=KEYS
    )
    async with Queue.open(settings.database_url) as queue:
        app = create_app(queue, settings)
        ways = {getattr(route, "path", "") for route in app.routes}
        with TestClient(app, client=("127.0.0.1", 50_000)) as http:
            answers = [
                http.request(method, path, headers={"Host": "localhost", **ACCEPT, **headers})
                for path in ways
                for method in ("GET", "POST", "DELETE", "PUT")
                for headers in ({}, {"Authorization": "Bearer wrong"}, {"Origin": "http://["})
            ]
    assert ways == {"/mcp"}
    assert {one.status_code for one in answers} <= {401, 403, 405}


@pytest.mark.parametrize(
    ("client", "headers", "status"),
    [
        ("127.0.0.1", {"Host": "127.0.0.1:8051"}, 200),
        ("127.0.0.1", {"Host": "localhost", "Origin": "http://localhost:5173"}, 200),
        ("127.0.0.1", {"Host": "rebound.example"}, 403),
        ("127.0.0.1", {"Host": "localhost", "Origin": "https://evil.example"}, 403),
        ("192.0.2.7", {"Host": "localhost"}, 403),
    ],
)
async def test_without_keys_only_this_machine_is_served_under_its_own_name(
    sqlite_template: Path, tmp_path: Path, client: str, headers: dict[str, str], status: int
) -> None:
    path = tmp_path / "jobs.db"
    path.write_bytes(sqlite_template.read_bytes())
    settings = Settings(database_url=f"sqlite:///{path}", data_dir=str(tmp_path / "data"))
    async with Queue.open(settings.database_url) as queue:
        with TestClient(create_app(queue, settings), client=(client, 50_000)) as http:
            answer = http.post("/mcp", json=HELLO, headers={**ACCEPT, **headers})
    assert answer.status_code == status
