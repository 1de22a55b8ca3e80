"""Collections, and the sources whose documents are in them.

In a filter, a tenant of None stands for all tenants; "" stands for none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from windrow.db.database import Database, Transaction

SourceKind = Literal[
    "site", "page", "folder", "file", "note", "project", "library", "upload", "call", "video"
]
_NEVER: Final = datetime(9999, 1, 1, tzinfo=UTC)


class Collection(msgspec.Struct, frozen=True):
    """Documents that are searched as one. While another generation is being built, with a model of
    its own perhaps, searches read the one there is."""

    tenant: str | None
    name: str
    embedder: str
    dimension: int
    generation: int
    created_at: datetime
    next_embedder: str | None = None
    next_dimension: int | None = None
    next_generation: int | None = None


class SourceRow(msgspec.Struct, frozen=True):
    """Where documents come from. The id is unique among those of its tenant."""

    tenant: str | None
    id: str
    collection: str
    kind: SourceKind
    uri: str
    title: str = ""
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)
    tags: tuple[str, ...] = ()
    refresh_seconds: int | None = None  # None: only when somebody asks for it


class SourceNote(msgspec.Struct, frozen=True):
    """The outcome of a look at a source. With an error, what was known of it before stays."""

    tenant: str | None
    id: str
    error: str | None = None
    etag: str | None = None
    last_modified: str | None = None


class Source(SourceRow, frozen=True, kw_only=True):
    created_at: datetime
    refreshed_at: datetime | None
    etag: str | None
    last_modified: str | None
    error: str | None


class SourceCounts(msgspec.Struct, frozen=True):
    tenant: str | None
    collection: str
    source: str
    documents: int  # without skipped files, of which there is no text
    searchable: int
    pending: int  # without those that were refused
    skipped: int  # with those that were refused
    size: int
    chunks: int


class CollectionCatalog:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def ensure(
        self, tenant: str | None, name: str, embedder: str, dimension: int
    ) -> Collection:
        """A collection, created with this model unless it exists."""
        values = {"embedder": embedder, "dimension": dimension}
        await self._db.run("ensure_collection", tenant=tenant, name=name, **values)
        [collection] = await self.find(tenant or "", name)
        return collection

    async def find(self, tenant: str | None = None, name: str | None = None) -> list[Collection]:
        """Those of a tenant, or of this name, or all, by tenant and name."""
        rows = await self._db.rows("list_collections", tenant=tenant, name=name)
        return [Collection(**row) for row in rows]

    async def begin_generation(
        self, tenant: str | None, name: str, embedder: str, dimension: int
    ) -> Collection | None:
        """Record that another generation is being built, in place of one that was; the collection,
        or None if there is none."""
        values = {"embedder": embedder, "dimension": dimension}
        await self._db.run("begin_generation", tenant=tenant, name=name, **values)
        return next(iter(await self.find(tenant or "", name)), None)

    async def switch_generation(self, tenant: str | None, name: str, generation: int) -> bool:
        """Let searches read the generation that was built; False if it is not this one."""
        values = {"tenant": tenant, "name": name, "generation": generation}
        return bool(await self._db.rows("switch_generation", **values))

    async def get_index_folder(self) -> str | None:
        """The folder that holds the embedded index, as it was recorded."""
        rows = await self._db.rows("get_index_folder")
        return rows[0]["holder"] if rows else None

    async def set_index_folder(self, folder: str, before: str | None) -> bool:
        """Record the folder that holds the embedded index; False if another one than `before` is
        recorded."""
        values = {"folder": folder, "before": before, "expires_at": _NEVER}
        return bool(await self._db.rows("set_index_folder", **values))


class SourceCatalog:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def put(
        self,
        rows: Sequence[SourceRow | SourceNote],
        *,
        are_known: bool = False,
        tx: Any = None,
    ) -> None:
        """Create or change sources, and note the outcomes of looks at them. With `are_known` none
        is created: one that was deleted since it was read stays deleted."""
        described = [row for row in rows if isinstance(row, SourceRow)]
        noted = [row for row in rows if isinstance(row, SourceNote)]
        if tx is not None:
            await _put(self._db.joined(tx), described, noted, are_known)
        else:
            await self._db.transact(_put, described, noted, are_known)

    async def get(self, tenant: str | None, ids: Sequence[str]) -> list[Source]:
        rows = await self._db.rows("get_sources", tenant=tenant, ids=ids)
        return [_source(row) for row in rows]

    async def page(
        self,
        tenant: str | None = None,
        collection: str | None = None,
        *,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> list[Source]:
        """A page of them by tenant and id, behind `after`."""
        rows = await self._db.rows(
            "list_sources",
            tenant=tenant,
            collection=collection,
            after_tenant=after[0],
            after_id=after[1],
            limit=limit,
        )
        return [_source(row) for row in rows]

    async def count(
        self, sources: Sequence[SourceRow], *, most: int | None = None, with_chunks: bool = True
    ) -> list[SourceCounts]:
        """How much there is in each of these, of the first `most` documents by address if that is
        given. Chunks cost the most to count; without them they are 0."""
        each = [(one.tenant, one.collection, one.id) for one in sources]
        rows = await self._db.rows_each("count_sources", each, most=most, with_chunks=with_chunks)
        return [
            SourceCounts(one.tenant, one.collection, one.id, **row)
            for one, row in zip(sources, rows, strict=True)
        ]

    async def delete(self, tenant: str | None, ids: Sequence[str]) -> int:
        """Delete sources and their documents, which are found no more; how many sources. Their
        contents are dropped."""
        return await self._db.transact(_delete, tenant or "", ids)

    async def delete_tenant(self, tenant: str) -> int:
        """Delete the documents, sources and collections of a tenant; how many documents."""
        return await self._db.transact(_delete_tenant, tenant)


async def _put(
    tx: Transaction,
    described: Sequence[SourceRow],
    noted: Sequence[SourceNote],
    are_known: bool,
) -> None:
    if described:
        await tx.run("change_sources" if are_known else "put_sources", sources=described)
    if noted:
        await tx.run("note_sources", sources=noted)


async def _delete(tx: Transaction, tenant: str, ids: Sequence[str]) -> int:
    await tx.run("lock_sources", tenant=tenant, ids=ids)
    for source in await tx.rows("get_sources", tenant=tenant, ids=ids):
        place = {"tenant": tenant, "collection": source["collection"], "source": source["id"]}
        await tx.run("let_go_of_source_documents", **place)
        await tx.run("delete_source_documents", **place)
    return len(await tx.rows("delete_sources", tenant=tenant, ids=ids))


async def _delete_tenant(tx: Transaction, tenant: str) -> int:
    await tx.run("lock_sources", tenant=tenant, ids=None)
    await tx.run("let_go_of_tenant_documents", tenant=tenant)
    documents = await tx.rows("delete_tenant_documents", tenant=tenant)
    await tx.run("delete_sources", tenant=tenant, ids=None)
    await tx.run("delete_collections", tenant=tenant)
    return len(documents)


def _source(row: dict[str, Any]) -> Source:
    return Source(**{**row, "tags": tuple(row["tags"])})
