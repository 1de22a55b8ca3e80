"""An OpenAI-compatible endpoint: what it is asked, and what becomes of all that can go wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from tests.unit.index.embeddings_server import DIMENSION, EmbeddingsServer, refuse, running
from windrow.errors import (
    ConfigError,
    EmbedderUnavailable,
    EmbeddingError,
    EmbeddingRefused,
    MissingExtra,
    RateLimited,
)
from windrow.index.embed import endpoint, open_embedder
from windrow.index.embed.endpoint import EndpointEmbedder
from windrow.settings import Settings

KEY = "sk-very-secret"


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with running() as server:
        yield server


@pytest.fixture
async def embedder(server: EmbeddingsServer) -> AsyncIterator[EndpointEmbedder]:
    async with EndpointEmbedder(server.url, "small", KEY, dimension=DIMENSION) as embedder:
        yield embedder


def lengths(rows: Any) -> list[int]:
    """The lengths of the texts that these are the vectors of: the second number was 1."""
    return [round(float(row[0] / row[1])) for row in rows]


async def test_texts_come_back_as_rows_of_length_one_in_their_order(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    rows = await embedder.embed(["aaa", "b", "cc", ""])

    assert lengths(rows) == [3, 1, 2, 1]  # an empty text is refused by some: it is sent as a space
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert (await embedder.embed([])).shape == (0, DIMENSION)
    [sent] = server.requests
    assert sent == {"model": "small", "input": ["aaa", "b", "cc", " "], "encoding_format": "base64"}
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


async def test_settings_name_the_endpoint_and_it_is_asked_for_its_length(
    server: EmbeddingsServer,
) -> None:
    settings = Settings(embed_url=server.url, embed_model="small", embed_key=KEY)
    embedder = await open_embedder(settings)
    try:
        assert (embedder.model, embedder.dimension) == ("small", DIMENSION)
        assert len(server.requests) == 1
        known = await open_embedder(settings, dimension=DIMENSION)
        await known.close()
        assert len(server.requests) == 1
    finally:
        await embedder.close()
    assert KEY not in repr(settings)


async def test_a_length_in_the_settings_is_asked_of_the_model(server: EmbeddingsServer) -> None:
    settings = Settings(embed_url=server.url, embed_model="small", embed_dimension=7)
    embedder = await open_embedder(settings)
    try:
        assert (await embedder.embed(["a"])).shape == (1, 7)
        assert server.requests[0]["dimensions"] == 7
    finally:
        await embedder.close()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (Settings(embed_url="http://localhost/v1"), "which model"),
        (Settings(embed_url="ftp://x", embed_model="m"), "must begin with"),
    ],
)
async def test_settings_that_cannot_work_are_refused(settings: Settings, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await open_embedder(settings)


async def test_the_extra_fastembed_is_named_where_it_is_missing() -> None:
    with pytest.raises(MissingExtra, match=r"windrow\[fastembed\]"):
        await open_embedder(Settings(embed_url="fastembed:", embed_model="BAAI/bge-small-en-v1.5"))


async def test_batches_are_bounded_by_count_and_by_tokens(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    rows = await embedder.embed(["x" * (number % 9 + 1) for number in range(300)])
    assert lengths(rows) == [number % 9 + 1 for number in range(300)]
    assert sorted(len(request["input"]) for request in server.requests) == [44, 128, 128]

    server.requests.clear()
    await embedder.embed(["語" * 30_000] * 5)  # 30,000 tokens each by the guess that is made
    assert [len(request["input"]) for request in server.requests] == [1] * 5
    assert server.most_in_flight <= endpoint.ASKED_AT_ONCE


async def test_an_endpoint_that_does_not_know_base64_is_asked_for_numbers(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.encodings = ("float",)

    assert lengths(await embedder.embed(["aaa"])) == [3]
    assert lengths(await embedder.embed(["aa"])) == [2]
    assert ["encoding_format" in request for request in server.requests] == [True, False, False]


@pytest.mark.parametrize("header", [{"retry_after_ms": "5"}, {"Retry_After": "0"}])
async def test_short_waits_are_waited(
    server: EmbeddingsServer, embedder: EndpointEmbedder, header: dict[str, str]
) -> None:
    server.faults = [lambda _: refuse(429, "slow down", **header)] * 2

    assert lengths(await embedder.embed(["aaa"])) == [3]
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("header", "seconds"),
    [({"Retry_After": "60"}, 60), ({"retry_after_ms": "9000", "Retry_After": "1"}, 9), ({}, None)],
)
async def test_long_waits_are_for_the_job(
    server: EmbeddingsServer,
    embedder: EndpointEmbedder,
    header: dict[str, str],
    seconds: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoint, "MOST_WAITS", 0 if seconds is None else 3)
    server.rule = lambda _: refuse(429, "slow down", **header)

    with pytest.raises(RateLimited) as caught:
        await embedder.embed(["a"])

    assert (caught.value.key, caught.value.retry_after) == ("embed:127.0.0.1", seconds)
    assert len(server.requests) == 1


async def test_a_question_does_not_wait(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.rule = lambda _: refuse(429, "slow down", retry_after_ms="5")

    with pytest.raises(RateLimited):
        await embedder.embed(["a"], query=True)
    assert len(server.requests) == 1


def too_long(body: dict[str, Any]) -> web.StreamResponse | None:
    """Refuses a whole request for one text in it."""
    if any(len(text) > 10 for text in body["input"]):
        return refuse(400, "this model's maximum context length is 10")
    return None


async def test_the_texts_that_are_not_taken_are_found(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.rule = too_long
    texts = ["x" * 50 if number in (3, 77) else "fine" for number in range(100)]

    with pytest.raises(EmbeddingRefused) as caught:
        await embedder.embed(texts)

    assert caught.value.items == (3, 77)
    assert "maximum context length" in str(caught.value)
    assert caught.value.transient is False
    assert len(server.requests) < 70


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_batch_that_is_too_large_is_halved(
    server: EmbeddingsServer, embedder: EndpointEmbedder, status: int
) -> None:
    server.rule = lambda body: refuse(status, "too much") if len(body["input"]) > 20 else None

    assert lengths(await embedder.embed(["x" * 7] * 100)) == [7] * 100


async def test_what_refuses_every_text_is_not_the_fault_of_the_texts(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.rule = lambda _: refuse(400, "there is no model small")

    with pytest.raises(EmbedderUnavailable, match=r"refuses every text.*no model small") as caught:
        await embedder.embed(["a"] * 100)

    assert caught.value.transient
    assert len(server.requests) < 40


@pytest.mark.parametrize("status", [401, 403, 404, 408, 500, 502, 503])
async def test_other_refusals_are_worth_another_try(
    server: EmbeddingsServer, embedder: EndpointEmbedder, status: int
) -> None:
    server.rule = lambda _: refuse(status, "not now")

    with pytest.raises(EmbedderUnavailable, match=f"{status}.*not now") as caught:
        await embedder.embed(["a"])

    assert caught.value.transient
    assert KEY not in str(caught.value)


async def test_an_endpoint_that_is_away_is_worth_another_try(server: EmbeddingsServer) -> None:
    settings = Settings(embed_url="http://127.0.0.1:1/v1", embed_model="small")

    with pytest.raises(EmbedderUnavailable, match="does not answer"):
        await open_embedder(settings)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"<html>", "is none"),
        (b'{"data": []}', "1 texts and answers with 0"),
        (b'{"data": [{"index": 9, "embedding": [1]}]}', "is none"),
        (b'{"data": [{"index": 0, "embedding": "!!"}]}', "is none"),
        (b'{"data": [{"index": 0, "embedding": "AAAA"}]}', "is none"),
        (b'{"data": [{"index": 0, "embedding": "AADAfwAAwH8AAMB/AADAfw=="}]}', "no number"),
    ],
)
async def test_answers_that_are_none_are_worth_another_try(
    server: EmbeddingsServer, embedder: EndpointEmbedder, answer: bytes, complaint: str
) -> None:
    server.rule = lambda _: web.Response(body=answer)

    with pytest.raises(EmbedderUnavailable, match=complaint):
        await embedder.embed(["a"])


async def test_an_answer_that_breaks_off_is_worth_another_try(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.breaks_off = True

    with pytest.raises(EmbedderUnavailable, match="does not answer"):
        await embedder.embed(["a"])


async def test_an_answer_without_end_is_not_read_to_its_end(
    server: EmbeddingsServer, embedder: EndpointEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "LARGEST_ANSWER", 1000)
    server.rule = lambda _: web.Response(body=b" " * 5000)

    with pytest.raises(EmbedderUnavailable, match="larger than 1000 bytes"):
        await embedder.embed(["a"])


async def test_vectors_of_another_length_are_another_model(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.dimension = DIMENSION + 1

    with pytest.raises(EmbeddingError, match="have 5 numbers, not 4") as caught:
        await embedder.embed(["a"])

    assert caught.value.transient is False


async def test_the_key_is_in_no_message(
    server: EmbeddingsServer, embedder: EndpointEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    server.faults = [
        lambda _: refuse(500, "broken"),
        lambda _: refuse(429, "slow", Retry_After="9"),
    ]

    with pytest.raises(EmbedderUnavailable) as first:
        await embedder.embed(["a"])
    with pytest.raises(RateLimited) as second:
        await embedder.embed(["a"])

    assert KEY not in f"{first.value!r} {second.value!r} {embedder!r} {caplog.text}"
