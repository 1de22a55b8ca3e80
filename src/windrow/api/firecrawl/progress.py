"""What crawls and batches share: how far they are, their documents and errors, a webhook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import msgspec
from fastapi import Header, Query
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import take
from windrow.api.callers import Caller
from windrow.api.errors import ApiError
from windrow.errors import IllegalTransition, JobNotFound
from windrow.queue.job import Job
from windrow.services.web import (
    Crawl,
    cancel_crawl,
    check_webhook,
    get_crawl,
    get_errors,
    read_crawl,
    warning_of,
)

PAGE: Final = 100
MOST: Final = 1_000
MOST_ERRORS: Final = 10_000
PAGE_BYTES: Final = 10 * 1024 * 1024

IdempotencyKey = Annotated[str | None, Header(min_length=1, max_length=255)]
Skip = Annotated[int, Query(ge=0, le=2**31)]
Limit = Annotated[int | None, Query(ge=1, le=2**31)]


@dataclass(frozen=True, slots=True)
class Verb:
    """Where a kind of job is asked for."""

    kind: str
    path: str

    def url(self, request: Request, crawl_id: str) -> str:
        """With the scheme and the host of the request, whatever they are behind a proxy."""
        return f"{request.url.scheme}://{request.url.netloc}{self.path}/{crawl_id}"


CRAWLS: Final = Verb("web.crawl", "/v2/crawl")
BATCHES: Final = Verb("web.batch", "/v2/batch/scrape")


async def find(caller: Caller, verb: Verb, crawl_id: str) -> Crawl:
    """A crawl, or a batch, of the caller's. Raises JobNotFound."""
    return _check(await get_crawl(caller.queue, crawl_id, tenant=caller.tenant), verb)


def _check(crawl: Crawl, verb: Verb) -> Crawl:
    if crawl.kind != verb.kind:
        raise JobNotFound(crawl.id)
    return crawl


async def answer_status(
    request: Request, caller: Caller, verb: Verb, crawl_id: str, skip: int, limit: int | None
) -> Response:
    asked = min(limit or PAGE, MOST)
    crawl, found = await read_crawl(
        caller.queue, crawl_id, tenant=caller.tenant, skip=skip, limit=asked
    )
    _check(crawl, verb)
    if crawl.status == "failed":
        return answer({"success": False, **describe(crawl), "error": crawl.error, "data": []})
    pages = _that_fit(found)
    body = {"success": True, **describe(crawl), "data": pages}
    if (warning := await warning_of(caller.queue, crawl)) is not None:
        body["warning"] = warning
    if crawl.status == "scraping" or crawl.completed > skip + len(pages):
        query = {"skip": skip + len(pages)} | ({"limit": limit} if limit else {})
        body["next"] = f"{verb.url(request, crawl_id)}?{urlencode(query)}"
    return answer(body)


def describe(crawl: Crawl) -> dict[str, Any]:
    """What is said about a crawl beside its documents. What is not known yet is left out."""
    body: dict[str, Any] = {
        "status": crawl.status,
        "completed": crawl.completed,
        "total": crawl.total,
        "creditsUsed": crawl.completed,
        "createdAt": crawl.created_at,
    }
    if crawl.expires_at is not None:
        body["expiresAt"] = crawl.expires_at
    if crawl.ended_at is not None:
        body["completedAt"] = crawl.ended_at
        body["duration"] = (crawl.ended_at - crawl.created_at).total_seconds()
    return body


async def answer_errors(caller: Caller, verb: Verb, crawl_id: str) -> Response:
    await find(caller, verb, crawl_id)
    found = await get_errors(caller.queue, crawl_id, tenant=caller.tenant, limit=MOST_ERRORS)
    errors = [
        {
            "id": one.id,
            "timestamp": one.at,
            "url": one.url,
            "code": one.code,
            "error": one.error,
        }
        for one in found.errors
    ]
    blocked = list(found.robots_blocked)
    # `success` is no part of the contract, but one of the clients looks for it.
    return answer({"success": True, "errors": errors, "robotsBlocked": blocked})


async def answer_cancel(caller: Caller, verb: Verb, crawl_id: str) -> Response:
    await find(caller, verb, crawl_id)
    try:
        await cancel_crawl(caller.queue, crawl_id, tenant=caller.tenant)
    except IllegalTransition as error:
        if error.state != "cancelled":
            raise ApiError(409, "CONFLICT", f"The job is {error.state} already") from error
    return answer({"success": True, "status": "cancelled"})


def documents(pages: Sequence[Job]) -> list[msgspec.Raw]:
    """As they are stored: they need not be read to be sent."""
    return [msgspec.Raw(_bytes(page.result_json)) for page in pages if page.result_json]


def _that_fit(pages: Sequence[Job]) -> list[msgspec.Raw]:
    """As many documents as go into one answer, and at least one."""
    fitting: list[msgspec.Raw] = []
    room = PAGE_BYTES
    for document in documents(pages):
        room -= len(bytes(document))
        if fitting and room < 0:
            break
        fitting.append(document)
    return fitting


def _bytes(stored: str | bytes | None) -> bytes:
    return stored.encode() if isinstance(stored, str) else stored or b"null"


def take_webhook(request: Request, body: dict[str, Any]) -> str | dict[str, Any] | None:
    """The webhook of a body, which may be used as far as is known before it is."""
    webhook: str | dict[str, Any] | None = take(body, "webhook", (str, dict))
    if webhook is not None:
        check_webhook(request.app.state.settings, webhook)
    return webhook
