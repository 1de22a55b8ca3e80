"""Short ways to say what a test of indexing is about."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.index.words import DIMENSION, embed
from windrow.catalog import Catalog
from windrow.catalog.contents import ContentRow, content_id
from windrow.catalog.documents import DocumentRow
from windrow.catalog.sources import SourceRow
from windrow.ids import new_id
from windrow.index.home import Index, Space
from windrow.pipelines.index.context import Indexing, space_of
from windrow.pipelines.index.handlers import index_handlers
from windrow.pipelines.index.tidying import tidy_job, write_job
from windrow.queue.queue import Queue
from windrow.search.request import SearchAnswer, SearchRequest
from windrow.search.searcher import Searcher
from windrow.worker.worker import Worker


@dataclass
class Words:
    """The embedder of `tests.index.words`, which counts what it embeds."""

    model: str = "words"
    dimension: int = DIMENSION
    texts: list[str] = field(default_factory=list)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Any:
        if not query:
            self.texts += texts
        return [embed(text)[: self.dimension] for text in texts]


@dataclass(frozen=True)
class Piece:
    ordinal: int
    start: int
    end: int
    text: str
    headings: tuple[str, ...] = ()

    def in_context(self, title: str = "") -> str:
        return f"{title}\n{self.text}"


async def cut(texts: Sequence[tuple[str, str]]) -> list[list[Piece]]:
    """A chunk for each paragraph."""
    return [
        [
            Piece(n, m.start(), m.end(), m[0], ("Top",))
            for n, m in enumerate(re.finditer(r"[^\n]+", text))
        ]
        for text, _ in texts
    ]


@dataclass(frozen=True)
class Place:
    space: Space
    model: str
    is_whole: bool = False


class Library:
    """A queue, an index, and embedders by their models."""

    def __init__(self, queue: Queue, index: Index) -> None:
        self.queue = queue
        self.index = index
        self.embedders: dict[str, Words] = {"words": Words()}
        self.default = "words"
        self.indexing = Indexing(queue, index, self.find_embedder, cut)
        self.searcher = Searcher(
            index,
            self.find_places,
            Catalog(queue.database).documents.find_named,
            self.find_embedder,
        )

    async def find_embedder(self, model: str | None) -> Words | None:
        return self.embedders.get(model or self.default)

    async def find_places(self, tenant: str | None, names: tuple[str, ...]) -> list[Place]:
        found = await Catalog(self.queue.database).collections.find(tenant)
        places = {
            space_of(one).name: Place(space_of(one), one.embedder)
            for one in found
            if not names or one.name in names
        }
        return list(places.values())

    async def put(
        self, uri: str, text: str, *, enqueue: bool = True, **fields: Any
    ) -> tuple[str, str]:
        """Ingest a text; the ids of its document and content."""
        given: dict[str, Any] = {"tenant": None, "collection": "docs", "source": "s1"} | fields
        store = self.queue.store
        catalog = Catalog(store.database)
        there = await catalog.documents.find(
            given["tenant"], given["collection"], given["source"], [uri]
        )
        digest = hashlib.sha256(text.encode()).hexdigest()
        own = next((one for one in there if one.branch == given.get("branch", "")), None)
        doc_id = own.id if own else new_id()
        same = next((one for one in there if one.content_hash == digest), None)
        content = (same and (same.pending or same.content)) or content_id(doc_id, digest)
        row = DocumentRow(id=doc_id, uri=uri, content_hash=digest, pending=content, **given)
        source = SourceRow(row.tenant, row.source, row.collection, "folder", row.source)
        await catalog.sources.put([source])
        await catalog.documents.put([row], [ContentRow(content, row.tenant, row.collection, text)])
        if enqueue:
            await self.queue.enqueue_many([write_job(content, row.tenant)])
        return doc_id, content

    async def work(self, *kinds: str) -> None:
        """Run what can run now, only these kinds if some are named: a retry is asked for by the
        test, not waited for."""
        handlers = [one for one in index_handlers(self.indexing) if not kinds or one.kind in kinds]
        worker = Worker(self.queue, handlers, queues=["index"])
        await worker.run(until_idle=True, wait_for_retries=0)

    async def tidy(self) -> None:
        await self.queue.enqueue_many([tidy_job()])
        await self.work()

    async def search(self, query: str, **fields: Any) -> SearchAnswer:
        return await self.searcher.search(SearchRequest(query=query, **fields))

    async def found(self, query: str, **fields: Any) -> list[str]:
        return [one.uri for one in (await self.search(query, **fields)).results]
