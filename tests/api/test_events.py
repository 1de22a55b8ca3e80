"""N14, A6: events as they happen, over HTTP: chosen, taken up again, each tenant's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.api.server import Server

KEYS = "acme=acme:write globex=globex:write root"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("events")
    with Server(folder, "--no-worker", WINDROW_API_KEYS=KEYS) as server:
        yield server


def ask(server: Server, key: str = "acme") -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=30)


def enqueue(client: httpx.Client, **job: Any) -> str:
    answer = client.post("/queue/jobs", json={"kind": "work", **job})
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["job"]["id"])


@contextmanager
def listening(client: httpx.Client, **query: Any) -> Iterator[Iterator[dict[str, str]]]:
    headers = {"Last-Event-ID": query.pop("last")} if "last" in query else {}
    with client.stream("GET", "/events", params=query, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        messages = parse(answer.iter_lines())
        if not headers:
            assert "data" not in next(messages)  # the place where it begins
        yield messages


def parse(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """Messages, as an EventSource takes them apart."""
    message: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line:
            message[name or "comment"] = value
        elif message:
            yield message
            message = {}


def test_n14_events_come_as_they_happen_and_go_on_where_they_were_left(server: Server) -> None:
    with ask(server) as client:
        with listening(client, queue="mine") as messages:
            enqueue(client, queue="others")
            first = enqueue(client, queue="mine")
            message = next(messages)
        second = enqueue(client, queue="mine")
        with listening(client, queue="mine", last=message["id"]) as messages:
            missed = next(messages)

    assert message["event"] == "job.created"
    assert json.loads(message["data"])["job"] == first
    assert json.loads(message["data"])["cursor"] == message["id"]
    assert json.loads(missed["data"])["job"] == second


def test_n14_one_job_and_one_type_can_be_chosen(server: Server) -> None:
    with ask(server) as client:
        job = enqueue(client, queue="chosen")
        enqueue(client, queue="chosen")
        with listening(client, job=job, type="job.finished") as messages:
            client.post(f"/queue/jobs/{job}/cancel", json={})
            data = json.loads(next(messages)["data"])

    assert (data["type"], data["job"], data["state"]) == ("job.finished", job, "cancelled")


def test_a6_a_tenant_hears_of_its_own_jobs_only(server: Server) -> None:
    with ask(server) as acme, ask(server, "globex") as globex, ask(server, "root") as root:
        with listening(acme) as own, listening(root, queue="secret") as all_:
            theirs = enqueue(globex, queue="secret")
            ours = enqueue(acme, queue="secret")
            assert json.loads(next(own)["data"])["job"] == ours
            assert [json.loads(next(all_)["data"])["job"] for _ in range(2)] == [theirs, ours]
        with listening(acme, last="0", queue="secret") as own:
            assert json.loads(next(own)["data"])["job"] == ours


def test_a_cursor_that_is_none_is_a_bad_request(server: Server) -> None:
    with ask(server) as client:
        for cursor in ("nonsense", "99999999"):
            answer = client.get("/events", headers={"Last-Event-ID": cursor})
            assert (answer.status_code, answer.json()["code"]) == (400, "BAD_REQUEST")


def test_n8_addresses_have_the_scheme_and_the_host_that_were_asked(server: Server) -> None:
    """Also behind a proxy on this machine, which tells them. (Here, where there are keys: without
    one only the names of this machine are served.)"""
    proxied = {"Host": "crawl.test", "X-Forwarded-Proto": "https"}
    body = {"urls": ["http://example.org"]}
    with ask(server) as client:
        plain = client.post("/v2/batch/scrape", json=body).json()
        asked = client.post("/v2/batch/scrape", json=body, headers=proxied).json()
        status = client.get(f"/v2/batch/scrape/{asked['id']}?limit=1", headers=proxied).json()

    assert plain["url"] == f"{server.url}/v2/batch/scrape/{plain['id']}"
    assert asked["url"] == f"https://crawl.test/v2/batch/scrape/{asked['id']}"
    assert status["next"] == f"{asked['url']}?skip=0&limit=1"


def test_listeners_do_not_keep_a_server_from_stopping(server: Server) -> None:
    with ask(server) as client, listening(client) as messages:
        assert server.stop() == 0
        assert list(messages) == []
