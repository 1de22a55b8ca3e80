"""What the words of a chunk weigh (BM25), as both of Qdrant's indexes have them. How rare words are
is weighed by the index itself, when it is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import qdrant_edge

Weights = tuple[list[int], list[float]]  # words by their numbers, and the weight of each
# Those of texts, from somebody who does it elsewhere; None if that is better done here.
Weigh = Callable[[Sequence[str]], Awaitable[list[Weights] | None]]


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
