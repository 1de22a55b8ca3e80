"""/v2/batch/scrape: many pages as one, begun or added to, followed, stopped."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import TAKES_URLS, read_body, take
from windrow.api.callers import Reader, Writer
from windrow.api.errors import bad_request
from windrow.api.firecrawl.progress import (
    BATCHES,
    IdempotencyKey,
    Limit,
    Skip,
    answer_cancel,
    answer_errors,
    answer_status,
    take_webhook,
)
from windrow.api.quick import Quick
from windrow.ids import is_id, plain_id
from windrow.services.web import start_batch

router = APIRouter(tags=["batch scrape"], route_class=Quick)


@router.post("/v2/batch/scrape", openapi_extra=TAKES_URLS)
async def start(
    request: Request,
    caller: Writer,
    x_idempotency_key: IdempotencyKey = None,
) -> Response:
    """Have pages scraped, or add them to a batch that runs (`appendToId`)."""
    options = await read_body(request)
    urls = take(options, "urls", list)
    if not urls or not all(isinstance(url, str) for url in urls):
        raise bad_request("urls: Expected an `array` of at least one `str`")
    webhook = take_webhook(request, options)
    append_to = take(options, "appendToId", str)
    if append_to is not None and not is_id(append_to):
        raise bad_request("appendToId: Invalid UUID")
    started = await start_batch(
        caller.queue,
        urls,
        ignore_invalid=take(options, "ignoreInvalidURLs", bool, True),
        max_concurrency=take(options, "maxConcurrency", int),
        append_to=None if append_to is None else plain_id(append_to),
        tenant=caller.tenant,
        quota=caller.quota,
        idempotency_key=x_idempotency_key,
        webhook=webhook,
        scrape_options=options,
    )
    body = {"success": True, "id": started.id, "url": BATCHES.url(request, started.id)}
    if started.invalid_urls:
        body["invalidURLs"] = list(started.invalid_urls)
    return answer(body)


@router.get("/v2/batch/scrape/{batch_id}")
async def get_status(
    request: Request, batch_id: UUID, caller: Reader, skip: Skip = 0, limit: Limit = None
) -> Response:
    """How far a batch is, and the documents it has so far."""
    return await answer_status(request, caller, BATCHES, str(batch_id), skip, limit)


@router.delete("/v2/batch/scrape/{batch_id}")
async def cancel(batch_id: UUID, caller: Writer) -> Response:
    """Cancel what waits of a batch, tell what runs. Its documents stay."""
    return await answer_cancel(caller, BATCHES, str(batch_id))


@router.get("/v2/batch/scrape/{batch_id}/errors")
async def get_errors(batch_id: UUID, caller: Reader) -> Response:
    """The pages that could not be had."""
    return await answer_errors(caller, BATCHES, str(batch_id))
