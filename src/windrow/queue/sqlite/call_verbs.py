"""Recordings of calls and what is kept of them: each verb is one call to the writer or a reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from windrow.queue.calls import (
    AnalysisRow,
    ArtifactInfo,
    ArtifactRow,
    Call,
    CallNote,
    CallRow,
    delete_steps,
    row_steps,
)
from windrow.queue.sqlite.document_verbs import DocumentVerbs
from windrow.queue.sqlite.rows import to_json, to_time
from windrow.queue.sqlite.work import Work, statement


class CallVerbs(DocumentVerbs):
    async def put_calls(self, rows: Sequence[CallRow]) -> None:
        await self._step(row_steps("put_calls", rows), None)

    async def get_calls(self, tenant: str | None, ids: Sequence[str]) -> list[Call]:
        values = {"tenant": tenant, "ids": to_json(list(ids))}
        return await self._read(lambda work: _calls(work, "get_calls", values))

    async def list_calls(
        self, tenant: str | None = None, *, status: str | None = None, limit: int = 100
    ) -> list[Call]:
        values = {"tenant": tenant, "status": status, "limit": limit}
        return await self._read(lambda work: _calls(work, "list_calls", values))

    async def count_calls(self, tenant: str | None = None) -> dict[str, int]:
        found = await self._read(lambda work: work.rows("count_calls", {"tenant": tenant}))
        return {str(row[0]): int(row[1]) for row in found}

    async def note_call(self, note: CallNote, *, tx: Any = None) -> None:
        await self._step(row_steps("note_calls", [note]), tx)

    async def put_analysis(self, row: AnalysisRow, *, tx: Any = None) -> None:
        await self._step(row_steps("put_analyses", [row]), tx)

    async def put_artifacts(self, rows: Sequence[ArtifactRow], *, tx: Any = None) -> None:
        await self._step(row_steps("put_artifacts", rows), tx)

    async def delete_artifacts(self, call: str, names: Sequence[str], *, tx: Any = None) -> None:
        await self._step(delete_steps(call, names), tx)

    async def list_artifacts(self, call: str) -> list[ArtifactInfo]:
        return await self._read(lambda work: _artifacts(work, call))


def _calls(work: Work, name: str, values: dict[str, Any]) -> list[Call]:
    return [_call(dict(row)) for row in work.named_rows(statement(name), values)]


def _call(row: dict[str, Any]) -> Call:
    analysis = row["analysis"]
    changed = {
        "tenant": row["tenant"] or None,
        "analysis": None if analysis is None else msgspec.json.decode(analysis),
        "created_at": to_time(row["created_at"]),
    }
    return Call(**{**row, **changed})


def _artifacts(work: Work, call: str) -> list[ArtifactInfo]:
    found = work.named_rows(statement("list_artifacts"), {"call": call})
    return [
        ArtifactInfo(**{**dict(row), "created_at": to_time(row["created_at"])}) for row in found
    ]
