"""POST /v2/search: documents that were ingested, as Firecrawl answers with pages of the web."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import read_body, take, takes
from windrow.api.callers import Reader
from windrow.api.errors import bad_request
from windrow.api.quick import Quick
from windrow.ids import new_id
from windrow.search.request import Found, SearchRequest
from windrow.services.browsing import host_of
from windrow.services.searching import Searching

router = APIRouter(tags=["search"], route_class=Quick)

MOST: Final = 100
SOURCES: Final = ("web", "news", "images")
MORE: Final = 5  # times as many are looked at when domains are chosen among them
NOTHING: Final = "Nothing in the index of what was ingested fits; the web itself is not searched"
# What there is no choice of in documents of one's own.
_CHOICES: Final[dict[str, type]] = {
    "categories": list,
    "tbs": str,
    "location": str,
    "country": str,
    "timeout": int,
    "ignoreInvalidURLs": bool,
    "origin": str,
    "integration": str,
}


@router.post("/v2/search", openapi_extra=takes(query={"type": "string"}))
async def search(request: Request, caller: Reader) -> Response:
    """Documents about something."""
    body = await read_body(request)
    asked, limit, chosen, formats = _read(body, caller.tenant)
    searching: Searching = request.app.state.searching
    results = [
        found for found in (await searching.search(asked)).results if _is_chosen(found.uri, chosen)
    ]
    web = [_page(found, place, formats) for place, found in enumerate(results[:limit], 1)]
    told: dict[str, Any] = {
        "success": True,
        "data": {"web": web, "news": [], "images": []},
        "creditsUsed": 0,
        "id": new_id(),
    }
    if not web:
        told["warning"] = NOTHING
    return answer(told)


def _read(
    body: dict[str, Any], tenant: str | None
) -> tuple[SearchRequest, int, dict[str, list[str]], frozenset[str]]:
    query = take(body, "query", str)
    if not query or not query.strip():
        raise bad_request("query: Required")
    limit = take(body, "limit", int, 10)
    if not 1 <= limit <= MOST:
        raise bad_request(f"limit must be from 1 to {MOST}, not {limit}")
    chosen = {name: take(body, name, list) or [] for name in ("includeDomains", "excludeDomains")}
    if all(chosen.values()):
        raise bad_request("includeDomains and excludeDomains cannot be used together")
    _check_sources(take(body, "sources", list) or [])
    options = take(body, "scrapeOptions", dict) or {}
    for name, kind in _CHOICES.items():
        take(body, name, kind)
    for name in body:
        raise bad_request(f"Unrecognized key in body: `{name}`")
    asked = limit * (MORE if any(chosen.values()) else 1)
    request = SearchRequest(query=query, limit=min(asked, 200), tenant=tenant)
    return request, limit, chosen, _formats(options)


def _check_sources(sources: list[Any]) -> None:
    for one in sources:
        name = one.get("type") if isinstance(one, dict) else one
        if name not in SOURCES:
            raise bad_request(f"sources: {name!r} is none of {', '.join(SOURCES)}")


def _formats(options: dict[str, Any]) -> frozenset[str]:
    """What is wanted of each page; of documents only their text is there."""
    given = options.get("formats") or []
    names = [one.get("type") if isinstance(one, dict) else one for one in given]
    return frozenset(str(name) for name in names)


def _is_chosen(uri: str, chosen: dict[str, list[str]]) -> bool:
    host = host_of(uri)

    def is_in(domains: list[str]) -> bool:
        return any(host == one or host.endswith(f".{one}") for one in map(str, domains))

    if chosen["includeDomains"]:
        return is_in(chosen["includeDomains"])
    return not is_in(chosen["excludeDomains"])


def _page(found: Found, place: int, formats: frozenset[str]) -> dict[str, Any]:
    page: dict[str, Any] = {
        "url": found.uri,
        "title": found.title or found.uri,
        "description": found.snippet,
        "position": place,
    }
    if "markdown" in formats:
        page["markdown"] = found.text
        page["metadata"] = {"sourceURL": found.uri, "title": found.title}
    return page
