"""Searching what was ingested: through the owner of the index if there is one, else by oneself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from windrow.errors import IndexUnavailable, InvalidSearch, SearchError
from windrow.index.home import Index
from windrow.queue.queue import Queue
from windrow.search.request import SearchAnswer, SearchRequest
from windrow.services.index_folder import check_folder
from windrow.services.indexing import (
    Embedders,
    Home,
    find_home,
    index_folder,
    make_searcher,
    open_index,
    open_rerank,
    owning,
    socket_path,
)
from windrow.services.jobs import open_queue
from windrow.settings import Settings

LARGEST_ANSWER: Final = 64 * 1024 * 1024
PATIENCE_SECONDS: Final = 10.0  # for an owner that is just beginning, or somebody else's search
PAUSE_SECONDS: Final = 0.05


class _Reply(msgspec.Struct):
    answer: SearchAnswer | None = None
    error: str | None = None
    type: str | None = None


async def search(settings: Settings, request: SearchRequest) -> SearchAnswer:
    """What fits a request best. Raises InvalidSearch, IndexUnavailable."""
    request.check()
    # An owner answers without a look at the database here.
    if not settings.qdrant_url:
        answer = await ask_owner(socket_path(index_folder(settings)), request)
        if answer is not None:
            return answer
    async with open_queue(settings, migrate=None) as queue, Searching(settings, queue) as searching:
        return await searching.search(request)


async def find_source_ids(
    settings: Settings, named: Sequence[str], tenant: str | None
) -> list[str]:
    """The ids of sources that somebody calls so. Raises SourceNotFound."""
    from windrow.services.knowledge import find_source_id  # most searches are of all sources

    async with open_queue(settings, migrate=None) as queue:
        return [await find_source_id(queue, one, tenant=tenant) for one in named]


class Searching:
    """Searches for a process that does many. What it opens stays open; not the embedded index,
    which somebody may want to own."""

    def __init__(self, settings: Settings, queue: Queue) -> None:
        self._settings = settings
        self._queue = queue
        self._embedders = Embedders(settings)
        self._home: Home | None = None
        self._index: Index | None = None

    async def __aenter__(self) -> Searching:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._embedders.close()
        if self._index is not None:
            await self._index.close()

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """Raises InvalidSearch, IndexUnavailable."""
        request.check()
        if self._home is None:
            self._home = await find_home(self._settings)
        if self._home == "edge":
            return await self._search_edge(request)
        if self._index is None:
            self._index = open_index(self._settings, self._home)
        return await self._search(self._index, request)

    async def _search_edge(self, request: SearchRequest) -> SearchAnswer:
        """Through the owner; where there is none, as the owner for a moment."""
        folder = index_folder(self._settings)
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = await ask_owner(socket_path(folder), request)
            if answer is not None:
                return answer
            await check_folder(self._settings, self._queue.store)
            with owning(folder) as is_owner:
                if is_owner:
                    return await self._search_alone(request)
            if time.monotonic() > give_up_at:
                raise IndexUnavailable("another process owns the index and does not answer")
            await asyncio.sleep(PAUSE_SECONDS)

    async def _search_alone(self, request: SearchRequest) -> SearchAnswer:
        index = open_index(self._settings, "edge")
        try:
            return await self._search(index, request)
        finally:
            await index.close()

    async def _search(self, index: Index, request: SearchRequest) -> SearchAnswer:
        async with open_rerank(self._settings) as rerank:
            searcher = make_searcher(self._queue, index, self._embedders, rerank)
            return await searcher.search(request)


async def ask_owner(path: Path, request: SearchRequest) -> SearchAnswer | None:
    """The owner's answer; None if there is no owner."""
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=LARGEST_ANSWER)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    try:
        writer.write(msgspec.json.encode(request) + b"\n")
        await writer.drain()
        line = await reader.readline()
    except ConnectionError:
        return None
    finally:
        writer.close()
    if not line:
        return None  # it ended before it could answer
    reply = msgspec.json.decode(line, type=_Reply)
    if reply.answer is not None:
        return reply.answer
    kinds: dict[str | None, type[SearchError]] = {"InvalidSearch": InvalidSearch}
    raise kinds.get(reply.type, IndexUnavailable)(reply.error)
