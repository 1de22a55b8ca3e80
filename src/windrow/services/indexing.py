"""Where the index is, who may write to it, and the parts that writing and searching share.

The embedded index belongs to one process at a time, the *owner*: it holds a lock beside the index,
runs the jobs of the queue `index`, and answers other processes through a socket there. An index in
a server has no owner: every worker writes to it, everybody searches it.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from windrow.catalog import Catalog
from windrow.index.home import Index, Space
from windrow.pipelines.index.context import Chunk, space_of
from windrow.queue.bullmq.location import tables_url
from windrow.queue.queue import Queue
from windrow.settings import Settings, data_folder

if TYPE_CHECKING:
    from windrow.index.aside import Aside
    from windrow.index.embed import Embedder
    from windrow.search.searcher import Rerank, Searcher

Home = Literal["edge", "qdrant", "pgvector"]
LONGEST_SOCKET: Final = 100  # bytes of a socket's path; the system takes 107
OWN_OPTIONS: Final = frozenset({"pooled", "prepared", "pool_size"})  # of our URLs, not Postgres'


async def find_home(settings: Settings) -> Home:
    """Where the index is: in the Qdrant server that is named, in the same Postgres if it can be,
    else in a folder."""
    if settings.qdrant_url:
        return "qdrant"
    if not is_postgres(settings):
        return "edge"
    return "pgvector" if await _has_vector(settings) else "edge"


def open_index(settings: Settings, home: Home, aside: Aside | None = None) -> Index:
    """The index itself; of an embedded one its owner must hold the lock. What is done `aside` for
    it is not done here."""
    if home == "qdrant":
        from windrow.index.qdrant import QdrantIndex

        return QdrantIndex(settings.qdrant_url, settings.qdrant_key)
    if home == "pgvector":
        from windrow.index.pgvector import PgvectorIndex

        return PgvectorIndex(_plain_dsn(tables_url(settings.database_url)))
    from windrow.index.edge import EdgeIndex

    return EdgeIndex(spaces_folder(settings), aside.weigh if aside else None)


def index_folder(settings: Settings) -> Path:
    """The folder of this database's index, its lock and its socket."""
    if is_postgres(settings):
        parts = urlsplit(tables_url(settings.database_url))
        named = f"{parts.hostname}:{parts.port or 5432}{parts.path}"
    else:
        path = urlsplit(tables_url(settings.database_url)).path.removeprefix("/")
        named = str(Path(path).resolve())
    digest = hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return data_folder(settings) / "index" / digest


def spaces_folder(settings: Settings) -> Path:
    """Where an embedded index has its spaces."""
    return index_folder(settings) / "spaces"


def socket_path(folder: Path) -> Path:
    """Where the owner of an index listens; elsewhere if the name would be too long for a socket."""
    path = folder / "owner.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET:
        return path
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"windrow-{os.getuid()}-{digest}.sock"


@contextmanager
def owning(folder: Path) -> Iterator[bool]:
    """Whether the index in this folder is ours, as long as this lasts. A process that dies loses
    it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "owner.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield True


class Embedders:
    """Embedders by their models: the one of the settings, and the local one, opened when needed.
    Where much is embedded, the local one does it `aside`."""

    def __init__(self, settings: Settings, aside: Aside | None = None) -> None:
        self._settings = settings
        self._aside = aside
        self._opened: list[Embedder] = []
        self._opening = asyncio.Lock()

    async def find(self, model: str | None) -> Embedder | None:
        async with self._opening:
            if not self._opened:
                self._opened.append(await self._configured())
            if model is None:
                return self._opened[0]
            for one in self._opened:
                if one.model == model:
                    return one
            return self._local(model)

    async def _configured(self) -> Embedder:
        from windrow.index.embed import open_embedder

        return self._aside_if_local(await open_embedder(self._settings))

    def _local(self, model: str) -> Embedder | None:
        from windrow.index.embed.local import local_embedder

        local = self._aside_if_local(local_embedder())
        if local.model != model:
            return None
        self._opened.append(local)
        return local

    def _aside_if_local(self, embedder: Embedder) -> Embedder:
        if self._aside is None:
            return embedder
        from windrow.index.aside import AsideEmbedder
        from windrow.index.embed.local import LocalEmbedder

        if isinstance(embedder, LocalEmbedder):
            return AsideEmbedder(embedder, self._aside)
        return embedder

    async def close(self) -> None:
        for one in self._opened:
            await one.close()
        self._opened.clear()


@dataclass(frozen=True, slots=True)
class SearchedSpace:
    space: Space
    model: str
    is_whole: bool


def cut(text: str, language: str) -> Sequence[Chunk]:
    """A text as the chunks that the index has of it. Takes time."""
    from windrow.index.chunk import chunk  # not at the top: grammars come with it

    return chunk(text, language=language)


def make_searcher(
    queue: Queue, index: Index, embedders: Embedders, rerank: Rerank | None = None
) -> Searcher:
    catalog = Catalog(queue.database)

    async def find_places(tenant: str | None, names: tuple[str, ...]) -> Sequence[SearchedSpace]:
        found = await catalog.collections.find(tenant)
        wanted = [one for one in found if not names or one.name in names]
        others = {space_of(one).name for one in found if names and one.name not in names}
        places = {}
        for one in wanted:
            space = space_of(one)
            # Of the collections of other tenants in it nothing is known if one tenant asks.
            is_whole = tenant is None and space.name not in others
            places[space.name] = SearchedSpace(space, one.embedder, is_whole)
        return list(places.values())

    from windrow.search.searcher import Searcher

    return Searcher(index, find_places, catalog.documents.find_named, embedders.find, rerank)


@asynccontextmanager
async def open_rerank(settings: Settings) -> AsyncIterator[Rerank | None]:
    """Who puts results in another order, if the settings name somebody."""
    if not settings.rerank_url:
        yield None
        return
    from windrow.search.reranker import EndpointReranker

    async with EndpointReranker.from_settings(settings) as reranker:
        yield reranker.rerank


def is_postgres(settings: Settings) -> bool:
    return tables_url(settings.database_url).partition(":")[0] in ("postgresql", "postgres")


async def _has_vector(settings: Settings) -> bool:
    """Whether the extension is there, or can be made by whoever this is."""
    import asyncpg

    connection: Any = await asyncpg.connect(
        _plain_dsn(tables_url(settings.database_url)), statement_cache_size=0
    )
    try:
        return bool(
            await connection.fetchval(
                "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') OR ("
                "EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') AND "
                "has_database_privilege(current_database(), 'CREATE'))"
            )
        )
    finally:
        await connection.close()


def _plain_dsn(url: str) -> str:
    """A URL without the options that are ours."""
    parts = urlsplit(url)
    options = [(k, v) for k, v in parse_qsl(parts.query, True) if k not in OWN_OPTIONS]
    return urlunsplit(parts._replace(query=urlencode(options)))
