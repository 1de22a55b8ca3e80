"""/rag: what fits a question, as chunks, as pages, or as code."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final, Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import takes_type
from windrow.api.callers import Caller, Reader
from windrow.api.knowledge.requests import MOST, Body, read, unfit
from windrow.errors import SourceNotFound
from windrow.index.home import Mode
from windrow.search.request import Found, SearchAnswer, SearchRequest
from windrow.services.browsing import find_code
from windrow.services.knowledge import find_source
from windrow.services.searching import Searching

router = APIRouter(tags=["knowledge"])

LONGEST: Final = 1000  # characters of a chunk that are shown
MORE: Final = 5  # times as many are looked at when they are grouped, or chosen among


class QueryBody(Body, frozen=True):
    """What is asked; `source` is a source's id, address or title."""

    query: str
    source: str | None = None
    match_count: int = 5
    return_mode: Literal["chunks", "pages"] = "chunks"
    mode: Mode = "hybrid"
    rerank: bool = False


class CodeBody(Body, frozen=True):
    query: str
    source: str | None = None
    source_id: str | None = None
    match_count: int = 5


@router.post("/rag/query", openapi_extra=takes_type(QueryBody))
async def query(request: Request, caller: Reader) -> Response:
    """The chunks that fit a question best, or the pages they are on."""
    wanted = await read(request, QueryBody)
    is_pages = wanted.return_mode == "pages"
    asked = wanted.match_count * (MORE if is_pages else 1)
    found = await _search(
        request, caller, wanted, wanted.source, asked, wanted.mode, rerank=wanted.rerank
    )
    shown = [_page(ones) for ones in _by_page(found)] if is_pages else map(_chunk, found.results)
    results = list(shown)[: wanted.match_count]
    body = {
        "success": True,
        "results": results,
        "query": wanted.query,
        "source": wanted.source,
        "match_count": wanted.match_count,
        "total_found": len(results),
        "execution_path": "index",
        "search_mode": wanted.mode,
        "reranking_applied": found.is_reranked,
        "return_mode": wanted.return_mode,
    }
    return answer(body)


@router.post("/rag/code-examples", openapi_extra=takes_type(CodeBody))
async def query_code(request: Request, caller: Reader) -> Response:
    """Blocks of code in what fits a question best."""
    wanted = await read(request, CodeBody)
    source = wanted.source_id or wanted.source
    found = await _search(request, caller, wanted, source, wanted.match_count * MORE)
    results = [
        {
            "id": f"{one.document}:{one.start + block.start}",
            "url": one.uri,
            "code": block.code,
            "summary": block.context,
            "source_id": one.source,
            "metadata": {"language": block.language, "title": one.title},
            "similarity": one.score,
        }
        for one in found.results
        for block in find_code(one.text)
    ]
    shown = results[: wanted.match_count]
    body = {"success": True, "results": shown, "reranked": found.is_reranked, "error": None}
    return answer({**body, "query": wanted.query, "total_found": len(shown)})


async def _search(
    request: Request,
    caller: Caller,
    wanted: QueryBody | CodeBody,
    source: str | None,
    limit: int,
    mode: Mode = "hybrid",
    *,
    rerank: bool = False,
) -> SearchAnswer:
    if not wanted.query.strip():
        raise unfit("query: it is empty")
    if not 1 <= wanted.match_count <= MOST:
        raise unfit(f"match_count: from 1 to {MOST}, not {wanted.match_count}")
    try:
        sources = () if not source else (await _source_id(caller, source),)
    except SourceNotFound:
        return SearchAnswer(results=(), mode=mode, seconds=0.0)
    asked = SearchRequest(
        query=wanted.query,
        mode=mode,
        limit=min(limit, 2 * MOST),
        tenant=caller.tenant,
        sources=sources,
        per_document=wanted.match_count,
        rerank=rerank,
    )
    searching: Searching = request.app.state.searching
    return await searching.search(asked)


async def _source_id(caller: Caller, named: str) -> str:
    found = await find_source(caller.queue, named, tenant=caller.tenant)
    return found.source.id


def _chunk(found: Found) -> dict[str, Any]:
    return {
        "id": f"{found.content}:{found.start}",
        "content": found.text[:LONGEST],
        "similarity_score": found.score,
        "metadata": {
            "url": found.uri,
            "title": found.title,
            "source_id": found.source,
            "page_id": found.document,
            "headings": found.headings,
            "language": found.language,
            "tags": found.tags,
            "snippet": found.snippet,
            "match_type": "hybrid" if len(found.why) > 1 else next(iter(found.why), "vector"),
        },
    }


def _by_page(found: SearchAnswer) -> list[list[Found]]:
    """What was found, page by page, in the order of the best of each."""
    pages: defaultdict[str, list[Found]] = defaultdict(list)
    for one in found.results:
        pages[one.document].append(one)
    return list(pages.values())


def _page(found: list[Found]) -> dict[str, Any]:
    first = found[0]
    mean = sum(one.score for one in found) / len(found)
    return {
        "page_id": first.document,
        "url": first.uri,
        "section_title": first.title,
        "source_id": first.source,
        "preview": first.snippet,
        "chunk_matches": len(found),
        "average_similarity": mean,
        "aggregate_similarity": mean * (1 + min(0.2, 0.02 * len(found))),
    }
