"""API keys, sealed credentials, quotas and usage, for the owner and for workers to read and write.

Few rows, written by people; usage by workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from windrow.db.codec import is_storable
from windrow.ids import is_id
from windrow.queue.postgres.rows import sql
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.records import ApiKeyInfo, ApiKeyRow, CredentialInfo, CredentialRow
from windrow.queue.usage import QuotaRow, RunRow, UsageRow


class Accounts(Verbs):
    async def insert_api_key(self, row: ApiKeyRow) -> bool:
        written = await self._run(
            "insert_api_key", name=row.name, hash=row.hash, tenant=row.tenant or "", role=row.role
        )
        return bool(written)

    async def list_api_keys(self) -> list[ApiKeyInfo]:
        return [
            ApiKeyInfo(
                name=row["name"],
                hash=row["hash"],
                tenant=row["tenant"] or None,
                role=row["role"],
                created_at=row["created_at"],
            )
            for row in await self._run("list_api_keys")
        ]

    async def delete_api_key(self, name: str) -> bool:
        return is_storable(name) and bool(await self._run("delete_api_key", name=name))

    async def revoke_session(self, id: str, expires_at: datetime) -> None:
        await self._run("delete_expired_sessions")
        await self._run("revoke_session", id=id, expires_at=expires_at)

    async def list_revoked_sessions(self) -> frozenset[str]:
        return frozenset(row["id"] for row in await self._run("list_revoked_sessions"))

    async def put_credential(self, row: CredentialRow) -> None:
        await self._run(
            "put_credential",
            tenant=row.tenant or "",
            name=row.name,
            origin=row.origin,
            holds=list(row.holds),
            sealed=row.sealed,
        )

    async def list_credentials(self, tenant: str | None) -> list[CredentialInfo]:
        return [
            CredentialInfo(
                name=row["name"],
                tenant=row["tenant"] or None,
                origin=row["origin"],
                holds=tuple(row["holds"]),
                sealed=row["sealed"],
                changed_at=row["changed_at"],
            )
            for row in await self._run("list_credentials", tenant=tenant or "")
        ]

    async def delete_credential(self, name: str, tenant: str | None) -> bool:
        values = {"name": name, "tenant": tenant or ""}
        return is_storable(name) and bool(await self._run("delete_credential", **values))

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
