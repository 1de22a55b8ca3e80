"""The bridge for other crawlers: pages are handed in one by one, or by the webhooks of a Firecrawl,
searched and counted; a session tells what a crawl brought. These are there under `/api` only."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Header, Path
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import takes, takes_type, within_time
from windrow.api.callers import Caller, Reader, Writer, identify
from windrow.api.errors import ApiError
from windrow.api.knowledge.requests import MOST, Body, Limit, missing, read, unfit
from windrow.errors import InvalidOptions, JobNotFound
from windrow.index.home import Mode
from windrow.search.request import MOST as MOST_FOUND
from windrow.search.request import Found, SearchRequest
from windrow.services.browsing import host_of
from windrow.services.handing_in import (
    Page,
    Receipt,
    TextOptions,
    is_signed,
    take_event,
    take_pages,
    why_failed,
)
from windrow.services.knowledge import COLLECTION, list_sources
from windrow.services.searching import Searching
from windrow.services.sessions import Session, get_session, list_sessions

router = APIRouter(tags=["bridge"])

_UNFIT: Final = re.compile(r"[^\w.-]")  # in the name of a host; globs have other signs
SessionId = Annotated[str, Path(max_length=255)]
Signature = Annotated[str | None, Header(alias="X-Firecrawl-Signature", max_length=200)]


class IndexBody(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A page that was fetched elsewhere."""

    url: str
    markdown: str
    title: str = ""
    description: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    collection: str = COLLECTION
    status_code: int = 200


class Filters(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    domain: str | None = None
    language: str | None = None


class SearchBody(Body, frozen=True):
    query: str
    mode: Mode | Literal["bm25"] = "hybrid"
    limit: int = 10
    offset: int = 0
    filters: Filters | None = None


@router.post("/api/index", openapi_extra=takes_type(IndexBody), status_code=202)
async def index(request: Request, caller: Writer) -> Response:
    """Have a page found. One that was handed in before, at the same address, is replaced; with a
    `statusCode` of 400 and more it is refused, and what was there stays."""
    wanted = await read(request, IndexBody)
    page = Page(
        wanted.url,
        wanted.markdown,
        wanted.title,
        wanted.language,
        {"description": wanted.description},
        why_failed(wanted.status_code),
    )
    options = TextOptions(caller.tenant, wanted.collection, wanted.tags)
    receipt = await take_pages(caller.queue, [page], options)
    if receipt.job_id is None:
        raise unfit(f"{receipt.taken[0].name}: {receipt.taken[0].error}")
    body = {
        "success": True,
        "job_id": receipt.job_id,
        "progressId": receipt.job_id,
        "source_id": receipt.taken[0].source,
        "status": "queued",
        "message": "Document queued for indexing",
    }
    return answer(body, 202)


@router.post("/api/search", openapi_extra=takes_type(SearchBody))
async def search(request: Request, caller: Reader) -> Response:
    """What fits best, a chunk of each document."""
    wanted = await read(request, SearchBody)
    if not wanted.query.strip():
        raise unfit("query: it is empty")
    if not 1 <= wanted.limit <= MOST or not 0 <= wanted.offset <= MOST_FOUND - wanted.limit:
        raise unfit(f"limit: from 1 to {MOST}; with offset at most {MOST_FOUND}")
    filters = wanted.filters or Filters()
    end = wanted.offset + wanted.limit
    asked = SearchRequest(
        query=wanted.query,
        mode="keyword" if wanted.mode == "bm25" else wanted.mode,
        limit=min(MOST_FOUND, end),
        tenant=caller.tenant,
        languages=(filters.language,) if filters.language else (),
        path=_addresses(filters.domain),
    )
    searching: Searching = request.app.state.searching
    found = await searching.search(asked)
    fitting = [
        one
        for one in found.results
        if filters.domain is None or host_of(one.uri) == filters.domain.lower()
    ]
    body = {
        "success": True,
        "results": [_result(one) for one in fitting[wanted.offset : end]],
        "total": len(fitting),
        "query": wanted.query,
        "mode": wanted.mode,
    }
    return answer(body)


def _addresses(domain: str | None) -> str | None:
    """A glob of addresses there, at any port; it may take in others whose names begin alike."""
    return None if domain is None else f"http*://{_UNFIT.sub('', domain.lower())}*/**"


@router.get("/api/stats")
async def stats(caller: Reader) -> Response:
    """How much there is, and how much of it can be found."""
    infos = await list_sources(caller.queue, tenant=caller.tenant)
    counted = [one.counts for one in infos if one.counts is not None]
    chunks = sum(one.chunks for one in counted)
    searchable = sum(one.searchable for one in counted)
    body = {
        "success": True,
        "total_sources": len(infos),
        "total_documents": sum(one.documents for one in counted),
        "total_chunks": chunks,
        "searchable_documents": searchable,
        "pending_documents": sum(one.pending for one in counted),
        "skipped_documents": sum(one.skipped for one in counted),
        "total_bytes": sum(one.size for one in counted),
        "qdrant_points": chunks,
        "bm25_documents": searchable,
        "collections": sorted({one.source.collection for one in infos}),
    }
    return answer(body)


@router.get("/api/sessions")
async def list_all_sessions(caller: Reader, limit: Limit = 20) -> Response:
    """Crawls that feed the index, the newest first: how much each brought, and what took how
    long."""
    found = await list_sessions(caller.queue, tenant=caller.tenant, limit=limit)
    return answer({"success": True, "sessions": [_session(one) for one in found]})


@router.get("/api/sessions/{session_id}")
async def read_session(session_id: SessionId, caller: Reader) -> Response:
    """One of them, by the id of its crawl, be that here or elsewhere."""
    try:
        found = await get_session(caller.queue, session_id, tenant=caller.tenant)
    except JobNotFound as error:
        raise missing("Session not found") from error
    return answer({"success": True, **_session(found)})


@router.post("/api/webhook/firecrawl", openapi_extra=takes(type={"type": "string"}))
async def receive(request: Request, x_firecrawl_signature: Signature = None) -> Response:
    """What a Firecrawl tells of its crawls: their pages are found here as well. Asks for no key,
    but for a signature with `WINDROW_WEBHOOK_SECRET`. With a key in `Authorization` (one of the
    headers of the webhook) the pages are that tenant's."""
    body = await within_time(request.body())
    if not is_signed(body, x_firecrawl_signature, request.app.state.settings.webhook_secret):
        raise ApiError(401, "UNAUTHORIZED", "The signature is missing or wrong")
    tenant = await _tenant(request)
    try:
        event = msgspec.json.decode(body, type=dict[str, Any])
        receipt = await take_event(request.app.state.queue, event, body, TextOptions(tenant=tenant))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidOptions) as error:
        raise ApiError(400, "BAD_REQUEST", str(error)) from error
    return answer(_receipt(receipt))


async def _tenant(request: Request) -> str | None:
    if "authorization" not in request.headers:
        return None
    identity = await identify(request)
    if not identity.may("write"):
        raise ApiError(403, "FORBIDDEN", "This key may only read")
    return Caller(request.app.state.queue, identity).tenant


def _receipt(receipt: Receipt) -> dict[str, Any]:
    taken = [one for one in receipt.taken if one.error is None]
    skipped = [{"url": one.name, "error": one.error} for one in receipt.taken if one.error]
    status = "queued" if taken else "acknowledged"
    body = {"success": True, "status": status, "queued": len(taken), "skipped": skipped}
    return body if receipt.job_id is None else {**body, "job_id": receipt.job_id}


def _session(one: Session) -> dict[str, Any]:
    return {
        "id": one.id,
        "crawl_id": one.crawl,
        "type": "webhook" if one.is_handed else "crawl",
        "status": one.status,
        "url": one.url,
        "source_ids": one.sources,
        "pages": one.pages,
        "indexed": one.indexed,
        "failed": one.failed,
        "started_at": one.started_at,
        "ended_at": one.ended_at,
        "seconds": one.seconds,
    }


def _result(found: Found) -> dict[str, Any]:
    return {
        "url": found.uri,
        "title": found.title,
        "description": found.snippet,
        "text": found.text,
        "score": found.score,
        "metadata": {
            "source_id": found.source,
            "document_id": found.document,
            "headings": found.headings,
            "language": found.language,
            "tags": found.tags,
        },
    }
