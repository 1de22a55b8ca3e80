"""Searching while the server runs: over HTTP as Firecrawl's clients do, and by the command."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from tests.api.server import Server
from tests.indexing.helpers import Library
from windrow.cli.main import app
from windrow.queue.queue import Queue

PAGES = {
    "https://farm.test/hay": "# Hay\n\n## Windrows\n\nA windrow is a long row of cut hay.",
    "https://docs.farm.test/bales": "# Bales\n\nThe baler picks hay up and ties it into bales.",
    "https://cats.test/": "# Cats\n\nCats sleep most of the day in the hay.",
}


@pytest.fixture(scope="module")
def ingested(server: Server) -> None:
    asyncio.run(ingest(server))


async def ingest(server: Server) -> None:
    async with Queue.open(server.database) as queue:
        library = Library(queue, None)  # type: ignore[arg-type]
        for url, text in PAGES.items():
            title = "The baler" if "bales" in url else text.split("\n")[0][2:]
            await library.put(url, text, title=title, tags=("farm",))
        for job in await queue.list(kind="index.write"):
            await queue.wait(job.id, timeout=60)


@pytest.fixture
def client(server: Server, ingested: None) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def asked(client: httpx.Client, **body: Any) -> list[dict[str, Any]]:
    answered = client.post("/v2/search", json=body)
    assert answered.status_code == 200, answered.text
    said = answered.json()
    assert said["success"] is True
    found: list[dict[str, Any]] = said["data"]["web"]
    return found


def test_n8_search_answers_from_what_was_ingested(client: httpx.Client) -> None:
    first, *_ = asked(client, query="row of cut hay")
    assert first["url"] == "https://farm.test/hay"
    assert (first["title"], first["position"]) == ("Hay", 1)
    assert "windrow" in first["description"]
    assert "markdown" not in first

    [only] = asked(client, query="hay", limit=1, scrapeOptions={"formats": ["markdown"]})
    assert "hay" in only["markdown"]


def test_n8_domains_are_chosen_or_left_out(client: httpx.Client) -> None:
    inside = {one["url"] for one in asked(client, query="hay", includeDomains=["farm.test"])}
    assert inside == {"https://farm.test/hay", "https://docs.farm.test/bales"}
    outside = asked(client, query="hay", excludeDomains=["farm.test"])
    assert [one["url"] for one in outside] == ["https://cats.test/"]
    both = {"query": "hay", "includeDomains": ["a"], "excludeDomains": ["b"]}
    assert client.post("/v2/search", json=both).status_code == 400
    assert client.post("/v2/search", json={"query": "x", "sources": ["tv"]}).status_code == 400


def windrow(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"WINDROW_DATABASE_URL": server.database, "NO_COLOR": "1"}
    result = CliRunner().invoke(app, ["search", *words], env=environment)
    return subprocess.CompletedProcess(words, result.exit_code, result.stdout, result.stderr)


def test_windrow_search_works_while_the_server_runs(server: Server, ingested: None) -> None:
    printed = windrow(server, "row", "of", "cut", "hay", "-n", "2")
    assert printed.returncode == 0, printed.stderr
    assert "1. Hay" in printed.stdout
    assert "https://farm.test/hay" in printed.stdout
    assert "\n   Hay\n" not in printed.stdout, "a heading that only repeats the title"
    assert "semantic #1, keyword #1" in printed.stdout
    bales = windrow(server, "ties it into", "-m", "exact").stdout
    assert "\n   Bales\n" in bales, "the way there through its headings"

    found = json.loads(windrow(server, "cats", "--mode", "keyword", "--json").stdout)
    [cat] = found["results"]
    assert (cat["uri"], cat["why"], cat["tags"]) == ("https://cats.test/", {"keyword": 1}, ["farm"])
    exact = json.loads(windrow(server, "ties it into", "-m", "exact", "--json").stdout)
    assert [one["uri"] for one in exact["results"]] == ["https://docs.farm.test/bales"]
    chosen = json.loads(windrow(server, "hay", "--path", "https://*.farm.test/**", "--json").stdout)
    assert [one["uri"] for one in chosen["results"]] == ["https://docs.farm.test/bales"]
    assert "Nothing was found" in windrow(server, "hay", "--tag", "other").stdout
    late = windrow(server, "hay", "--since", "2020-01-01")
    assert "Nothing was found" in late.stdout, "these documents have no date"


def test_what_cannot_be_searched_for_is_said_and_is_misuse(server: Server) -> None:
    for words in (["  "], ["hay", "--mode", "magic"], ["hay", "--since", "yesterday"]):
        refused = windrow(server, *words)
        assert refused.returncode == 2
        assert refused.stderr.startswith("error: ")
