"""Recordings of calls: where each is on its way, what is kept of it, and what was made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from windrow.db.codec import encode
from windrow.queue.documents import Steps, tenant_text


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


class CallStore(Protocol):
    """With `tx`, a job's, what is put is put if and only if the job is completed."""

    async def put_calls(self, rows: Sequence[CallRow]) -> None:
        """Those that are there stay as they are."""
        ...

    async def get_calls(self, tenant: str | None, ids: Sequence[str]) -> list[Call]:
        """Of a tenant, "" for none, or of whichever."""
        ...

    async def list_calls(
        self, tenant: str | None = None, *, status: str | None = None, limit: int = 100
    ) -> list[Call]:
        """The newest first."""
        ...

    async def count_calls(self, tenant: str | None = None) -> dict[str, int]:
        """How many have each status, of those that have not ended."""
        ...

    async def note_call(self, note: CallNote, *, tx: Any = None) -> None: ...

    async def put_analysis(self, row: AnalysisRow, *, tx: Any = None) -> None:
        """Write it, unless the one that is there was made from the same."""
        ...

    async def put_artifacts(self, rows: Sequence[ArtifactRow], *, tx: Any = None) -> None:
        """Those that are there stay as they are."""
        ...

    async def delete_artifacts(
        self, call: str, names: Sequence[str], *, tx: Any = None
    ) -> None: ...

    async def list_artifacts(self, call: str) -> list[ArtifactInfo]:
        """The oldest first."""
        ...


def row_steps(name: str, rows: Sequence[Any]) -> Steps:
    """The statement that writes rows, as the stores run it."""
    return [(name, {"rows": _json([_plain(row) for row in rows])})]


def delete_steps(call: str, names: Sequence[str]) -> Steps:
    return [("delete_artifacts", {"call": call, "names": _json(list(names))})]


def _plain(row: Any) -> dict[str, Any]:
    plain = msgspec.structs.asdict(row)
    if "tenant" in plain:
        plain["tenant"] = tenant_text(row.tenant)
    return plain


def _json(value: Any) -> str:
    return encode(value, "calls").json.decode()
