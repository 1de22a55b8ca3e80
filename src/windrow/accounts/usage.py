"""What tenants may use of the HTTP API in a period, and what they have used of it.

A tenant's usage is a number for each period, and what its open runs have completed so far: runs are
groups, whose rows count their members anyway. When a run ends its count becomes part of the number,
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from windrow.db.codec import is_storable
from windrow.db.database import Database, Transaction

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


class Quotas:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def put(self, rows: Sequence[QuotaRow]) -> None:
        """Set them in place of those that the tenants had."""
        await self._db.run("put_quotas", quotas=rows)

    async def all(self) -> list[QuotaRow]:
        """All of them by tenant."""
        return [QuotaRow(**row) for row in await self._db.rows("list_quotas")]

    async def delete(self, tenants: Sequence[str]) -> int:
        """Let tenants use what they like; how many had a quota."""
        named = [tenant for tenant in tenants if is_storable(tenant)]
        return len(await self._db.rows("delete_quotas", tenants=named))


class UsageLedger:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def add(self, rows: Sequence[UsageRow], *, tx: Any = None) -> None:
        """Count credits. With `tx`, a job's, they are counted if and only if the job is
        completed."""
        await (self._db if tx is None else self._db.joined(tx)).run("add_usage", usage=rows)

    async def get(self, tenant: str, period: datetime) -> int:
        """What was used in a period, with what open runs have completed so far."""
        [row] = await self._db.rows("get_usage", tenant=tenant, period=period)
        return int(row["credits"])

    async def open_runs(self, rows: Sequence[RunRow]) -> None:
        """Have what these groups complete count; one that is known, also as ended, stays as it is.
        Runs of earlier periods that have ended are forgotten."""
        await self._db.transact(_open_runs, rows)

    async def settle_runs(self, ids: Sequence[str]) -> None:
        """Add what runs have completed to the usage, now that they have ended. Idempotent; ids of
        no run are passed over."""
        await self._db.transact(_settle_runs, ids)


async def _open_runs(tx: Transaction, rows: Sequence[RunRow]) -> None:
    await tx.run("forget_runs", runs=rows)
    await tx.run("open_runs", runs=rows)


async def _settle_runs(tx: Transaction, ids: Sequence[str]) -> None:
    closed = await tx.rows("close_runs", ids=ids)
    await tx.run("add_completed", ids=[row["id"] for row in closed])
