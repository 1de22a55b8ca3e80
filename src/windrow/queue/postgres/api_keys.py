"""API keys, by their hashes. Few rows, written by people, for the owner and workers to read."""

from __future__ import annotations

from windrow.queue.codec import is_storable
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.records import ApiKeyInfo, ApiKeyRow


class ApiKeys(Verbs):
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
