"""A search: the question is embedded, the index asked, what no document names left out.

The index may have chunks of contents that are not shown: old ones that are not removed yet, new
ones that are not switched to yet. So it is asked for more than is needed, and asked again only if
too few are left.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Protocol

from windrow.errors import ProviderError, RateLimited
from windrow.index.globs import fits
from windrow.index.home import Hit, Index, Mode, Query, Space
from windrow.search.request import Found, SearchAnswer, SearchRequest
from windrow.search.snippets import snippet

MORE: Final = 3  # times as many as are wanted are asked for
MOST_ASKED: Final = 3_000
RERANKED: Final = 5  # times as many are looked at when they are put in another order
NO_MODEL: Final = "The model of the collection is not configured: only words were looked for"
NO_RERANKER: Final = "There is no reranker (rerank_url): results are in the order of the index"


class Document(Protocol):
    """What is needed of a document."""

    @property
    def id(self) -> str: ...
    @property
    def tenant(self) -> str | None: ...
    @property
    def collection(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def branch(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def language(self) -> str: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def content(self) -> str | None: ...
    @property
    def dated_at(self) -> datetime | None: ...


class Embedder(Protocol):
    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Any: ...


class Place(Protocol):
    """A space to look in, with the model it was written with."""

    @property
    def space(self) -> Space: ...
    @property
    def model(self) -> str: ...
    @property
    def is_whole(self) -> bool:
        """Whether all collections in it are asked for: then the index need not pick them out."""
        ...


# The spaces that the collections asked for are in.
FindPlaces = Callable[[str | None, tuple[str, ...]], Awaitable[Sequence[Place]]]
FindNamed = Callable[[Sequence[str], str | None], Awaitable[Sequence[Document]]]
FindEmbedder = Callable[[str], Awaitable[Embedder | None]]
# Takes a question and what was found, and gives it back in a better order. What it raises for a
# reranker that is away is ProviderError or RateLimited.
Rerank = Callable[[str, Sequence[Found]], Awaitable[Sequence[Found]]]


class Searcher:
    def __init__(
        self,
        index: Index,
        find_places: FindPlaces,
        find_named: FindNamed,
        find_embedder: FindEmbedder,
        rerank: Rerank | None = None,
    ) -> None:
        self._index = index
        self._find_places = find_places
        self._find_named = find_named
        self._find_embedder = find_embedder
        self._rerank = rerank

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """Raises InvalidSearch, IndexUnavailable."""
        request.check()
        began = time.perf_counter()
        reranks = request.rerank and self._rerank is not None
        wanted = request.limit * (RERANKED if reranks else 1)
        found: list[Found] = []
        warning = None
        for place in await self._find_places(request.tenant, request.collections):
            mode, vector = await self._vector(request, place)
            if mode != request.mode:
                warning = NO_MODEL
            if mode is not None:
                found += await self._search(request, place, mode, vector, wanted)
        found.sort(key=lambda one: -one.score)
        is_reranked = False
        if request.rerank:
            try:
                found, is_reranked = await self._reranked(request.query, found[:wanted])
                warning = warning if is_reranked else NO_RERANKER
            except (ProviderError, RateLimited) as error:
                warning = f"Results are in the order of the index: {error}"
        return SearchAnswer(
            results=tuple(found[: request.limit]),
            mode=request.mode,
            seconds=time.perf_counter() - began,
            is_reranked=is_reranked,
            warning=warning,
        )

    async def _reranked(self, query: str, found: list[Found]) -> tuple[list[Found], bool]:
        """In a better order, if there is somebody who knows one."""
        if self._rerank is None:
            return found, False
        return list(await self._rerank(query, found)), True

    async def _vector(
        self, request: SearchRequest, place: Place
    ) -> tuple[Mode | None, Sequence[float]]:
        """The question as the space's model puts it. Without that model only words can be looked
        for."""
        if request.mode == "keyword":
            return "keyword", ()
        embedder = await self._find_embedder(place.model)
        if embedder is None:
            return ("keyword" if request.mode == "hybrid" else None), ()
        [vector] = await embedder.embed([request.query], query=True)
        return request.mode, vector

    async def _search(
        self,
        request: SearchRequest,
        place: Place,
        mode: Mode,
        vector: Sequence[float],
        wanted: int,
    ) -> list[Found]:
        asked = wanted * MORE
        meant = request.filter()
        if place.is_whole:
            meant = replace(meant, collections=())
        enough: int | None = wanted  # as long as all of them are shown
        while True:
            query = Query(request.query, vector, mode, asked, meant, enough)
            hits = await self._index.search(place.space, query)
            found = await self._shown(request, hits, wanted)
            if len(found) >= wanted:
                return found
            if enough is not None and len({hit.content for hit in hits}) >= enough:
                enough = None  # others may have been left out
            elif len(hits) < asked or asked >= MOST_ASKED:
                return found
            else:
                asked, enough = min(asked * 4, MOST_ASKED), None

    async def _shown(self, request: SearchRequest, hits: Sequence[Hit], wanted: int) -> list[Found]:
        """Those that documents name now, of each document the best ones. Documents are looked up
        for as many contents as are wanted, and for more only if some of these are not shown."""
        named: defaultdict[str, list[Document]] = defaultdict(list)
        contents = list(dict.fromkeys(hit.content for hit in hits))
        shown: Counter[tuple[str, ...]] = Counter()
        found: list[Found] = []
        looked_up: set[str] = set()
        for hit in hits:
            if hit.content not in looked_up:
                place = contents.index(hit.content)
                some = contents[place : place + wanted]
                looked_up.update(some)
                for one in await self._find_named(some, request.tenant):
                    named[one.content or ""].append(one)
            document = _best(named[hit.content], request)
            if document is None or shown[_place(document)] >= request.per_document:
                continue
            shown[_place(document)] += 1
            found.append(_found(hit, document, request.query))
            if len(found) >= wanted:
                break
        return found


def _place(document: Document) -> tuple[str, ...]:
    """What counts as one document: a page may be one of a source and one of a crawl."""
    if document.uri.startswith(("http://", "https://")):
        return document.tenant or "", document.collection, document.uri
    return (document.id,)


def _best(documents: Sequence[Document], request: SearchRequest) -> Document | None:
    """Of documents that share a content, as branches do, the first that is meant. What documents
    say counts, not what the index was told last, nor what another of them says."""
    for document in sorted(documents, key=lambda one: (one.branch, one.id)):
        if _is_meant(document, request):
            return document
    return None


def _is_meant(document: Document, request: SearchRequest) -> bool:
    return (
        (request.branch is None or document.branch == request.branch)
        and (not request.collections or document.collection in request.collections)
        and (not request.sources or document.source in request.sources)
        and (request.path is None or fits(request.path, document.uri))
        and (not request.languages or document.language in request.languages)
        and set(request.tags) <= set(document.tags)
        and _is_within(document.dated_at, request)
    )


def _is_within(dated_at: datetime | None, request: SearchRequest) -> bool:
    if request.since is None and request.until is None:
        return True
    if dated_at is None:
        return False
    at = dated_at.timestamp()
    return (request.since is None or at >= request.since) and (
        request.until is None or at <= request.until
    )


def _found(hit: Hit, document: Document, query: str) -> Found:
    shown, highlights = snippet(hit.text, query)
    return Found(
        document=document.id,
        content=hit.content,
        tenant=document.tenant,
        collection=document.collection,
        source=document.source,
        uri=document.uri,
        branch=document.branch,
        title=document.title,
        language=document.language,
        tags=document.tags,
        score=hit.score,
        why=dict(hit.ranks),
        headings=hit.headings,
        start=hit.start,
        end=hit.end,
        text=hit.text,
        snippet=shown,
        highlights=highlights,
        dated_at=None if document.dated_at is None else document.dated_at.timestamp(),
    )
