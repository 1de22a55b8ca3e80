"""Recordings of calls: where each is on its way, what is kept of it, and what was made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from windrow.db.database import Database


class CallRow(msgspec.Struct, frozen=True):
    """A call to be begun. Its id is made of the recording: the same one is the same call."""

    id: str
    tenant: str | None
    collection: str
    name: str  # of the file
    status: str = "pending"


class Call(CallRow, frozen=True, kw_only=True):
    error: str | None
    seconds: float | None
    note: str | None  # what is missing of the recording, if anything is
    analysis: Mapping[str, Any] | None
    analysed_from: str | None
    created_at: datetime


class CallNote(msgspec.Struct, frozen=True):
    """What was found out about a recording."""

    id: str
    seconds: float
    note: str | None = None


class AnalysisRow(msgspec.Struct, frozen=True):
    """What was made of a call; `analysed_from` names the input and who made it."""

    id: str
    analysis: Mapping[str, Any]
    analysed_from: str


class ArtifactRow(msgspec.Struct, frozen=True):
    """A part of a call in the store of artifacts."""

    call: str
    name: str
    key: str
    size: int


class ArtifactInfo(ArtifactRow, frozen=True, kw_only=True):
    created_at: datetime


class CallCatalog:
    """With `tx`, a job's, what is put is put if and only if the job is completed."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def put(self, rows: Sequence[CallRow]) -> None:
        """Insert calls; existing ones stay as they are."""
        await self._db.run("put_calls", calls=rows)

    async def get(self, tenant: str | None, ids: Sequence[str]) -> list[Call]:
        """Of a tenant ("" for none), or of any."""
        rows = await self._db.rows("get_calls", tenant=tenant, ids=ids)
        return [Call(**row) for row in rows]

    async def newest(
        self, tenant: str | None = None, *, status: str | None = None, limit: int = 100
    ) -> list[Call]:
        """The newest calls first, of a tenant or of all."""
        rows = await self._db.rows("list_calls", tenant=tenant, status=status, limit=limit)
        return [Call(**row) for row in rows]

    async def count(self, tenant: str | None = None) -> dict[str, int]:
        """The number of calls in each stage, without those that have ended."""
        rows = await self._db.rows("count_calls", tenant=tenant)
        return {row["status"]: row["n"] for row in rows}

    async def note(self, note: CallNote, *, tx: Any = None) -> None:
        await self._write("note_calls", tx, calls=[note])

    async def put_analysis(self, row: AnalysisRow, *, tx: Any = None) -> None:
        """Store an analysis, unless the stored one was made from the same input."""
        await self._write("put_analyses", tx, calls=[row])

    async def put_artifacts(self, rows: Sequence[ArtifactRow], *, tx: Any = None) -> None:
        """Record artifacts; existing ones stay as they are."""
        await self._write("put_artifacts", tx, artifacts=rows)

    async def delete_artifacts(self, call: str, names: Sequence[str], *, tx: Any = None) -> None:
        await self._write("delete_artifacts", tx, call=call, names=names)

    async def list_artifacts(self, call: str) -> list[ArtifactInfo]:
        """The oldest first."""
        rows = await self._db.rows("list_artifacts", call=call)
        return [ArtifactInfo(**row) for row in rows]

    async def _write(self, statement: str, tx: Any, **values: Any) -> None:
        await (self._db if tx is None else self._db.joined(tx)).run(statement, **values)
