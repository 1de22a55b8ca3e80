"""Contents: the texts of documents, and where in the index their chunks are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from windrow.db.database import Database, Transaction
from windrow.ids import named_id

_FIRST_ID: Final = "00000000-0000-0000-0000-000000000000"


class ContentRow(msgspec.Struct, frozen=True):
    id: str
    tenant: str | None
    collection: str
    text: str


class ContentInfo(ContentRow, frozen=True, kw_only=True):
    chunks: int
    space: str | None  # where in the index its chunks were written last
    dropped_at: datetime | None
    created_at: datetime


class Written(msgspec.Struct, frozen=True):
    """A content that the index has now."""

    id: str
    chunks: int
    space: str


class Awaited(msgspec.Struct, frozen=True):
    """A content that documents wait for."""

    id: str
    tenant: str | None


class Refused(msgspec.Struct, frozen=True):
    """A content that the index does not take."""

    id: str
    why: str


class Dropped(msgspec.Struct, frozen=True):
    """A content that a document has stopped using."""

    id: str
    tenant: str | None
    collection: str
    space: str | None
    is_named: bool  # by another document


def content_id(document_id: str, content_hash: str) -> str:
    """The id of what a document says: the same for the same words, so a retry doubles nothing."""
    return named_id(document_id, content_hash)


class ContentCatalog:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(self, ids: Sequence[str]) -> list[ContentInfo]:
        return [ContentInfo(**row) for row in await self._db.rows("get_contents", ids=ids)]

    async def count_chunks(self, ids: Sequence[str]) -> dict[str, int]:
        """The number of chunks of each; their texts are not read."""
        rows = await self._db.rows("count_chunks", ids=ids)
        return {row["id"]: row["chunks"] for row in rows}

    async def page(
        self,
        tenant: str | None,
        collection: str,
        *,
        space: str | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> list[str]:
        """A page of ids, in order; with `space`, of those that are not written there."""
        place = {"tenant": tenant, "collection": collection, "space": space}
        rows = await self._db.rows("list_contents", **place, after=after or _FIRST_ID, limit=limit)
        return [row["id"] for row in rows]

    async def list_awaited(
        self,
        tenant: str | None = None,
        collection: str | None = None,
        source: str | None = None,
        *,
        after: str = "",
        limit: int = 1000,
    ) -> list[Awaited]:
        """A page of what documents wait for, by id, and the index has not refused."""
        place = {"tenant": tenant, "collection": collection, "source": source}
        rows = await self._db.rows("list_awaited", **place, after=after or _FIRST_ID, limit=limit)
        return [Awaited(**row) for row in rows]

    async def switch(self, written: Sequence[Written]) -> None:
        """The index has these contents: documents for which they are pending are found by them from
        now on, and what those were found by before is dropped."""
        await self._db.transact(_switch, written)

    async def note(self, written: Sequence[Written]) -> None:
        """Record where contents were written to, without switching any document."""
        await self._db.run("note_written", contents=written)

    async def refuse(self, refused: Sequence[Refused]) -> None:
        """The index does not take these contents: their documents wait for them and say why, until
        they are switched to, or other contents are put. What else they are found by stays."""
        await self._db.run("refuse_documents", contents=refused)

    async def find_dropped(self, limit: int = 1000) -> list[Dropped]:
        """Contents that a document has stopped using."""
        return [Dropped(**row) for row in await self._db.rows("find_dropped", limit=limit)]

    async def keep(self, ids: Sequence[str]) -> None:
        """Those of these that are named are not dropped any more."""
        await self._db.run("keep_contents", ids=ids)

    async def delete(self, ids: Sequence[str]) -> list[str]:
        """Delete those of these that are dropped and that no document names; which. To be called
        when the index has nothing of them any more."""
        return [row["id"] for row in await self._db.rows("delete_contents", ids=ids)]

    async def forget_spaces(
        self,
        tenant: str | None = None,
        collection: str | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        """Record that contents are not in the index any more: of all, or of these."""
        await self._db.run("forget_spaces", tenant=tenant, collection=collection, ids=ids)


async def _switch(tx: Transaction, written: Sequence[Written]) -> None:
    # Contents are locked before documents, as where these are put.
    await tx.run("drop_switched", contents=written)
    await tx.run("note_written", contents=written)
    await tx.run("switch_documents", contents=written)
