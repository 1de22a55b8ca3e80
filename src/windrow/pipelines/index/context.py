"""What the handlers of the index share: the queue, the index, and embedders by their models."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from windrow.catalog import Catalog
from windrow.catalog.sources import Collection
from windrow.errors import ConfigError
from windrow.index.home import Index, Space
from windrow.queue.queue import Queue

MAX_NAME: Final = 40  # of a model's name; Postgres takes 63 characters, and an index adds its own


class Embedder(Protocol):
    """What is needed of an embedder: see `windrow.index.embed`."""

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Any: ...


class Chunk(Protocol):
    """A part of a text, as `windrow.index.chunk` cuts it."""

    @property
    def ordinal(self) -> int: ...

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def headings(self) -> tuple[str, ...]: ...

    @property
    def text(self) -> str: ...

    def in_context(self, title: str = "") -> str: ...


# Texts, each with its language, become chunks.
Cut = Callable[[Sequence[tuple[str, str]]], Awaitable[Sequence[Sequence[Chunk]]]]
# The embedder of a model; None: the one that new collections get. None if it cannot be had.
FindEmbedder = Callable[[str | None], Awaitable[Embedder | None]]


@dataclass(slots=True)
class Indexing:
    queue: Queue
    index: Index
    find_embedder: FindEmbedder
    cut: Cut

    async def collection(self, tenant: str | None, name: str) -> Collection:
        """As it is now; made with the model of now if there is none yet."""
        catalog = Catalog(self.queue.database)
        for found in await catalog.collections.find(tenant or "", name):
            return found
        embedder = await self.find_embedder(None)
        if embedder is None:
            raise ConfigError(
                f"there is no model to embed the texts of the new collection {name!r}"
            )
        return await catalog.collections.ensure(tenant, name, embedder.model, embedder.dimension)


def space_of(collection: Collection) -> Space:
    """Where searches of a collection look."""
    name = _space_name(collection.embedder, collection.dimension, collection.generation)
    return Space(name, collection.dimension)


def next_space_of(collection: Collection) -> Space | None:
    """Where the generation is that is being built, if one is."""
    if collection.next_generation is None or collection.next_dimension is None:
        return None
    name = _space_name(
        collection.next_embedder or "", collection.next_dimension, collection.next_generation
    )
    return Space(name, collection.next_dimension)


def _space_name(model: str, dimension: int, generation: int) -> str:
    """The name of a space: one for each model and generation, whichever collections are in it."""
    plain = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    if plain != model:
        # Two names that look alike now are still two.
        digest = hashlib.sha256(model.encode()).hexdigest()[:6]
        plain = f"{plain[: MAX_NAME - 7]}-{digest}"
    return f"{plain[:MAX_NAME]}-{dimension}-{generation}"
