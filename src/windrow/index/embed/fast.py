"""`FastEmbedder`: the models of the extra `fastembed`, run in this process.

It downloads a model when it is first asked for, so this is not for machines without a network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from windrow.errors import EmbedderUnavailable, MissingExtra
from windrow.index.chunk import without_lone_surrogates
from windrow.index.embed.unit import to_unit_length

BATCH: Final = 8  # texts; larger ones take more memory and are no faster


class FastEmbedder:
    def __init__(self, name: str, engine: Any) -> None:
        self.model = f"fastembed/{name}"
        self._engine = engine
        self.dimension: int = engine.embedding_size
        self._one_at_a_time = asyncio.Lock()  # it uses all cores for one batch

    @classmethod
    async def open(cls, name: str) -> Self:
        try:
            from fastembed import TextEmbedding
        except ImportError as error:
            raise MissingExtra("fastembed", "its models") from error
        try:
            return cls(name, await asyncio.to_thread(TextEmbedding, name))
        except (OSError, ValueError) as error:
            raise EmbedderUnavailable(f"fastembed has no model {name!r}: {error}") from error

    async def close(self) -> None:
        """Nothing: it is gone with the last who uses it."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        cleaned = [without_lone_surrogates(text) or " " for text in texts]
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._embed, cleaned, query)

    def _embed(self, texts: list[str], query: bool) -> NDArray[np.float32]:
        embed = self._engine.query_embed if query else self._engine.passage_embed
        rows = list(embed(texts) if query else embed(texts, batch_size=BATCH))
        if not rows:
            return np.zeros((0, self.dimension), np.float32)
        return to_unit_length(np.stack(rows).astype(np.float32))
