"""Keys of the HTTP API, by their hashes, and the dashboard's sessions that were revoked."""

from __future__ import annotations

from datetime import datetime

import msgspec

from windrow.db.codec import is_storable
from windrow.db.database import Database, Transaction


class ApiKeyRow(msgspec.Struct, frozen=True):
    """Whom a key of the HTTP API stands for; a tenant of None is all of them."""

    name: str
    hash: str
    tenant: str | None
    role: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, tenant={self.tenant!r}, role={self.role!r})"


class ApiKeyInfo(ApiKeyRow, frozen=True, kw_only=True):
    created_at: datetime


class ApiKeys:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def insert(self, row: ApiKeyRow) -> bool:
        """Store a new key; False if there is one of that name."""
        values = msgspec.structs.asdict(row)
        return bool(await self._db.rows("insert_api_key", **values))

    async def all(self) -> list[ApiKeyInfo]:
        """All of them by name."""
        return [ApiKeyInfo(**row) for row in await self._db.rows("list_api_keys")]

    async def delete(self, name: str) -> bool:
        """Delete a key; whether it was there."""
        return is_storable(name) and bool(await self._db.rows("delete_api_key", name=name))


class RevokedSessions:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def revoke(self, id: str, expires_at: datetime) -> None:
        """Store the digest of a session of the dashboard that was logged out. Idempotent."""
        await self._db.transact(_revoke, id, expires_at)

    async def revoked(self) -> frozenset[str]:
        """The digests of revoked sessions that have not expired."""
        return frozenset(row["id"] for row in await self._db.rows("list_revoked_sessions"))


async def _revoke(tx: Transaction, id: str, expires_at: datetime) -> None:
    await tx.run("delete_expired_sessions")
    await tx.run("revoke_session", id=id, expires_at=expires_at)
