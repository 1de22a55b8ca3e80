"""Quotas of tenants and what was used of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from windrow.queue.sqlite.rows import to_json, to_micros
from windrow.queue.sqlite.work import PACKAGE, Work
from windrow.queue.statements import load_statements
from windrow.queue.usage import QuotaRow, RunRow, UsageRow


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
