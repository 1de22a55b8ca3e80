"""The verbs of documents as the store has them: each is one call to the writer or to a reader."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from windrow.clock import Clock
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
    note_steps,
    put_steps,
    refuse_steps,
    source_steps,
    switch_steps,
)
from windrow.queue.sqlite import documenting
from windrow.queue.sqlite.work import Work, time_now

T = TypeVar("T")


class DocumentVerbs(ABC):
    clock: Clock

    @abstractmethod
    async def _write(self, verb: Callable[[Work], T]) -> T: ...

    @abstractmethod
    async def _read(self, verb: Callable[[Work], T], *, is_short: bool = False) -> T: ...

    async def ensure_collection(
        self, tenant: str | None, name: str, embedder: str, dimension: int
    ) -> Collection:
        return await self._write(
            lambda work: documenting.ensure_collection(work, tenant, name, embedder, dimension)
        )

    async def list_collections(
        self, tenant: str | None = None, name: str | None = None
    ) -> list[Collection]:
        return await self._read(
            lambda work: documenting.list_collections(work, tenant, name), is_short=True
        )

    async def get_index_folder(self) -> str | None:
        return await self._read(documenting.get_index_folder)

    async def set_index_folder(self, folder: str, before: str | None) -> bool:
        return await self._write(lambda work: documenting.set_index_folder(work, folder, before))

    async def begin_generation(
        self, tenant: str | None, name: str, embedder: str, dimension: int
    ) -> Collection | None:
        return await self._write(
            lambda work: documenting.begin_generation(work, tenant, name, embedder, dimension)
        )

    async def switch_generation(self, tenant: str | None, name: str, generation: int) -> bool:
        return await self._write(
            lambda work: documenting.switch_generation(work, tenant, name, generation)
        )

    async def put_sources(
        self,
        rows: Sequence[SourceRow | SourceNote],
        *,
        are_known: bool = False,
        tx: Any = None,
    ) -> None:
        await self._step(source_steps(rows, are_known=are_known), tx)

    async def get_sources(self, tenant: str | None, ids: Sequence[str]) -> list[Source]:
        return await self._read(lambda work: documenting.get_sources(work, tenant, ids))

    async def list_sources(
        self,
        tenant: str | None = None,
        collection: str | None = None,
        *,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> list[Source]:
        return await self._read(
            lambda work: documenting.list_sources(work, tenant, collection, after, limit)
        )

    async def delete_sources(self, tenant: str | None, ids: Sequence[str]) -> int:
        return await self._write(lambda work: documenting.delete_sources(work, tenant, ids))

    async def delete_tenant(self, tenant: str) -> int:
        return await self._write(lambda work: documenting.delete_tenant(work, tenant))

    async def put_documents(
        self,
        documents: Sequence[DocumentRow],
        contents: Sequence[ContentRow] = (),
        *,
        tx: Any = None,
    ) -> None:
        await self._step(put_steps(documents, contents), tx)

    async def find_documents(
        self, tenant: str | None, collection: str, source: str, uris: Sequence[str]
    ) -> list[DocumentInfo]:
        return await self._read(
            lambda work: documenting.find_documents(work, tenant, collection, source, uris)
        )

    async def get_documents(self, ids: Sequence[str]) -> list[DocumentInfo]:
        return await self._read(lambda work: documenting.get_documents(work, ids))

    async def find_named(
        self, contents: Sequence[str], tenant: str | None = None
    ) -> list[NamedDocument]:
        return await self._read(
            lambda work: documenting.find_named(work, contents, tenant), is_short=True
        )

    async def find_naming(self, contents: Sequence[str]) -> list[DocumentInfo]:
        return await self._read(lambda work: documenting.find_naming(work, contents))

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
        return await self._read(
            lambda work: documenting.list_documents(
                work, tenant, collection, source, behind, limit, only_noted=only_noted
            )
        )

    async def count_documents(
        self, tenant: str | None = None, collection: str | None = None
    ) -> list[SourceCounts]:
        return await self._read(lambda work: documenting.count_documents(work, tenant, collection))

    async def count_sources(
        self, sources: Sequence[SourceRow], *, most: int | None = None, with_chunks: bool = True
    ) -> list[SourceCounts]:
        return await self._read(
            lambda work: documenting.count_sources(work, sources, most, with_chunks)
        )

    async def find_at(
        self, uri: str, tenant: str | None = None, *, limit: int = 100
    ) -> list[DocumentInfo]:
        return await self._read(lambda work: documenting.find_at(work, uri, tenant, limit))

    async def count_pending(
        self,
        tenant: str | None,
        collection: str,
        source: str,
        *,
        run: str | None = None,
        limit: int = 100,
    ) -> Pending:
        return await self._read(
            lambda work: documenting.count_pending(work, tenant, collection, source, run, limit)
        )

    async def count_chunks(self, contents: Sequence[str]) -> dict[str, int]:
        return await self._read(lambda work: documenting.count_chunks(work, contents))

    async def delete_documents(self, ids: Sequence[str]) -> int:
        return await self._write(lambda work: documenting.delete_documents(work, ids))

    async def delete_pages(self, crawls: Mapping[str, str | None]) -> int:
        return await self._write(lambda work: documenting.delete_pages(work, crawls))

    async def move_documents(self, moves: Sequence[Move]) -> list[str]:
        return await self._write(lambda work: documenting.move_documents(work, moves))

    async def get_contents(self, ids: Sequence[str]) -> list[ContentInfo]:
        return await self._read(lambda work: documenting.get_contents(work, ids))

    async def list_contents(
        self,
        tenant: str | None,
        collection: str,
        *,
        space: str | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> list[str]:
        return await self._read(
            lambda work: documenting.list_contents(work, tenant, collection, space, after, limit)
        )

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
        return await self._read(lambda work: documenting.list_awaited(work, place, after, limit))

    async def switch_contents(self, written: Sequence[Written]) -> None:
        await self._step(switch_steps(written), None)

    async def note_contents(self, written: Sequence[Written]) -> None:
        await self._step(note_steps(written), None)

    async def refuse_contents(self, refused: Sequence[Refused]) -> None:
        await self._step(refuse_steps(refused), None)

    async def find_dropped(self, limit: int = 1000) -> list[Dropped]:
        return await self._read(lambda work: documenting.find_dropped(work, limit))

    async def keep_contents(self, ids: Sequence[str]) -> None:
        await self._write(lambda work: documenting.keep_contents(work, ids))

    async def delete_contents(self, ids: Sequence[str]) -> list[str]:
        return await self._write(lambda work: documenting.delete_contents(work, ids))

    async def forget_spaces(
        self,
        tenant: str | None = None,
        collection: str | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        await self._write(lambda work: documenting.forget_spaces(work, tenant, collection, ids))

    async def _step(self, steps: Steps, tx: Any) -> None:
        """Run statements in one transaction: a job's, or one of their own."""
        if tx is None:
            await self._write(lambda work: documenting.run_steps(work, steps))
            return
        now = time_now(self.clock)
        for name, values in steps:
            await tx.execute(*documenting.by_place(name, {**values, "now": now}))
