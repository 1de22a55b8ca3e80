"""Recordings of calls and what is kept of them."""

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
from windrow.queue.postgres.documenting import Documenting
from windrow.queue.postgres.rows import Row, as_utc, uuids


class Calling(Documenting):
    async def put_calls(self, rows: Sequence[CallRow]) -> None:
        await self._step(row_steps("put_calls", rows), None)

    async def get_calls(self, tenant: str | None, ids: Sequence[str]) -> list[Call]:
        found = await self._run("get_calls", tenant=tenant, ids=uuids(ids))
        return [_call(row) for row in found]

    async def list_calls(
        self, tenant: str | None = None, *, status: str | None = None, limit: int = 100
    ) -> list[Call]:
        found = await self._run("list_calls", tenant=tenant, status=status, limit=limit)
        return [_call(row) for row in found]

    async def count_calls(self, tenant: str | None = None) -> dict[str, int]:
        return {row["status"]: row["n"] for row in await self._run("count_calls", tenant=tenant)}

    async def note_call(self, note: CallNote, *, tx: Any = None) -> None:
        await self._step(row_steps("note_calls", [note]), tx)

    async def put_analysis(self, row: AnalysisRow, *, tx: Any = None) -> None:
        await self._step(row_steps("put_analyses", [row]), tx)

    async def put_artifacts(self, rows: Sequence[ArtifactRow], *, tx: Any = None) -> None:
        await self._step(row_steps("put_artifacts", rows), tx)

    async def delete_artifacts(self, call: str, names: Sequence[str], *, tx: Any = None) -> None:
        await self._step(delete_steps(call, names), tx)

    async def list_artifacts(self, call: str) -> list[ArtifactInfo]:
        return [
            ArtifactInfo(
                **{**row, "call": str(row["call"]), "created_at": as_utc(row["created_at"])}
            )
            for row in await self._run("list_artifacts", call=call)
        ]


def _call(row: Row) -> Call:
    analysis = row["analysis"]
    changed = {
        "id": str(row["id"]),
        "tenant": row["tenant"] or None,
        "analysis": None if analysis is None else msgspec.json.decode(analysis),
        "created_at": as_utc(row["created_at"]),
    }
    return Call(**{**row, **changed})
