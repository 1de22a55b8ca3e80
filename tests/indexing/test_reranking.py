"""Results put in order by an endpoint, one that does as it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.indexing.helpers import Library
from windrow.errors import ConfigError
from windrow.search.request import SearchAnswer
from windrow.search.searcher import NO_RERANKER
from windrow.services.indexing import open_rerank
from windrow.settings import Settings

KEY = "rerank-key-0123456789"


class Endpoint:
    """Prefers pears; `status` and `places` make it answer otherwise."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.status = 200
        self.places: list[int] | None = None

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers.get("Authorization"))
        if self.status != 200:
            return web.json_response({"message": f"no {KEY}"}, status=self.status)
        texts = body["documents"]
        places = range(len(texts)) if self.places is None else self.places
        scores = [0.9 if place < len(texts) and "pear" in texts[place] else 0.1 for place in places]
        results = [
            {"index": place, "relevance_score": score}
            for place, score in zip(places, scores, strict=True)
        ]
        return web.json_response({"id": "x", "results": results})


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    endpoint = Endpoint()
    app = web.Application()
    app.router.add_post("/v1/rerank", endpoint.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield endpoint
    await runner.cleanup()


async def ask(library: Library, endpoint: Endpoint, **fields: Any) -> SearchAnswer:
    settings = Settings(rerank_url=endpoint.url, rerank_key=KEY, rerank_model="better")
    async with open_rerank(settings) as library.searcher._rerank:
        return await library.search("apple", rerank=True, **fields)


@pytest.fixture
async def fruit(library: Library) -> Library:
    await library.put("a.md", "apple apple")
    await library.put("b.md", "apple and a pear")
    await library.put("c.md", "apple and a plum")
    await library.work()
    return library


async def test_results_come_in_the_order_of_the_endpoint(
    fruit: Library, endpoint: Endpoint
) -> None:
    answer = await ask(fruit, endpoint, limit=1)

    assert [one.uri for one in answer.results] == ["b.md"], "more than are shown are looked at"
    assert (answer.is_reranked, answer.warning) == (True, None)
    [request] = endpoint.requests
    assert (request["query"], request["model"], request["top_n"]) == ("apple", "better", 3)
    assert endpoint.keys == [f"Bearer {KEY}"]


async def test_what_the_endpoint_does_not_name_comes_last(
    fruit: Library, endpoint: Endpoint
) -> None:
    before = [one.uri for one in (await fruit.search("apple")).results]
    endpoint.places = [2]

    found = [one.uri for one in (await ask(fruit, endpoint)).results]

    assert found == [before[2], before[0], before[1]]


@pytest.mark.parametrize("status", [401, 429, 503])
async def test_endpoint_that_refuses_leaves_the_order_of_the_index_and_is_told_of(
    fruit: Library, endpoint: Endpoint, status: int
) -> None:
    before = await fruit.search("apple")
    endpoint.status = status

    answer = await ask(fruit, endpoint)

    assert [one.uri for one in answer.results] == [one.uri for one in before.results]
    assert not answer.is_reranked
    assert "order of the index" in (answer.warning or "")
    assert KEY not in (answer.warning or "")


async def test_endpoint_that_names_other_texts_is_not_believed(
    fruit: Library, endpoint: Endpoint
) -> None:
    endpoint.places = [0, 7]

    answer = await ask(fruit, endpoint)

    assert not answer.is_reranked
    assert len(answer.results) == 3


async def test_without_an_endpoint_it_is_said_that_there_is_none(fruit: Library) -> None:
    answer = await fruit.search("apple", rerank=True)

    assert (answer.is_reranked, answer.warning) == (False, NO_RERANKER)
    assert len(answer.results) == 3


async def test_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="rerank_url"):
        async with open_rerank(Settings(rerank_url="example.com")):
            pass
