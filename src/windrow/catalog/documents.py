"""Documents: what was ingested and can be found.

A document names the content that is searchable now, and the one that will be once the index has it
(`pending`). What the index has and no document names is not shown: the row is the switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from windrow.catalog.contents import ContentRow
from windrow.catalog.sources import SourceCounts
from windrow.db.database import Database, Transaction

# No address begins with it.
_LIFTED: Final = "\x01"


class DocumentRow(msgspec.Struct, frozen=True):
    """A document to be put where it belongs: one that is there keeps its id. `pending` is the
    content it is to be searched by; without one it is not found (`skipped` says why). With both,
    the index has refused what is pending."""

    id: str
    tenant: str | None
    collection: str
    source: str
    uri: str  # a URL, or the path below the source
    branch: str = ""
    title: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)
    content_hash: str = ""
    pending: str | None = None
    size: int = 0
    skipped: str | None = None
    dated_at: datetime | None = None  # of the document itself: published, modified


class DocumentInfo(DocumentRow, frozen=True, kw_only=True):
    content: str | None  # what is searchable now
    created_at: datetime
    changed_at: datetime

    @property
    def is_searchable(self) -> bool:
        """Whether what was put last is what is found."""
        return self.content is not None and self.pending is None

    def is_settled_with(self, content: str | None) -> bool:
        """Whether the index has nothing to do for this content: it is found by it, or the index has
        refused it."""
        if self.pending is None:
            return self.content is not None and self.content == content
        return self.pending == content and self.skipped is not None


# No more than a search needs: each one makes ten.
class NamedDocument(msgspec.Struct, frozen=True):
    """A document as a search shows it, by the content that it names now."""

    id: str
    tenant: str | None
    collection: str
    source: str
    uri: str
    branch: str
    title: str
    language: str
    tags: tuple[str, ...]
    content: str
    dated_at: datetime | None


class Move(msgspec.Struct, frozen=True):
    """A document and where it is to be; what it is searched by stays."""

    id: str
    uri: str
    title: str | None = None  # None: as it was


class Pending(msgspec.Struct, frozen=True):
    """Documents, and those of them that are not found by what was put last."""

    documents: int = 0
    waiting: int = 0
    contents: tuple[str, ...] = ()  # some that are waited for, and that were not refused
    refused: int = 0  # of those that wait
    why: str | None = None  # one of them was refused


class Place(msgspec.Struct, frozen=True):
    """Where the next page of documents begins: behind this one."""

    source: str = ""
    uri: str = ""
    branch: str = ""


class DocumentCatalog:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def put(
        self,
        documents: Sequence[DocumentRow],
        contents: Sequence[ContentRow] = (),
        *,
        tx: Any = None,
    ) -> None:
        """Insert documents, or change those at the same places: they keep their ids, and are found
        by what they were found by until the index has the new content. One without anything pending
        is found no more. Contents are given along, also those that are likely to be there: these
        are left as they are. Nothing is put for a source that does not exist: deleting a source
        deletes all of it, whatever is being put."""
        if tx is not None:
            await _put(self._db.joined(tx), documents, contents)
        else:
            await self._db.transact(_put, documents, contents)

    async def find(
        self, tenant: str | None, collection: str, source: str, uris: Sequence[str]
    ) -> list[DocumentInfo]:
        """Those at these addresses, of all branches."""
        place = {"tenant": tenant, "collection": collection, "source": source}
        return await self._documents("find_documents", **place, uris=uris)

    async def get(self, ids: Sequence[str]) -> list[DocumentInfo]:
        return await self._documents("get_documents", ids=ids)

    async def find_named(
        self, contents: Sequence[str], tenant: str | None = None
    ) -> list[NamedDocument]:
        """Those that name one of these contents as what is searchable now."""
        rows = await self._db.rows("find_named", ids=contents, tenant=tenant)
        return [NamedDocument(**{**row, "tags": tuple(row["tags"])}) for row in rows]

    async def find_naming(self, contents: Sequence[str]) -> list[DocumentInfo]:
        """Those that name one of these contents, now or as pending."""
        return await self._documents("find_naming", ids=contents)

    async def find_at(
        self, uri: str, tenant: str | None = None, *, limit: int = 100
    ) -> list[DocumentInfo]:
        """Those at an address, of any source that there is."""
        return await self._documents("find_at", uri=uri, tenant=tenant, limit=limit)

    async def page(
        self,
        tenant: str | None,
        collection: str,
        source: str | None = None,
        *,
        after: Place | None = None,
        limit: int = 1000,
        only_noted: bool = False,
    ) -> list[DocumentInfo]:
        """A page of them, by source, uri and branch. `only_noted`: those that were skipped, or from
        which secrets were taken out."""
        behind = after or Place()
        return await self._documents(
            "list_documents",
            tenant=tenant,
            collection=collection,
            source=source,
            after_source=behind.source,
            after_uri=behind.uri,
            after_branch=behind.branch,
            limit=limit,
            only_noted=only_noted,
        )

    async def count(
        self, tenant: str | None = None, collection: str | None = None
    ) -> list[SourceCounts]:
        """How much there is in each source that has documents; reads all of them."""
        rows = await self._db.rows("count_documents", tenant=tenant, collection=collection)
        return [SourceCounts(**row) for row in rows]

    async def count_pending(
        self,
        tenant: str | None,
        collection: str,
        source: str,
        *,
        run: str | None = None,
        limit: int = 100,
    ) -> Pending:
        """The documents of a source, with `run` those that a crawl put there, and how many of them
        wait for the index."""
        place = {"tenant": tenant, "collection": collection, "source": source}
        rows = await self._db.rows("count_pending", **place, run=run, limit=limit)
        if not rows:
            return Pending()
        first = rows[0]
        contents = tuple(row["pending"] for row in rows if row["pending"] is not None)
        counts = first["documents"], first["waiting"]
        return Pending(*counts, contents, first["refused"], first["why"])

    async def delete(self, ids: Sequence[str]) -> int:
        """Delete documents, which are found no more; how many. Their contents are dropped."""
        return await self._db.transact(_delete, ids)

    async def delete_pages(self, crawls: Mapping[str, str | None]) -> int:
        """Delete documents, each only if it is still as this crawl left it (its id in the metadata;
        None: as something else did); how many."""
        return await self._db.transact(_delete_pages, crawls)

    async def move(self, moves: Sequence[Move]) -> list[str]:
        """Move documents to other places, where they replace what is there; the contents whose
        labels in the index are to be written again."""
        return await self._db.transact(_move, moves)

    async def _documents(self, statement: str, **values: Any) -> list[DocumentInfo]:
        rows = await self._db.rows(statement, **values)
        return [DocumentInfo(**{**row, "tags": tuple(row["tags"])}) for row in rows]


async def _put(
    tx: Transaction, documents: Sequence[DocumentRow], contents: Sequence[ContentRow]
) -> None:
    # Of two for the same place the later one counts: no statement changes a row twice.
    last = {(d.tenant, d.collection, d.source, d.uri, d.branch): d for d in documents}
    given = list(last.values())
    sources = {document.pending: document.source for document in documents}
    texts = {one.id: _with_source(one, sources.get(one.id)) for one in contents}
    await tx.run("hold_sources", documents=given)
    await tx.run("drop_superseded", documents=given)
    await tx.run("put_contents", contents=list(texts.values()))
    await tx.run("put_documents", documents=given)


def _with_source(content: ContentRow, source: str | None) -> dict[str, Any]:
    return {
        "id": content.id,
        "tenant": content.tenant,
        "collection": content.collection,
        "text": content.text,
        "source": source,
    }


async def _delete(tx: Transaction, ids: Sequence[str]) -> int:
    await tx.run("let_go_of_documents", ids=ids)
    return len(await tx.rows("delete_documents", ids=ids))


async def _delete_pages(tx: Transaction, crawls: Mapping[str, str | None]) -> int:
    # What another crawl has put meanwhile is dropped, too: the index's clean-up sees that it is
    # named. Contents come before documents, as where these are put.
    await tx.run("let_go_of_documents", ids=list(crawls))
    pages = [{"id": id, "crawl": crawl} for id, crawl in crawls.items()]
    return len(await tx.rows("delete_pages", pages=pages))


async def _move(tx: Transaction, moves: Sequence[Move]) -> list[str]:
    in_the_way = await tx.rows("find_in_the_way", moves=moves)
    await _delete(tx, [row["id"] for row in in_the_way])
    await tx.run("lift_documents", moves=moves, mark=_LIFTED)
    moved = await tx.rows("move_documents", moves=moves)
    return [row["content"] for row in moved if row["content"] is not None]
