"""Collections, sources, documents and contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windrow.queue.documents import (
    Awaited,
    Collection,
    ContentInfo,
    ContentRow,
    DocumentInfo,
    DocumentRow,
    Dropped,
    Move,
    NamedDocument,
    Pending,
    Place,
    Refused,
    Source,
    SourceCounts,
    SourceNote,
    SourceRow,
    Steps,
    Written,
    move_values,
    note_steps,
    page_values,
    put_steps,
    read_pending,
    refuse_steps,
    source_steps,
    switch_steps,
    tenant_text,
)
from windrow.queue.postgres.rows import Row, as_utc, sql, uuids
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import Work

_FIRST = "00000000-0000-0000-0000-000000000000"


class Documenting(Verbs):
    async def ensure_collection(
        self, tenant: str | None, name: str, embedder: str, dimension: int
    ) -> Collection:
        own = tenant_text(tenant)
        values = {"embedder": embedder, "dimension": dimension}
        await self._run("ensure_collection", tenant=own, name=name, **values)
        [collection] = await self.list_collections(own, name)
        return collection

    async def list_collections(
        self, tenant: str | None = None, name: str | None = None
    ) -> list[Collection]:
        found = await self._run("list_collections", tenant=tenant, name=name)
        return [Collection(**_fields(row)) for row in found]

    async def get_index_folder(self) -> str | None:
        found = await self._run("get_index_folder")
        return found[0]["holder"] if found else None

    async def set_index_folder(self, folder: str, before: str | None) -> bool:
        return bool(await self._run("set_index_folder", folder=folder, before=before))

    async def begin_generation(
        self, tenant: str | None, name: str, embedder: str, dimension: int
    ) -> Collection | None:
        own = tenant_text(tenant)
        values = {"embedder": embedder, "dimension": dimension}
        await self._run("begin_generation", tenant=own, name=name, **values)
        return next(iter(await self.list_collections(own, name)), None)

    async def switch_generation(self, tenant: str | None, name: str, generation: int) -> bool:
        values = {"tenant": tenant_text(tenant), "name": name, "generation": generation}
        return bool(await self._run("switch_generation", **values))

    async def put_sources(
        self,
        rows: Sequence[SourceRow | SourceNote],
        *,
        are_known: bool = False,
        tx: Any = None,
    ) -> None:
        await self._step(source_steps(rows, are_known=are_known), tx)

    async def get_sources(self, tenant: str | None, ids: Sequence[str]) -> list[Source]:
        return [
            Source(**_fields(row))
            for row in await self._run("get_sources", tenant=tenant, ids=list(ids))
        ]

    async def list_sources(
        self,
        tenant: str | None = None,
        collection: str | None = None,
        *,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> list[Source]:
        found = await self._run(
            "list_sources",
            tenant=tenant,
            collection=collection,
            after_tenant=after[0],
            after_id=after[1],
            limit=limit,
        )
        return [Source(**_fields(row)) for row in found]

    async def delete_sources(self, tenant: str | None, ids: Sequence[str]) -> int:
        own = tenant_text(tenant)

        async def delete(work: Work) -> int:
            await work.run("lock_sources", tenant=own, ids=list(ids))
            for source in await work.run("get_sources", tenant=own, ids=list(ids)):
                place = {"tenant": own, "collection": source["collection"], "source": source["id"]}
                await work.run("let_go_of_source_documents", **place)
                await work.run("delete_source_documents", **place)
            return len(await work.run("delete_sources", tenant=own, ids=list(ids)))

        return await self._transact(delete)

    async def delete_tenant(self, tenant: str) -> int:
        async def delete(work: Work) -> int:
            await work.run("lock_sources", tenant=tenant, ids=None)
            await work.run("let_go_of_tenant_documents", tenant=tenant)
            gone = await work.run("delete_tenant_documents", tenant=tenant)
            await work.run("delete_sources", tenant=tenant, ids=None)
            await work.run("delete_collections", tenant=tenant)
            return len(gone)

        return await self._transact(delete)

    async def put_documents(
        self,
        documents: Sequence[DocumentRow],
        contents: Sequence[ContentRow] = (),
        *,
        tx: Any = None,
    ) -> None:
        steps = put_steps(documents, contents)
        [*_, (_, given)] = steps
        await self._step([("hold_sources", given), *steps], tx)

    async def find_documents(
        self, tenant: str | None, collection: str, source: str, uris: Sequence[str]
    ) -> list[DocumentInfo]:
        place = {"tenant": tenant_text(tenant), "collection": collection, "source": source}
        return await self._documents("find_documents", **place, uris=list(uris))

    async def get_documents(self, ids: Sequence[str]) -> list[DocumentInfo]:
        return await self._documents("get_documents", ids=uuids(ids))

    async def find_named(
        self, contents: Sequence[str], tenant: str | None = None
    ) -> list[NamedDocument]:
        found = await self._run("find_named", ids=uuids(contents), tenant=tenant)
        return [NamedDocument(**_fields(row)) for row in found]

    async def find_naming(self, contents: Sequence[str]) -> list[DocumentInfo]:
        return await self._documents("find_naming", ids=uuids(contents))

    async def list_documents(
        self,
        tenant: str | None,
        collection: str,
        source: str | None = None,
        *,
        after: Place | None = None,
        limit: int = 1000,
        only_noted: bool = False,
    ) -> list[DocumentInfo]:
        behind = after or Place()
        return await self._documents(
            "list_documents",
            tenant=tenant_text(tenant),
            collection=collection,
            source=source,
            after_source=behind.source,
            after_uri=behind.uri,
            after_branch=behind.branch,
            limit=limit,
            only_noted=only_noted,
        )

    async def count_documents(
        self, tenant: str | None = None, collection: str | None = None
    ) -> list[SourceCounts]:
        found = await self._run("count_documents", tenant=tenant, collection=collection)
        return [SourceCounts(**{**row, "tenant": row["tenant"] or None}) for row in found]

    async def count_sources(
        self, sources: Sequence[SourceRow], *, most: int | None = None, with_chunks: bool = True
    ) -> list[SourceCounts]:
        counted = await self._run(
            "count_sources",
            tenants=[tenant_text(one.tenant) for one in sources],
            collections=[one.collection for one in sources],
            sources=[one.id for one in sources],
            most=most,
            with_chunks=with_chunks,
        )
        return [
            SourceCounts(one.tenant, one.collection, one.id, **row)
            for one, row in zip(sources, counted, strict=True)
        ]

    async def find_at(
        self, uri: str, tenant: str | None = None, *, limit: int = 100
    ) -> list[DocumentInfo]:
        return await self._documents("find_at", uri=uri, tenant=tenant, limit=limit)

    async def count_pending(
        self,
        tenant: str | None,
        collection: str,
        source: str,
        *,
        run: str | None = None,
        limit: int = 100,
    ) -> Pending:
        place = {"tenant": tenant_text(tenant), "collection": collection, "source": source}
        return read_pending(await self._run("count_pending", **place, run=run, limit=limit))

    async def count_chunks(self, contents: Sequence[str]) -> dict[str, int]:
        found = await self._run("count_chunks", ids=uuids(contents))
        return {str(row["id"]): row["chunks"] for row in found}

    async def delete_documents(self, ids: Sequence[str]) -> int:
        return await self._transact(lambda work: _delete(work, uuids(ids)))

    async def delete_pages(self, crawls: Mapping[str, str | None]) -> int:
        async def delete(work: Work) -> int:
            # What another crawl has put meanwhile is let go of, too: those who tidy see that it is
            # named. Contents come before documents, as where these are put.
            await work.run("let_go_of_documents", ids=uuids(list(crawls)))
            return len(await work.run("delete_pages", **page_values(crawls)))

        return await self._transact(delete)

    async def move_documents(self, moves: Sequence[Move]) -> list[str]:
        values = move_values(moves)

        async def move(work: Work) -> list[str]:
            in_the_way = await work.run("find_in_the_way", **values)
            await _delete(work, [str(row["id"]) for row in in_the_way])
            await work.run("lift_documents", **values)
            moved = await work.run("move_documents", **values)
            return [str(row["content"]) for row in moved if row["content"] is not None]

        return await self._transact(move)

    async def get_contents(self, ids: Sequence[str]) -> list[ContentInfo]:
        found = await self._run("get_contents", ids=uuids(ids))
        return [ContentInfo(**_fields(row)) for row in found]

    async def list_contents(
        self,
        tenant: str | None,
        collection: str,
        *,
        space: str | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> list[str]:
        place = {"tenant": tenant_text(tenant), "collection": collection, "space": space}
        found = await self._run("list_contents", **place, after=after or _FIRST, limit=limit)
        return [str(row["id"]) for row in found]

    async def list_awaited(
        self,
        tenant: str | None = None,
        collection: str | None = None,
        source: str | None = None,
        *,
        after: str = "",
        limit: int = 1000,
    ) -> list[Awaited]:
        place = {"tenant": tenant, "collection": collection, "source": source}
        found = await self._run("list_awaited", **place, after=after or _FIRST, limit=limit)
        return [Awaited(str(row["id"]), row["tenant"] or None) for row in found]

    async def switch_contents(self, written: Sequence[Written]) -> None:
        await self._step(switch_steps(written), None)

    async def note_contents(self, written: Sequence[Written]) -> None:
        await self._step(note_steps(written), None)

    async def refuse_contents(self, refused: Sequence[Refused]) -> None:
        await self._step(refuse_steps(refused), None)

    async def find_dropped(self, limit: int = 1000) -> list[Dropped]:
        return [
            Dropped(**{**row, "id": str(row["id"]), "tenant": row["tenant"] or None})
            for row in await self._run("find_dropped", limit=limit)
        ]

    async def keep_contents(self, ids: Sequence[str]) -> None:
        await self._run("keep_contents", ids=uuids(ids))

    async def delete_contents(self, ids: Sequence[str]) -> list[str]:
        return [str(row["id"]) for row in await self._run("delete_contents", ids=uuids(ids))]

    async def forget_spaces(
        self,
        tenant: str | None = None,
        collection: str | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        given = None if ids is None else uuids(ids)
        await self._run("forget_spaces", tenant=tenant, collection=collection, ids=given)

    async def _step(self, steps: Steps, tx: Any) -> None:
        """Run statements in one transaction: a job's, or one of their own."""
        if tx is not None:
            for name, values in steps:
                found = sql(name)
                await tx.execute(found.numbered, *found.bind({"now": self.clock.now(), **values}))
            return

        async def run(work: Work) -> None:
            for name, values in steps:
                await work.run(name, **values)

        await self._transact(run)

    async def _documents(self, name: str, **values: Any) -> list[DocumentInfo]:
        return [DocumentInfo(**_fields(row)) for row in await self._run(name, **values)]


async def _delete(work: Work, ids: Sequence[str]) -> int:
    await work.run("let_go_of_documents", ids=list(ids))
    return len(await work.run("delete_documents", ids=list(ids)))


def _fields(row: Row) -> dict[str, Any]:
    """A row's columns as a record has them."""
    fields = {**row, "tenant": row["tenant"] or None}
    for name in fields.keys() & {"id", "content", "pending"}:
        fields[name] = None if row[name] is None else str(row[name])
    for name in fields.keys() & {
        *("dated_at", "dropped_at", "refreshed_at", "created_at", "changed_at")
    }:
        fields[name] = None if row[name] is None else as_utc(row[name])
    for name in fields.keys() & {"options", "metadata"}:
        fields[name] = msgspec.json.decode(row[name])
    if "tags" in fields:
        fields["tags"] = tuple(msgspec.json.decode(row["tags"]))
    return fields
