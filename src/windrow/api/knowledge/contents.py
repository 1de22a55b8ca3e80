"""What is in sources: their pages, the chunks of these, the code in them."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.callers import Reader
from windrow.api.knowledge.requests import Limit, Offset, SourceId
from windrow.api.knowledge.views import show_chunk, show_code, show_page, show_whole_page
from windrow.errors import DocumentNotFound
from windrow.ingest.web.urls import normalise
from windrow.services.browsing import list_chunks, list_code, list_source_documents, own_source
from windrow.services.reading import read_document

router = APIRouter(tags=["knowledge"])

AT_ONCE: Final = 20
MOST_PAGES: Final = 1000


@router.get("/knowledge-items/{source_id}/chunks")
async def get_chunks(
    source_id: SourceId,
    caller: Reader,
    domain_filter: Annotated[str | None, Query(max_length=255)] = None,
    limit: Limit = AT_ONCE,
    offset: Offset = 0,
) -> Response:
    """The chunks by which a source is found, in the order of its pages."""
    source = await own_source(caller.queue, source_id, caller.tenant)
    found = await list_chunks(
        caller.queue, source, domain=domain_filter, limit=limit, offset=offset
    )
    shown = [show_chunk(one) for one in found.chunks]
    more = {"domain_filter": domain_filter}
    return _part(source_id, "chunks", shown, found.total, limit, offset, **more)


@router.get("/knowledge-items/{source_id}/code-examples")
async def get_code(
    source_id: SourceId, caller: Reader, limit: Limit = AT_ONCE, offset: Offset = 0
) -> Response:
    """The blocks of code in a source's pages, with the words before them."""
    source = await own_source(caller.queue, source_id, caller.tenant)
    found, total = await list_code(caller.queue, source, limit=limit, offset=offset)
    shown = [show_code(one) for one in found]
    return _part(source_id, "code_examples", shown, total, limit, offset)


@router.get("/pages")
async def get_pages(
    caller: Reader,
    source_id: Annotated[str, Query(max_length=255)],
    section: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGES)] = MOST_PAGES,
    offset: Offset = 0,
) -> Response:
    """The pages of a source, by their addresses; `section` is a title."""
    source = await own_source(caller.queue, source_id, caller.tenant)
    found, total = await list_source_documents(
        caller.queue, source, title=section, limit=limit, offset=offset
    )
    return _part(source_id, "pages", [show_page(one) for one in found], total, limit, offset)


@router.get("/pages/by-url")
async def get_page_at(
    caller: Reader, url: Annotated[str, Query(min_length=1, max_length=2048)]
) -> Response:
    """A page with its text, by its address."""
    try:
        return await _page(caller, url)
    except DocumentNotFound:
        return await _page(caller, normalise(url) or url)


@router.get("/pages/{page_id}")
async def get_page(page_id: UUID, caller: Reader) -> Response:
    """A page with its text."""
    return await _page(caller, str(page_id))


async def _page(caller: Reader, named: str) -> Response:
    found = await read_document(caller.queue, named, tenant=caller.tenant)
    return answer(show_whole_page(found.document, found.text))


def _part(
    source_id: str,
    name: str,
    shown: list[dict[str, Any]],
    total: int,
    limit: int,
    offset: int,
    **more: Any,
) -> Response:
    body = {
        "success": True,
        "source_id": source_id,
        name: shown,
        "total": total,
        "limit": limit,
        "offset": offset,
        "has_more": offset + len(shown) < total,
        **more,
    }
    return answer(body)
