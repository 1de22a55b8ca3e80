"""Quotas of tenants and what was used of them, for the owner and workers to read and write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from windrow.queue.codec import is_storable
from windrow.queue.ids import is_id
from windrow.queue.postgres.rows import sql
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.usage import QuotaRow, RunRow, UsageRow


class Accounting(Verbs):
    async def put_quotas(self, rows: Sequence[QuotaRow]) -> None:
        await self._run(
            "put_quotas",
            tenants=[row.tenant for row in rows],
            credits=[row.credits for row in rows],
            pers=[row.per for row in rows],
        )

    async def list_quotas(self) -> list[QuotaRow]:
        rows = await self._run("list_quotas")
        return [QuotaRow(row["tenant"], row["credits"], row["per"]) for row in rows]

    async def delete_quotas(self, tenants: Sequence[str]) -> int:
        named = [tenant for tenant in tenants if is_storable(tenant)]
        return len(await self._run("delete_quotas", tenants=named))

    async def add_usage(self, rows: Sequence[UsageRow], *, tx: Any = None) -> None:
        values = {
            "tenants": [row.tenant for row in rows],
            "periods": [row.period for row in rows],
            "credits": [row.credits for row in rows],
        }
        if tx is None:
            await self._run("add_usage", **values)
            return
        found = sql("add_usage")
        await tx.execute(found.numbered, *found.bind(values))

    async def get_usage(self, tenant: str, period: datetime) -> int:
        [row] = await self._run("get_usage", tenant=tenant, period=period)
        return int(row["credits"])

    async def open_runs(self, rows: Sequence[RunRow]) -> None:
        tenants = [row.tenant for row in rows]
        periods = [row.period for row in rows]
        await self._run("forget_runs", tenants=tenants, periods=periods)
        ids = [row.id for row in rows]
        await self._run("open_runs", ids=ids, tenants=tenants, periods=periods)

    async def settle_runs(self, ids: Sequence[str]) -> None:
        await self._run("settle_runs", ids=[one for one in ids if is_id(one)])
