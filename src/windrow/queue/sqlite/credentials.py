"""Sealed credentials. Few rows, written by people."""

from __future__ import annotations

from windrow.queue.records import CredentialInfo, CredentialRow
from windrow.queue.sqlite.rows import to_json, to_tags, to_time
from windrow.queue.sqlite.work import Work, statement


def put_credential(work: Work, row: CredentialRow) -> None:
    values = {
        "tenant": row.tenant or "",
        "name": row.name,
        "origin": row.origin,
        "holds": to_json(list(row.holds)),
        "sealed": row.sealed,
        "now": work.now,
    }
    work.run("put_credential", values)


def list_credentials(work: Work, tenant: str | None) -> list[CredentialInfo]:
    found = work.named_rows(statement("list_credentials"), {"tenant": tenant or ""})
    return [
        CredentialInfo(
            name=row["name"],
            tenant=row["tenant"] or None,
            origin=row["origin"],
            holds=to_tags(row["holds"]),
            sealed=row["sealed"],
            changed_at=to_time(row["changed_at"]),
        )
        for row in found
    ]


def delete_credential(work: Work, name: str, tenant: str | None) -> bool:
    return work.run("delete_credential", {"name": name, "tenant": tenant or ""}) > 0
