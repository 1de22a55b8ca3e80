"""What Qdrant's two indexes share, the embedded one and the server: conditions and word weights.

A filter becomes conditions: what is asked of the payload is the same, only the words for it differ.
`weigh` says what the words of a chunk weigh (BM25); how rare words are is weighed by the index
itself, when it is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from windrow.index.globs import literal_prefix
from windrow.index.home import Filter

if TYPE_CHECKING:
    import qdrant_edge

Weights = tuple[list[int], list[float]]  # words by their numbers, and the weight of each
# Those of texts, from somebody who does it elsewhere; None if that is better done here.
Weigh = Callable[[Sequence[str]], Awaitable[list[Weights] | None]]


@dataclass(frozen=True, slots=True)
class AnyOf:
    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BeginsWith:
    key: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Within:
    key: str
    since: float | None
    until: float | None


@dataclass(frozen=True, slots=True)
class Contains:
    key: str
    text: str


Condition = AnyOf | BeginsWith | Within | Contains


def conditions_of(filter: Filter, exact: str | None = None) -> Iterator[Condition]:
    """All of these hold for what is meant. Of a glob only how it begins is asked; the rest is for
    whoever reads the answer."""
    if filter.tenant is not None:
        yield AnyOf("tenant", (filter.tenant,))
    for key, values in (
        ("collection", filter.collections),
        ("source", filter.sources),
        ("language", filter.languages),
        ("branches", () if filter.branch is None else (filter.branch,)),
        *(("tags", (tag,)) for tag in filter.tags),
    ):
        if values:
            yield AnyOf(key, values)
    if filter.path is not None and (prefix := literal_prefix(filter.path)):
        yield BeginsWith("uri", prefix)
    if filter.since is not None or filter.until is not None:
        yield Within("date", filter.since, filter.until)
    if exact is not None:
        yield Contains("text", exact)


@cache
def bm25() -> qdrant_edge.Bm25:
    import qdrant_edge as edge

    # Words of prose as they are, identifiers as a whole and in their parts.
    return edge.Bm25(edge.Bm25Config(tokenizer=edge.TokenizerType.Code))


def weigh(texts: Sequence[str]) -> list[Weights]:
    """Takes CPU time: call it in a thread."""
    embed = bm25().embed_document
    found = [embed(text) for text in texts]
    return [(one.indices, one.values) for one in found]
