"""Texts become vectors: `Embedder`, and `open_embedder` for the one that the settings name.

Every embedder gives float32 rows of length one, so that the product of two is their likeness in any
home of the index. What it is called (`model`) and how long its vectors are (`dimension`) is kept
with a collection: vectors of two models say nothing about each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from windrow.errors import ConfigError
from windrow.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]  # (texts, dimension)
else:
    Vectors = Any

FASTEMBED: Final = "fastembed:"


class Embedder(Protocol):
    """async with open_embedder(settings) as embedder: await embedder.embed(["a text"])"""

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """One row of length one for each text, in their order.

        `query` says that these are asked, not searched: some models tell the two apart. Raises
        `EmbedderUnavailable` and `RateLimited` for what may work later, `EmbeddingRefused` for
        texts that never will.
        """
        ...

    async def close(self) -> None: ...


async def open_embedder(settings: Settings, *, dimension: int = 0) -> Embedder:
    """The embedder that the settings name.

    An endpoint is asked once how long its vectors are, unless that is known: from the settings, or
    as `dimension` from the collection that is to be searched.
    """
    if not settings.embed_url:
        from windrow.index.embed.local import local_embedder

        return local_embedder()
    if not settings.embed_model:
        raise ConfigError("embed_url is set, but not embed_model: which model is to be asked?")
    if settings.embed_url == FASTEMBED:
        from windrow.index.embed.fast import FastEmbedder

        return await FastEmbedder.open(settings.embed_model)
    from windrow.index.embed.endpoint import EndpointEmbedder

    return await EndpointEmbedder.open(settings, dimension=dimension)
