"""/v2/extract: what pages say, in a shape that is asked for. It takes a language model."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import TAKES_URLS, read_body, refuse, take
from windrow.api.callers import Reader, Writer
from windrow.api.errors import bad_request
from windrow.api.quick import Quick
from windrow.queue.job import Job, JobState
from windrow.services.web import why_failed
from windrow.services.web.models import get_extract, start_extract

router = APIRouter(tags=["extract"], route_class=Quick)

# Said by clients; the sources are always told, and there is nothing else to be read from.
_WITHOUT_EFFECT: Final = ("origin", "integration", "showSources", "zeroDataRetention")
STATUSES: Final = {
    JobState.COMPLETED: "completed",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "cancelled",
}


@router.post("/v2/extract", openapi_extra=TAKES_URLS)
async def start(request: Request, caller: Writer) -> Response:
    """Have what up to ten pages say put into a shape, by a prompt, a JSON schema or both."""
    body = await read_body(request)
    for name in _WITHOUT_EFFECT:
        body.pop(name, None)
    for name in ("enableWebSearch", "allowExternalLinks"):
        if take(body, name, bool):
            raise bad_request(f"{name}: only the pages that are named are read")
    refuse(body, "agent", "there is none here")
    urls = take(body, "urls", list)
    if not urls or not all(isinstance(url, str) for url in urls):
        raise bad_request("urls: Expected an `array` of at least one `str`")
    wanted: dict[str, Any] = {
        "prompt": take(body, "prompt", str),
        "schema": take(body, "schema", dict),
        "system_prompt": take(body, "systemPrompt", str),
        "ignore_invalid": take(body, "ignoreInvalidURLs", bool, True),
        "scrape_options": take(body, "scrapeOptions", dict),
    }
    for name in body:
        raise bad_request(f"Unrecognized key in body: `{name}`")
    settings = request.app.state.settings
    extract_id, invalid = await start_extract(
        caller.queue, settings, urls, tenant=caller.tenant, quota=caller.quota, **wanted
    )
    said: dict[str, Any] = {"success": True, "id": extract_id}
    return answer({**said, "invalidURLs": list(invalid)} if invalid else said)


@router.get("/v2/extract/{extract_id}")
async def get_status(extract_id: UUID, caller: Reader) -> Response:
    """How far it is, and what was found."""
    job = await get_extract(caller.queue, str(extract_id), tenant=caller.tenant)
    return answer(_describe(job))


def _describe(job: Job) -> dict[str, Any]:
    body: dict[str, Any] = {
        "success": job.state is not JobState.FAILED,
        "id": job.id,
        "status": STATUSES.get(job.state, "processing"),
        "data": {},
    }
    if job.expires_at is not None:
        body["expiresAt"] = job.expires_at
    if job.state is JobState.FAILED:
        body["code"], body["error"] = why_failed(job)
    if job.state is JobState.COMPLETED:
        body["data"] = job.result["data"]
        body["sources"] = {"urls": job.result["sources"], "errors": job.result["errors"]}
    return body
