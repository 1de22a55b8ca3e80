"""API keys, by their hashes. Few rows, written by people."""

from __future__ import annotations

from windrow.queue.records import ApiKeyInfo, ApiKeyRow
from windrow.queue.sqlite.rows import to_time
from windrow.queue.sqlite.work import Work, statement


def insert_api_key(work: Work, row: ApiKeyRow) -> bool:
    values = {
        "name": row.name,
        "hash": row.hash,
        "tenant": row.tenant or "",
        "role": row.role,
        "now": work.now,
    }
    return work.run("insert_api_key", values) > 0


def list_api_keys(work: Work) -> list[ApiKeyInfo]:
    return [
        ApiKeyInfo(
            name=row["name"],
            hash=row["hash"],
            tenant=row["tenant"] or None,
            role=row["role"],
            created_at=to_time(row["created_at"]),
        )
        for row in work.named_rows(statement("list_api_keys"), {})
    ]


def delete_api_key(work: Work, name: str) -> bool:
    return work.run("delete_api_key", {"name": name}) > 0
