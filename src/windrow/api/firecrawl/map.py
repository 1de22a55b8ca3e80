"""POST /v2/map: the addresses of a site."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import TAKES_URL, read_body, take_url
from windrow.api.callers import Writer
from windrow.api.errors import ApiError, scrape_error
from windrow.api.quick import Quick
from windrow.errors import WaitTimeout
from windrow.queue.job import JobState
from windrow.services.web import start_map, wait_or_cancel, why_failed

router = APIRouter(tags=["map"], route_class=Quick)

WAIT_SECONDS: Final = 300.0
_WITHOUT_EFFECT: Final = ("origin", "integration")  # who asks


@router.post("/v2/map", openapi_extra=TAKES_URL)
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
