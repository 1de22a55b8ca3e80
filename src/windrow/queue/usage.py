"""What tenants may use of the HTTP API in a period, and what they have used of it.

A tenant's usage is a number for each period, and what its open runs have completed so far: runs are
groups, whose rows count their members anyway. When a run ends its count becomes part of the number,
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

import msgspec

Per = Literal["day", "month"]


class QuotaRow(msgspec.Struct, frozen=True):
    tenant: str
    credits: int
    per: Per


class UsageRow(msgspec.Struct, frozen=True):
    tenant: str
    period: datetime  # its beginning
    credits: int


class RunRow(msgspec.Struct, frozen=True):
    """A group whose members are paid for when they complete, in the period in which it began."""

    id: str
    tenant: str
    period: datetime


class UsageStore(Protocol):
    """Quotas of tenants and what was used of them."""

    async def put_quotas(self, rows: Sequence[QuotaRow]) -> None:
        """Set them, in the place of those that the tenants had."""
        ...

    async def list_quotas(self) -> list[QuotaRow]:
        """All of them, by tenant."""
        ...

    async def delete_quotas(self, tenants: Sequence[str]) -> int:
        """Let tenants use what they like; how many had a quota."""
        ...

    async def add_usage(self, rows: Sequence[UsageRow], *, tx: Any = None) -> None:
        """Count credits. With `tx`, a job's, they are counted if and only if the job is
        completed."""
        ...

    async def get_usage(self, tenant: str, period: datetime) -> int:
        """What was used in a period, with what open runs have completed so far."""
        ...

    async def open_runs(self, rows: Sequence[RunRow]) -> None:
        """Have what these groups complete count; one that is known, also as ended, stays as it is.
        Runs of earlier periods that have ended are forgotten."""
        ...

    async def settle_runs(self, ids: Sequence[str]) -> None:
        """Add what runs have completed to the usage, now that they have ended; a second time
        changes nothing. Ids of no run are passed over."""
        ...
