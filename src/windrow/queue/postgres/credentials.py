"""Sealed credentials. Few rows, written by people, for the owner and for workers to read."""

from __future__ import annotations

from windrow.queue.codec import is_storable
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.records import CredentialInfo, CredentialRow


class Credentials(Verbs):
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
