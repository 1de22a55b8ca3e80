"""API keys, sealed credentials, quotas and usage. Few rows, written by people; usage by workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from windrow.db.statements import load_statements
from windrow.queue.records import ApiKeyInfo, ApiKeyRow, CredentialInfo, CredentialRow
from windrow.queue.sqlite.rows import to_json, to_micros, to_tags, to_time
from windrow.queue.sqlite.work import PACKAGE, Work, statement
from windrow.queue.usage import QuotaRow, RunRow, UsageRow


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


def revoke_session(work: Work, id: str, expires_at: datetime) -> None:
    work.run("delete_expired_sessions", {"now": work.now})
    work.run("revoke_session", {"id": id, "expires_at": to_micros(expires_at)})


def list_revoked_sessions(work: Work) -> frozenset[str]:
    rows = work.named_rows(statement("list_revoked_sessions"), {"now": work.now})
    return frozenset(row["id"] for row in rows)


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


def put_quotas(work: Work, rows: Sequence[QuotaRow]) -> None:
    values = [[row.tenant, row.credits, row.per] for row in rows]
    work.run("put_quotas", {"rows": to_json(values)})


def list_quotas(work: Work) -> list[QuotaRow]:
    return [QuotaRow(*row) for row in work.rows("list_quotas", {})]


def delete_quotas(work: Work, tenants: Sequence[str]) -> int:
    return work.run("delete_quotas", {"tenants": to_json(list(tenants))})


def add_usage(work: Work, rows: Sequence[UsageRow]) -> None:
    work.run("add_usage", _usage(rows))


def usage_by_place(rows: Sequence[UsageRow]) -> tuple[Any, ...]:
    """The statement and its values as a job's transaction takes them."""
    found = load_statements(PACKAGE)["add_usage"]
    return found.numbered, *found.bind(_usage(rows))


def get_usage(work: Work, tenant: str, period: datetime) -> int:
    [[credits]] = work.rows("get_usage", {"tenant": tenant, "period": to_micros(period)})
    return int(credits)


def open_runs(work: Work, rows: Sequence[RunRow]) -> None:
    given = {"rows": to_json([[row.id, row.tenant, to_micros(row.period)] for row in rows])}
    work.run("forget_runs", given)
    work.run("open_runs", given)


def settle_runs(work: Work, ids: Sequence[str]) -> None:
    given = {"ids": to_json(list(ids))}
    work.run("settle_runs", given)
    work.run("close_runs", given)


def _usage(rows: Sequence[UsageRow]) -> dict[str, Any]:
    return {"rows": to_json([[row.tenant, to_micros(row.period), row.credits] for row in rows])}
