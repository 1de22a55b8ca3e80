"""Services asked over HTTP: what each answer means for whoever asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from windrow.errors import ProviderError, RateLimited
from windrow.ingest.providers import Provider, read_refusal


class Service:
    """Answers what a test wants, once for all."""

    def __init__(self) -> None:
        self.answer = web.Response(text="{}")
        self.asked: list[web.Request] = []
        self.url = ""

    async def take(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        if self.answer.status == 599:
            await asyncio.Event().wait()
        return self.answer


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.take)
    async with TestServer(app, host="127.0.0.1") as server:
        service.url = f"http://127.0.0.1:{server.port}/job"
        yield service


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider("barn", limit_key="api:barn", seconds=5) as provider:
        yield provider


async def test_answer_is_read_as_what_it_should_be(service: Service, provider: Provider) -> None:
    service.answer = web.json_response({"id": "b7"})
    answer = await provider.ask("POST", service.url, body={"hay": 1}, headers={"x-api-key": "k"})
    assert answer.read(dict[str, str]) == {"id": "b7"}
    assert service.asked[0].headers["x-api-key"] == "k"
    with pytest.raises(ProviderError, match="barn its answer cannot be read") as garbage:
        answer.read(list[str])
    assert garbage.value.transient


@pytest.mark.parametrize(
    ("status", "headers", "body", "transient"),
    [
        (400, {}, {"error": {"message": "no such field"}}, False),
        (401, {}, {"success": False, "message": "bad key"}, False),
        (402, {}, {"success": False, "error": "out of credits"}, False),
        (403, {}, {"code": 7, "message": "denied"}, False),
        (404, {}, {"code": 5, "message": "none"}, False),
        (408, {}, "too slow", True),
        (409, {}, "busy", True),
        (429, {}, {"error": {"code": "insufficient_quota", "message": "pay"}}, False),
        (429, {"x-should-retry": "false"}, {}, False),
        (500, {}, "<html>", True),
        (503, {"x-should-retry": "false"}, "", False),
        (400, {"x-should-retry": "true"}, "", True),
        (302, {"Location": "http://elsewhere"}, "", False),
    ],
)
async def test_refusal_says_whether_another_try_may_help(
    service: Service,
    provider: Provider,
    status: int,
    headers: dict[str, str],
    body: object,
    transient: bool,
) -> None:
    text = body if isinstance(body, str) else msgspec.json.encode(body).decode()
    service.answer = web.Response(status=status, headers=headers, text=text)
    with pytest.raises(ProviderError, match=f"barn answers with {status}") as refused:
        await provider.ask("GET", service.url)
    assert (refused.value.transient, refused.value.status) == (transient, status)
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30.0),
        ({"retry-after-ms": "1500", "Retry-After": "30"}, 1.5),
        ({"retry-after-ms": "soon", "Retry-After": "30"}, 30.0),
        ({}, None),
        ({"Retry-After": "later"}, None),
    ],
)
async def test_service_that_is_asked_too_often_says_when_to_come_back(
    service: Service, provider: Provider, headers: dict[str, str], seconds: float | None
) -> None:
    service.answer = web.Response(status=429, headers=headers)
    with pytest.raises(RateLimited) as limited:
        await provider.ask("GET", service.url)
    assert (limited.value.key, limited.value.retry_after) == ("api:barn", seconds)


def test_time_to_come_back_may_be_a_date() -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(minutes=2), usegmt=True)
    refusal = read_refusal(503, {"Retry-After": until}, b"")
    assert refusal is not None
    assert refusal.retry_after is not None
    assert 110 < refusal.retry_after <= 120
    assert refusal.error("barn", "barn").retry_after == refusal.retry_after


async def test_statuses_that_are_answers_to_the_caller_are_given_back(
    service: Service, provider: Provider
) -> None:
    service.answer = web.json_response({"message": "gone"}, status=404)
    assert (await provider.ask("GET", service.url, takes=[404])).status == 404


async def test_silence_and_closed_doors_may_be_over_at_the_next_try(service: Service) -> None:
    service.answer = web.Response(status=599)
    async with Provider("barn", seconds=0.1) as provider:
        for url in (service.url, "http://127.0.0.1:9/"):
            with pytest.raises(ProviderError, match="barn does not answer") as silent:
                await provider.ask("GET", url)
            assert silent.value.transient
