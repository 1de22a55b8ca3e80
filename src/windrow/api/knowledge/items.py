"""/knowledge-items: sources, added by their address, listed, changed, looked at again, removed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import takes_type
from windrow.api.callers import Reader, Writer
from windrow.api.errors import ApiError
from windrow.api.knowledge.requests import Body, SourceId, read, unfit
from windrow.api.knowledge.views import show_source
from windrow.errors import InvalidOptions
from windrow.services.browsing import own_source
from windrow.services.knowledge import (
    COLLECTION,
    DAY_SECONDS,
    AddOptions,
    add_site,
    change_source,
    get_info,
    list_sources,
    refresh_now,
    remove_source,
)
from windrow.services.operations import find_running
from windrow.services.quotas import take_budget

router = APIRouter(tags=["knowledge"])

DEEPEST: Final = 5
MOST_DAYS: Final = 3650


class CrawlBody(Body, frozen=True):
    """A site to know. `max_depth` 1 is the page alone; it is looked at again every
    `update_frequency` days, 0: never."""

    url: str
    knowledge_type: str = "technical"
    tags: tuple[str, ...] = ()
    update_frequency: int = 7
    max_depth: int = 2
    extract_code_examples: bool = True
    url_include_patterns: tuple[str, ...] = ()
    url_exclude_patterns: tuple[str, ...] = ()
    limit: int | None = None
    title: str | None = None
    collection: str = COLLECTION


class ChangeBody(Body, frozen=True):
    """What is to be changed of a source."""

    title: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    knowledge_type: str | UnsetType = UNSET
    update_frequency: int | UnsetType = UNSET


@router.post("/knowledge-items/crawl", openapi_extra=takes_type(CrawlBody))
async def crawl(request: Request, caller: Writer) -> Response:
    """Have a site crawled, and its pages found. Its progress is asked for by `progressId`. If it is
    being crawled already, that crawl's is answered; other options hold from the next one on."""
    wanted = await read(request, CrawlBody)
    url = wanted.url.strip()
    options = AddOptions(
        collection=wanted.collection,
        tenant=caller.tenant,
        title=wanted.title,
        tags=wanted.tags,
        refresh_seconds=_seconds(wanted.update_frequency),
        crawl=_crawl_options(wanted),
        kept={
            "knowledge_type": wanted.knowledge_type,
            "extract_code_examples": wanted.extract_code_examples,
        },
    )
    budget = await take_budget(caller.queue, caller.quota)
    try:
        added = await add_site(caller.queue, url, options, budget=budget)
    except InvalidOptions as error:
        raise unfit(str(error)) from error
    body = {
        "success": True,
        "progressId": added.job_id,
        "job_id": added.job_id,
        "source_id": added.source.id,
        "message": "Crawl started" if added.is_begun else "It is being crawled already",
    }
    return answer(body)


@router.get("/knowledge-items/summary")
@router.get("/knowledge-items")
async def list_items(
    caller: Reader,
    page: Annotated[int, Query(ge=1, le=2**31)] = 1,
    per_page: Annotated[int, Query(le=2**31)] = 20,
    knowledge_type: Annotated[str | None, Query(max_length=255)] = None,
    search: Annotated[str | None, Query(max_length=1000)] = None,
) -> Response:
    """Sources with what there is of them, newest first; `search` is a part of the title or the
    address."""
    size = min(max(per_page, 1), 100)
    everything = await list_sources(caller.queue, tenant=caller.tenant)
    wanted = (search or "").lower()
    fitting = [
        one
        for one in sorted(everything, key=lambda one: one.source.created_at, reverse=True)
        if (wanted in one.source.title.lower() or wanted in one.source.uri.lower())
        and knowledge_type in (None, one.source.options.get("knowledge_type"))
    ]
    shown = [show_source(one) for one in fitting[(page - 1) * size : page * size]]
    body = {
        "items": shown,
        "total": len(fitting),
        "page": page,
        "per_page": size,
        "pages": -(-len(fitting) // size),
    }
    return answer(body)


@router.get("/knowledge-items/{source_id}")
async def get_item(source_id: SourceId, caller: Reader) -> Response:
    """A source with what there is of it, and how many jobs work for it."""
    source = await own_source(caller.queue, source_id, caller.tenant)
    return answer(show_source(await get_info(caller.queue, source.tenant, source.id)))


@router.put("/knowledge-items/{source_id}", openapi_extra=takes_type(ChangeBody))
async def change_item(request: Request, source_id: SourceId, caller: Writer) -> Response:
    """Another title, other tags for what comes, another time between looks."""
    source = await own_source(caller.queue, source_id, caller.tenant)
    wanted = await read(request, ChangeBody)
    changes: dict[str, Any] = {}
    if wanted.title is not UNSET:
        changes["title"] = wanted.title
    if wanted.tags is not UNSET:
        changes["tags"] = tuple(wanted.tags)
    if wanted.update_frequency is not UNSET:
        changes["refresh_seconds"] = _seconds(wanted.update_frequency)
    if wanted.knowledge_type is not UNSET:
        changes["options"] = {**source.options, "knowledge_type": wanted.knowledge_type}
    await change_source(caller.queue, source, **changes)
    return answer({"success": True, "source_id": source.id, "message": "Changed"})


@router.post("/knowledge-items/{source_id}/refresh")
async def refresh(source_id: SourceId, caller: Writer) -> Response:
    """Look at a source again, with the options it was added with. If that is being done already,
    its progress is answered."""
    source = await own_source(caller.queue, source_id, caller.tenant)
    running = await find_running(caller.queue, source.tenant, source.id)
    if running is not None:
        return _begun(running, "It is being refreshed already")
    budget = await take_budget(caller.queue, caller.quota)
    try:
        job_id = await refresh_now(caller.queue, source, budget=budget)
    except InvalidOptions as error:
        said = str(error)
        raise ApiError(400, "BAD_REQUEST", said, detail={"error": said}) from error
    return _begun(job_id, "Refresh started")


@router.delete("/knowledge-items/{source_id}")
@router.delete("/sources/{source_id}")
async def delete_item(source_id: SourceId, caller: Writer) -> Response:
    """Remove a source with all its documents, which are found no more; what waits to be done for it
    is cancelled."""
    source = await own_source(caller.queue, source_id, caller.tenant)
    count = await remove_source(caller.queue, source)
    return answer(
        {
            "success": True,
            "source_id": source.id,
            "documents": count,
            "message": f"Removed with {count} documents",
        }
    )


@router.get("/rag/sources")
async def list_all(caller: Reader) -> Response:
    """Every source, for those who choose where to search."""
    found = await list_sources(caller.queue, tenant=caller.tenant)
    shown = [show_source(one) for one in found]
    return answer({"success": True, "sources": shown, "total": len(shown), "count": len(shown)})


def _crawl_options(wanted: CrawlBody) -> dict[str, Any]:
    if not 1 <= wanted.max_depth <= DEEPEST:
        raise unfit(f"max_depth: from 1 to {DEEPEST}, not {wanted.max_depth}")
    options: dict[str, Any] = {
        "maxDiscoveryDepth": wanted.max_depth - 1,
        "crawlEntireDomain": True,  # all that leads to the same site
    }
    if wanted.max_depth == 1:
        options |= {"sitemap": "skip", "llmsTxt": False}
    if wanted.limit is not None:
        options["limit"] = wanted.limit
    if wanted.url_include_patterns:
        options["includePaths"] = _patterns(wanted.url_include_patterns)
    if wanted.url_exclude_patterns:
        options["excludePaths"] = _patterns(wanted.url_exclude_patterns)
    if "includePaths" in options or "excludePaths" in options:
        options["regexOnFullURL"] = True
    return options


def _patterns(globs: Sequence[str]) -> list[str]:
    """As regular expressions on the whole address; `*` is anything, `/docs/*` any site's."""
    made = []
    for glob in globs:
        text = glob.strip()
        if not text:
            raise unfit("a pattern is empty")
        parts = [
            ".*" if one.startswith("*") else "." if one == "?" else re.escape(one)
            for one in re.findall(r"\*+|\?|[^*?]+", text)
        ]
        begin = r"^https?://[^/]+" if text.startswith("/") else "^"
        made.append(f"{begin}{''.join(parts)}$")
    return made


def _seconds(days: int) -> int | None:
    if not 0 <= days <= MOST_DAYS:
        raise unfit(f"update_frequency: from 0 (never) to {MOST_DAYS} days, not {days}")
    return days * DAY_SECONDS or None


def _begun(job_id: str, said: str) -> Response:
    return answer({"success": True, "progressId": job_id, "job_id": job_id, "message": said})
