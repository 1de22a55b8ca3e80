"""A site: /v2/crawl, begun, followed, stopped; POST /v2/map, its addresses, waited for."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import TAKES_URL, read_body, take, take_url, takes
from windrow.api.callers import Reader, Writer
from windrow.api.errors import ApiError, bad_request, scrape_error
from windrow.api.firecrawl.progress import (
    CRAWLS,
    IdempotencyKey,
    Limit,
    Skip,
    answer_cancel,
    answer_errors,
    answer_status,
    take_webhook,
)
from windrow.api.quick import Quick
from windrow.errors import WaitTimeout
from windrow.queue.job import JobState
from windrow.services.web import list_crawls, start_crawl, start_map, wait_or_cancel, why_failed
from windrow.services.web.models import choose_crawl_options

router = APIRouter(tags=["crawl"], route_class=Quick)

TAKES_WISH: Final = takes(url={"type": "string"}, prompt={"type": "string"})
# What stands beside the options of a crawl and is about its pages.
_OF_PAGES: Final = ("origin", "integration", "zeroDataRetention", "index")

map_router = APIRouter(tags=["map"], route_class=Quick)

WAIT_SECONDS: Final = 300.0
_WITHOUT_EFFECT: Final = ("origin", "integration")  # who asks


@router.post("/v2/crawl", openapi_extra=TAKES_URL)
async def start(
    request: Request, caller: Writer, x_idempotency_key: IdempotencyKey = None
) -> Response:
    """Have a site crawled."""
    options = await read_body(request)
    url = take_url(options)
    webhook = take_webhook(request, options)
    wish: str | None = take(options, "prompt", str)
    pages: dict[str, Any] = dict(take(options, "scrapeOptions", dict, {}))
    pages |= {name: options.pop(name) for name in _OF_PAGES if name in options}
    chosen = {} if wish is None else await _choose(request, url, wish)
    crawl_id = await start_crawl(
        caller.queue,
        url,
        chosen | options,
        pages,
        webhook=webhook,
        tenant=caller.tenant,
        quota=caller.quota,
        idempotency_key=x_idempotency_key,
    )
    body = {"success": True, "id": crawl_id, "url": CRAWLS.url(request, crawl_id)}
    return answer(body if wish is None else {**body, "promptGeneratedOptions": chosen})


@router.post("/v2/crawl/params-preview", openapi_extra=TAKES_WISH)
async def preview_options(request: Request, caller: Writer) -> Response:
    """The options that a crawl by this prompt would have."""
    body = await read_body(request)
    url, wish = take_url(body), take(body, "prompt", str)
    for name in _OF_PAGES:
        body.pop(name, None)
    for name in body:
        raise bad_request(f"Unrecognized key in body: `{name}`")
    if not wish or not wish.strip():
        raise bad_request("prompt: Required")
    return answer({"success": True, "data": await _choose(request, url, wish)})


@router.get("/v2/crawl/active")
@router.get("/v2/crawl/ongoing")
async def list_active(caller: Reader) -> Response:
    """The crawls that have not ended."""
    found = await list_crawls(caller.queue, tenant=caller.tenant, limit=1000)
    crawls = [
        {
            "id": one.id,
            "teamId": one.tenant or "default",
            "url": one.url,
            "created_at": one.created_at,
            "options": one.options,
        }
        for one in found
        if one.kind == CRAWLS.kind and one.status == "scraping"  # not those about to end
    ]
    return answer({"success": True, "crawls": crawls})


@router.get("/v2/crawl/{crawl_id}")
async def get_status(
    request: Request, crawl_id: UUID, caller: Reader, skip: Skip = 0, limit: Limit = None
) -> Response:
    """How far a crawl is, and the documents it has so far."""
    return await answer_status(request, caller, CRAWLS, str(crawl_id), skip, limit)


@router.delete("/v2/crawl/{crawl_id}")
async def cancel(crawl_id: UUID, caller: Writer) -> Response:
    """Cancel what waits of a crawl, tell what runs. Its documents stay."""
    return await answer_cancel(caller, CRAWLS, str(crawl_id))


@router.get("/v2/crawl/{crawl_id}/errors")
async def get_errors(crawl_id: UUID, caller: Reader) -> Response:
    """The pages that could not be had, and those that robots.txt forbids."""
    return await answer_errors(caller, CRAWLS, str(crawl_id))


async def _choose(request: Request, url: str, wish: str) -> dict[str, Any]:
    return await choose_crawl_options(request.app.state.settings, url, wish)


@map_router.post("/v2/map", openapi_extra=TAKES_URL)
async def map_site(request: Request, caller: Writer) -> Response:
    """The addresses of a site: of its first page, of its sitemaps, and known from before."""
    options = await read_body(request)
    for name in _WITHOUT_EFFECT:
        options.pop(name, None)
    if options.pop("ignoreCache", False):
        options["useIndex"] = False
    job = await start_map(
        caller.queue, take_url(options), options, tenant=caller.tenant, quota=caller.quota
    )
    seconds = options["timeout"] / 1000 if "timeout" in options else WAIT_SECONDS
    try:
        ended = await wait_or_cancel(caller.queue, job.id, timeout=seconds)
    except WaitTimeout as error:
        said = f"Map timed out: the site was not read after {seconds:g} s"
        raise ApiError(408, "MAP_TIMEOUT", said) from error
    if ended.state is not JobState.COMPLETED:
        raise scrape_error(*why_failed(ended))
    links = [{"url": url} for url in ended.result["links"]]
    return answer({"success": True, "id": ended.id, "links": links})
