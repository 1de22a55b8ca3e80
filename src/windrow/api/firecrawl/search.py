"""POST /v2/search: what was ingested, once there is an index of it. Until then nothing is found,
and that is said."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import read_body, take, takes
from windrow.api.callers import Reader
from windrow.api.errors import bad_request
from windrow.queue.ids import new_id

router = APIRouter(tags=["search"])

MOST: Final = 100
WARNING: Final = "There is no index of documents yet, so nothing can be found"
# How much and where; of no effect while there is nothing to choose from.
_CHOICES: Final[dict[str, type]] = {
    "sources": list,
    "categories": list,
    "includeDomains": list,
    "excludeDomains": list,
    "tbs": str,
    "location": str,
    "country": str,
    "timeout": int,
    "ignoreInvalidURLs": bool,
    "scrapeOptions": dict,
    "origin": str,
    "integration": str,
}


@router.post("/v2/search", openapi_extra=takes(query={"type": "string"}))
async def search(request: Request, caller: Reader) -> Response:
    """Documents about something."""
    body = await read_body(request)
    _check(body)
    found: dict[str, list[Any]] = {"web": [], "news": [], "images": []}
    return answer(
        {"success": True, "data": found, "warning": WARNING, "creditsUsed": 0, "id": new_id()}
    )


def _check(body: dict[str, Any]) -> None:
    query = take(body, "query", str)
    if not query or not query.strip():
        raise bad_request("query: Required")
    limit = take(body, "limit", int, 10)
    if not 1 <= limit <= MOST:
        raise bad_request(f"limit must be from 1 to {MOST}, not {limit}")
    for name, kind in _CHOICES.items():
        take(body, name, kind)
    for name in body:
        raise bad_request(f"Unrecognized key in body: `{name}`")
