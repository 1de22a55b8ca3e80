"""`Aside`: texts are cut, embedded and weighed in a process of their own, once there is much to do.

The engine of the embedded index never lets go of the interpreter, so whoever does this and writes
in one process uses one processor, and searches there wait for it. What comes before the process is
there, and what one that was killed has not answered, is done here.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from windrow.errors import ProcessDied
from windrow.index.chunk import Chunk, chunk
from windrow.index.qdrant_terms import Weights, weigh
from windrow.worker.processes import Processes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from windrow.index.embed.local import LocalEmbedder

logger = logging.getLogger(__name__)

MUCH: Final = 4_000_000  # characters after which another process is worth its start and its memory
LITTLE: Final = 20_000  # characters that are done faster than they are handed over

Texts = Sequence[tuple[str, str]]  # each with its language
T = TypeVar("T")

_CHUNKS: Final = msgspec.msgpack.Decoder(list[list[Chunk]])
_WEIGHTS: Final = msgspec.msgpack.Decoder(list[Weights])


class Aside:
    """`much` in characters; None: there never is, all of it is done here."""

    def __init__(self, much: int | None = MUCH) -> None:
        self._much = much if (os.cpu_count() or 1) > 1 else None
        self._done = 0
        self._processes = Processes(1)
        self._starting: asyncio.Task[None] | None = None

    async def cut(self, texts: Texts) -> list[list[Chunk]]:
        if self._is_worth(sum(len(text) for text, _ in texts)):
            return _CHUNKS.decode(await self._run(_cut_packed, texts))
        return await asyncio.to_thread(_cut, texts)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """By the local model; None if that is better done here."""
        return await self._run(_embed, texts) if self._is_worth(sum(map(len, texts))) else None

    async def weigh(self, texts: Sequence[str]) -> list[Weights] | None:
        """The words of texts; None if that is better done here."""
        if self._is_worth(sum(map(len, texts))):
            return _WEIGHTS.decode(await self._run(_weigh_packed, texts))
        return None

    def begin(self) -> asyncio.Task[None]:
        """Have the process started, which takes a second; that is over when it is there."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        return self._starting

    async def close(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        await self._processes.close()

    def _is_worth(self, size: int) -> bool:
        self._done += size
        return self._much is not None and size > LITTLE and self._done > self._much

    async def _start(self) -> None:
        try:
            async with self._processes.child():
                return
        except ProcessDied as error:
            logger.warning("the process beside the owner of the index: %s", error)

    async def _run(self, function: Callable[[Any], T], texts: Sequence[Any]) -> T:
        if not self.begin().done():
            return await asyncio.to_thread(function, texts)
        try:
            async with self._processes.child() as child:
                return await child.run(function, texts)
        except ProcessDied as error:
            logger.warning("the process beside the owner of the index: %s", error)
            return await asyncio.to_thread(function, texts)


class AsideEmbedder:
    """The local model: for questions here, for texts by the hundred in the other process."""

    def __init__(self, local: LocalEmbedder, aside: Aside) -> None:
        self._local = local
        self._aside = aside
        self.model: str = local.model
        self.dimension = local.dimension

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        rows = None if query else await self._aside.embed(texts)
        return await self._local.embed(texts, query=query) if rows is None else rows

    async def close(self) -> None:
        """Nothing: the other process is that of others too."""


def _cut(texts: Texts) -> list[list[Chunk]]:
    return [chunk(text, language=language) for text, language in texts]


def _cut_packed(texts: Texts) -> bytes:
    return msgspec.msgpack.encode(_cut(texts))  # a tenth of the time that pickle takes


def _embed(texts: Sequence[str]) -> NDArray[np.float32]:
    from windrow.index.embed.local import local_embedder

    return local_embedder().embed_now(texts)


def _weigh_packed(texts: Sequence[str]) -> bytes:
    return msgspec.msgpack.encode(weigh(texts))
