"""The owner of the index: it writes, and answers those who ask through its socket.

A worker that finds the index owned by another process waits until that one is gone, and takes its
place then.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from windrow.catalog import Catalog
from windrow.errors import SearchError, StoreError, WindrowError
from windrow.index.aside import MUCH, Aside
from windrow.index.home import Index
from windrow.pipelines.index.awaiting import Overlooked, write_awaited
from windrow.pipelines.index.building import begin_build, rebuild, resume_build
from windrow.pipelines.index.context import Indexing, space_of
from windrow.pipelines.index.handlers import index_handlers
from windrow.pipelines.index.tidying import tidy_job
from windrow.queue.queue import Queue
from windrow.search.request import SearchRequest
from windrow.search.searcher import Searcher
from windrow.services.index_folder import claim_folder
from windrow.services.indexing import (
    Embedders,
    find_home,
    index_folder,
    make_searcher,
    open_index,
    open_rerank,
    owning,
    socket_path,
)
from windrow.settings import Settings
from windrow.worker.registry import Handler
from windrow.worker.worker import Worker

logger = logging.getLogger(__name__)

TAKEOVER_SECONDS: Final = 1.0  # between looks whether the owner is gone
KEEP_SECONDS: Final = 15.0  # between looks for what is to be removed, or made faster
WORTH_OPTIMIZING: Final = 2_000  # chunks more than the last time
LARGEST_LINE: Final = 16 * 1024 * 1024
CONCURRENCY: Final = 4
GRACE_SECONDS: Final = 10.0


@asynccontextmanager
async def open_index_handlers(settings: Settings, queue: Queue) -> AsyncIterator[list[Handler]]:
    """The handlers of the index, if they are this process's to run. If another one owns it there
    are none, and when that is gone a worker of its own takes its place here. Raises
    IndexElsewhere."""
    home = await find_home(settings)
    async with AsyncExitStack() as stack:
        if home == "edge":
            is_owner = stack.enter_context(owning(index_folder(settings)))
            if not is_owner:
                await stack.enter_async_context(_taking_over(settings, queue))
                yield []
                return
            await claim_folder(settings, queue.store)
        # Only the owner of an embedded index has nobody beside it to write.
        aside = Aside(MUCH if home == "edge" else None)
        stack.push_async_callback(aside.close)
        index = open_index(settings, home, aside)
        stack.push_async_callback(index.close)
        listens = socket_path(index_folder(settings)) if home == "edge" else None
        indexing = await stack.enter_async_context(_serving(settings, queue, index, aside, listens))
        yield index_handlers(indexing)


@asynccontextmanager
async def _serving(
    settings: Settings, queue: Queue, index: Index, aside: Aside, listens: Path | None
) -> AsyncIterator[Indexing]:
    """What the owner does besides its jobs: it answers, and sees to what is to be done."""
    embedders = Embedders(settings, aside)
    indexing = Indexing(queue, index, embedders.find, aside.cut)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(embedders.close)
        await check_index(indexing)
        if listens is not None:
            rerank = await stack.enter_async_context(open_rerank(settings))
            searcher = make_searcher(queue, index, embedders, rerank)
            await stack.enter_async_context(listening(listens, searcher))
        await stack.enter_async_context(_running(_keep(indexing)))
        yield indexing


async def check_index(indexing: Indexing) -> None:
    """Build again what was lost, begin what another model asks for, and go on with what was begun
    and left, writes too."""
    store = indexing.queue.store
    there = set(await indexing.index.spaces())
    for collection in await Catalog(store.database).collections.find():
        if space_of(collection).name not in there:
            count = await rebuild(indexing.queue, collection)
            if count:
                logger.warning("the index of %s is built again: %d texts", collection.name, count)
        wanted = await indexing.find_embedder(None)
        if wanted is None or wanted.model == collection.embedder:
            continue
        if not store.capabilities.groups:
            logger.warning(
                "collection %s stays with %s: this store has no groups, which another model needs",
                collection.name,
                collection.embedder,
            )
        elif collection.next_embedder != wanted.model:
            logger.info("collection %s is embedded anew with %s", collection.name, wanted.model)
            await begin_build(indexing.queue, collection, wanted)
        elif await resume_build(indexing.queue, collection, wanted):
            logger.info("building %s with %s goes on", collection.name, wanted.model)
    if count := await write_awaited(indexing.queue):
        logger.info("%d texts are given to the index again", count)


@asynccontextmanager
async def listening(path: Path, searcher: Searcher) -> AsyncIterator[None]:
    """Answer searches of other processes of this user: a line of JSON each way."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(await _answered(searcher, line) + b"\n")
                await writer.drain()
        writer.close()

    with _bound(path) as bound:
        server = await asyncio.start_unix_server(answer, sock=bound, limit=LARGEST_LINE)
        try:
            yield
        finally:
            server.close()


@contextmanager
def _bound(path: Path) -> Iterator[socket.socket]:
    """A socket there that only this user may use."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)  # of an owner that was killed
    with socket.socket(socket.AF_UNIX) as bound:
        before = os.umask(0o177)
        try:
            bound.bind(os.fspath(path))
        finally:
            os.umask(before)
        try:
            yield bound
        finally:
            path.unlink(missing_ok=True)


async def _answered(searcher: Searcher, line: bytes) -> bytes:
    try:
        request = msgspec.json.decode(line, type=SearchRequest)
        return msgspec.json.encode({"answer": await searcher.search(request)})
    except msgspec.DecodeError as error:
        return msgspec.json.encode({"error": str(error), "type": "InvalidSearch"})
    except WindrowError as error:
        return msgspec.json.encode({"error": str(error), "type": type(error).__name__})


async def _keep(indexing: Indexing) -> None:
    """See to it that what was dropped is removed, by whatever it was dropped, that what was put is
    written, and that searches stay fast."""
    keeper = Keeper(indexing)
    while True:
        try:
            await keeper.tidy()
            await keeper.write_overlooked()
            await keeper.optimize()
        except (StoreError, SearchError) as error:
            logger.warning("looking after the index: %s", error)
        await asyncio.sleep(KEEP_SECONDS)


class Keeper:
    def __init__(self, indexing: Indexing) -> None:
        self._indexing = indexing
        self._overlooked = Overlooked(indexing.queue)
        self._optimized: dict[str, int] = {}  # chunks there were, by space

    async def tidy(self) -> None:
        if await Catalog(self._indexing.queue.database).contents.find_dropped(1):
            await self._indexing.queue.enqueue_many([tidy_job()])

    async def write_overlooked(self) -> None:
        if count := await self._overlooked.write_some():
            logger.warning("%d texts that nobody was to write are given to the index", count)

    async def optimize(self) -> None:
        """Once there is a good deal more than there was the last time. What a former owner wrote
        counts as new: to optimize what is optimal costs nothing."""
        collections = await Catalog(self._indexing.queue.database).collections.find()
        for space in {space_of(one) for one in collections}:
            count = await self._indexing.index.count(space)
            before = self._optimized.get(space.name, 0)
            if abs(count - before) >= max(WORTH_OPTIMIZING, before // 5):
                await self._indexing.index.optimize(space)
                self._optimized[space.name] = count


@asynccontextmanager
async def _taking_over(settings: Settings, queue: Queue) -> AsyncIterator[None]:
    """Wait for the owner to be gone, then own the index, with a worker for it. Where that fails, as
    without a database, or where the index has been moved to another machine, try again."""
    stops: list[Callable[[], None]] = []

    async def take_over() -> None:
        while True:
            wait = TAKEOVER_SECONDS
            with owning(index_folder(settings)) as is_owner:
                if is_owner:
                    try:
                        await _own(settings, queue, stops)
                    except (StoreError, SearchError) as error:
                        stops.clear()
                        wait = KEEP_SECONDS
                        logger.error("the index is not owned: %s; next try in %g s", error, wait)
                    else:
                        return
            await asyncio.sleep(wait)

    task = asyncio.create_task(take_over(), name="windrow index owner")
    try:
        yield
    finally:
        for stop in stops:
            stop()
        if not stops:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _own(settings: Settings, queue: Queue, stops: list[Callable[[], None]]) -> None:
    await claim_folder(settings, queue.store)
    logger.info("this process owns the index now")
    aside = Aside(MUCH)
    index = open_index(settings, "edge", aside)
    listens = socket_path(index_folder(settings))
    try:
        async with _serving(settings, queue, index, aside, listens) as indexing:
            worker = Worker(
                queue,
                index_handlers(indexing),
                concurrency=CONCURRENCY,
                grace=GRACE_SECONDS,
                maintain=False,
                announce=False,
            )
            stops.append(worker.stop)
            await worker.run()
    finally:
        await index.close()
        await aside.close()


@asynccontextmanager
async def _running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
