"""Sealed credentials by tenant and name. The key that opens them is not in the database."""

from __future__ import annotations

from datetime import datetime

import msgspec

from windrow.db.codec import is_storable
from windrow.db.database import Database


class CredentialRow(msgspec.Struct, frozen=True):
    """What a site must be shown, sealed; `holds` names what is in it."""

    name: str
    tenant: str | None
    origin: str
    holds: tuple[str, ...]
    sealed: bytes

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.name!r}, tenant={self.tenant!r}, origin={self.origin!r}, "
            f"holds={self.holds!r})"
        )


class CredentialInfo(CredentialRow, frozen=True, kw_only=True):
    changed_at: datetime


class SealedCredentials:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def put(self, row: CredentialRow) -> None:
        """Store one in place of one of the same name."""
        await self._db.run("put_credential", **msgspec.structs.asdict(row))

    async def of_tenant(self, tenant: str | None) -> list[CredentialInfo]:
        """Those of a tenant, or of none, by name."""
        rows = await self._db.rows("list_credentials", tenant=tenant)
        return [CredentialInfo(**row) for row in rows]

    async def delete(self, name: str, tenant: str | None) -> bool:
        """Delete one; whether it was there."""
        values = {"name": name, "tenant": tenant}
        return is_storable(name) and bool(await self._db.rows("delete_credential", **values))
