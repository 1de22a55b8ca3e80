"""What is asked, and what is answered."""

from __future__ import annotations

import msgspec

from windrow.errors import InvalidOptions, InvalidSearch
from windrow.index.globs import compile_glob
from windrow.index.home import MODES, Filter, Mode

MOST: int = 200
LONGEST_QUERY: int = 4_000


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`tenant` None: of all tenants, "": of none. Times in seconds since 1970."""

    query: str
    mode: Mode = "hybrid"
    limit: int = 10
    tenant: str | None = None
    collections: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    path: str | None = None
    languages: tuple[str, ...] = ()
    branch: str | None = None
    tags: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    per_document: int = 1  # chunks of one document that are shown
    rerank: bool = False

    def check(self) -> None:
        """Raises InvalidSearch."""
        if not self.query.strip():
            raise InvalidSearch("the query is empty")
        if len(self.query) > LONGEST_QUERY:
            raise InvalidSearch(f"the query has more than {LONGEST_QUERY} characters")
        if self.mode not in MODES:
            raise InvalidSearch(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        if not 1 <= self.limit <= MOST:
            raise InvalidSearch(f"limit must be from 1 to {MOST}, not {self.limit}")
        if self.per_document < 1:
            raise InvalidSearch("per_document must be at least 1")
        if self.path is not None:
            try:
                compile_glob(self.path)
            except InvalidOptions as error:
                raise InvalidSearch(str(error)) from error

    def filter(self) -> Filter:
        return Filter(
            tenant=self.tenant,
            collections=self.collections,
            sources=self.sources,
            path=self.path,
            languages=self.languages,
            branch=self.branch,
            tags=self.tags,
            since=self.since,
            until=self.until,
        )


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a document. `why` has the rank in each ranking that it was in; `highlights` are
    places in the snippet, `start` and `end` the place of the chunk in the document's text."""

    document: str
    content: str
    tenant: str | None
    collection: str
    source: str
    uri: str
    branch: str
    title: str
    language: str
    tags: tuple[str, ...]
    score: float
    why: dict[str, int]
    headings: tuple[str, ...]
    start: int
    end: int
    text: str
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    dated_at: float | None = None


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    results: tuple[Found, ...]
    mode: Mode
    seconds: float
    is_reranked: bool = False
    warning: str | None = None
