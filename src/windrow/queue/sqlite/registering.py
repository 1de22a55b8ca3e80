"""Which workers are alive, and which one leads until when. Few rows, written by heartbeats."""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec.structs import asdict

from windrow.queue.records import WorkerInfo, WorkerRow
from windrow.queue.sqlite.rows import after, to_json, to_tags, to_time
from windrow.queue.sqlite.work import Work, statement


def register_worker(work: Work, row: WorkerRow, seconds: float) -> None:
    lists = {"queues": _list(row.queues), "kinds": _list(row.kinds)}
    times = {"now": work.now, "expires_at": after(work.now, seconds)}
    work.run("register_worker", asdict(row) | lists | times)
    work.run("drop_dead_workers", {"now": work.now})
    work.run("clear_unserved", lists | {"tenants": None})


def drop_worker(work: Work, worker_id: str) -> bool:
    return work.run("drop_worker", {"id": worker_id}) > 0


def list_workers(work: Work) -> list[WorkerInfo]:
    return [_read(row) for row in work.named_rows(statement("list_workers"), {"now": work.now})]


def elect_leader(work: Work, role: str, holder: str, seconds: float) -> bool:
    values = {"role": role, "holder": holder, "seconds": seconds, "now": work.now}
    return bool(work.rows("elect_leader", values))


def resign_leader(work: Work, role: str, holder: str) -> bool:
    return bool(work.rows("resign_leader", {"role": role, "holder": holder}))


def _list(names: tuple[str, ...] | None) -> str | None:
    return None if names is None else to_json(names)


def _read(row: sqlite3.Row) -> WorkerInfo:
    fields: dict[str, Any] = dict(row)
    for name in ("queues", "kinds"):
        fields[name] = None if row[name] is None else to_tags(row[name])
    for name in ("started_at", "seen_at", "expires_at"):
        fields[name] = to_time(row[name])
    return WorkerInfo(**fields)
