"""/v2/crawl: a site, begun, followed, stopped."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import TAKES_URL, read_body, refuse, take, take_url
from windrow.api.callers import Reader, Writer
from windrow.api.firecrawl.progress import (
    CRAWLS,
    Limit,
    Skip,
    answer_cancel,
    answer_errors,
    answer_status,
)
from windrow.services.web import list_crawls, start_crawl

router = APIRouter(tags=["crawl"])

# What stands beside the options of a crawl and is about its pages.
_OF_PAGES: Final = ("origin", "integration", "zeroDataRetention")


@router.post("/v2/crawl", openapi_extra=TAKES_URL)
async def start(request: Request, caller: Writer) -> Response:
    """Have a site crawled."""
    options = await read_body(request)
    url = take_url(options)
    refuse(options, "webhook", "webhooks are not sent yet")
    refuse(options, "prompt", "there is no model that could read it")
    pages: dict[str, Any] = dict(take(options, "scrapeOptions", dict, {}))
    pages |= {name: options.pop(name) for name in _OF_PAGES if name in options}
    crawl_id = await start_crawl(caller.queue, url, options, pages, tenant=caller.tenant)
    return answer({"success": True, "id": crawl_id, "url": CRAWLS.url(request, crawl_id)})


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
    return await answer_cancel(caller, CRAWLS, str(crawl_id))


@router.get("/v2/crawl/{crawl_id}/errors")
async def get_errors(crawl_id: UUID, caller: Reader) -> Response:
    """The pages that could not be had, and those that robots.txt forbids."""
    return await answer_errors(caller, CRAWLS, str(crawl_id))
