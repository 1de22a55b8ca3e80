"""The adapter of the extra `fastembed`, which downloads its models: a stand-in takes its place.

The stand-in has the signatures of fastembed's `TextEmbedding` that the adapter uses, and gives rows
as that does, by generators of arrays; what real models say of texts is no part of this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from windrow.errors import EmbedderUnavailable
from windrow.index.embed import open_embedder
from windrow.settings import Settings

KNOWN = "BAAI/bge-small-en-v1.5"
SETTINGS = Settings(embed_url="fastembed:", embed_model=KNOWN)


class TextEmbedding:
    """A row says how long a text is, and whether it was a question."""

    asked: list[tuple[list[str], int]]  # by the last that was made

    def __init__(self, model_name: str = KNOWN, cache_dir: str | None = None, **_: Any) -> None:
        if model_name != KNOWN:
            raise ValueError(f"Model {model_name} is not supported in TextEmbedding.")
        self.embedding_size = 3
        TextEmbedding.asked = []

    def embed(
        self,
        documents: str | Iterable[str],
        batch_size: int = 256,
        parallel: int | None = None,
        **_: Any,
    ) -> Iterator[NDArray[np.float64]]:
        texts = [documents] if isinstance(documents, str) else list(documents)
        TextEmbedding.asked.append((texts, batch_size))
        for text in texts:
            yield np.array([len(text), 1, 0], np.float64)

    def passage_embed(self, texts: Iterable[str], **more: Any) -> Iterator[NDArray[np.float64]]:
        yield from self.embed(texts, **more)

    def query_embed(self, query: str | Iterable[str], **_: Any) -> Iterator[NDArray[np.float64]]:
        for text in [query] if isinstance(query, str) else query:
            yield np.array([len(text), 0, 1], np.float64)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fastembed")
    module.TextEmbedding = TextEmbedding  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastembed", module)


async def test_rows_are_of_length_one_in_the_order_of_the_texts() -> None:
    embedder = await open_embedder(SETTINGS)
    assert (embedder.model, embedder.dimension) == (f"fastembed/{KNOWN}", 3)

    rows = await embedder.embed(["aaa", "b", "", "x\ud800"])

    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert [round(float(row[0] / row[1])) for row in rows[:3]] == [3, 1, 1]
    [(texts, at_once)] = TextEmbedding.asked
    assert texts[2] == " ", "an empty text is sent as a space"
    assert texts[3].encode(), "and nothing that cannot be encoded"
    assert at_once == 8
    assert (await embedder.embed([])).shape == (0, 3)


async def test_questions_are_embedded_as_questions() -> None:
    embedder = await open_embedder(SETTINGS)

    [row] = await embedder.embed(["what?"], query=True)

    assert (round(float(row[0] / row[2])), float(row[1])) == (5, 0.0)


async def test_model_that_it_does_not_have_is_said() -> None:
    with pytest.raises(EmbedderUnavailable, match=r"no model 'other': .*not supported"):
        await open_embedder(Settings(embed_url="fastembed:", embed_model="other"))
