"""N14: webhooks as the client of Firecrawl asks for them, against `windrow serve`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from firecrawl import Firecrawl
from firecrawl.v2.types import WebhookConfig
from firecrawl.v2.utils.error_handler import BadRequestError

from tests.api.server import Server
from tests.web.receiver import SECRET, Receiver
from tests.web.site import Site


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("webhooks")
    with Server(folder, WINDROW_WEBHOOK_SECRET=SECRET) as server:
        yield server


def test_n14_the_clients_webhooks_are_told(server: Server, site: Site) -> None:
    site.page("/", links=["/a"])
    site.page("/a")
    client = Firecrawl(api_url=server.url)
    with Receiver() as receiver:
        hook = WebhookConfig(
            url=receiver.url, headers={"X-Own": "1"}, metadata={"a": "b"}, events=["page"]
        )
        crawl = client.start_crawl(site.url, webhook=hook)
        batch = client.start_batch_scrape([f"{site.url}/a"], webhook=receiver.url)
        receiver.wait_for(lambda: "batch_scrape.completed" in receiver.types)
        receiver.wait_for(lambda: len(receiver.of_type("crawl.page")) == 2)

    assert all(call.is_signed for call in receiver.calls)
    assert {call.body["id"] for call in receiver.calls} == {crawl.id, batch.id}
    first = receiver.of_type("crawl.page")[0]
    assert (first.headers["x-own"], first.body["metadata"]) == ("1", {"a": "b"})
    log = (server.folder / "serve.log").read_text()
    assert receiver.url not in log
    assert SECRET not in log


def test_n14_a_webhook_that_cannot_be_is_a_bad_request(server: Server, site: Site) -> None:
    client = Firecrawl(api_url=server.url)

    with pytest.raises(BadRequestError, match="cannot be set"):
        client.start_crawl(
            site.url,
            webhook=WebhookConfig(url="http://e.org", headers={"X-Firecrawl-Signature": "mine"}),
        )
    answer = httpx.post(
        f"{server.url}/v2/batch/scrape",
        json={"urls": [site.url], "webhook": "nonsense"},
        timeout=60,
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_REQUEST")
