"""New jobs that differ in their ids and payloads only, as those of one call mostly do, and those of
callers who wait side by side: what they share is decided and bound once for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.queue.records import Inserted, JobRow
from windrow.queue.sqlite.rows import raw_text, to_json, to_state, to_time
from windrow.queue.sqlite.steps import Steps, Values, due_at, due_state
from windrow.queue.sqlite.work import event_row, pack_ids


def alike_steps(rows: Sequence[JobRow], now: int) -> Steps:
    """The whole insertion of plain rows that are alike."""
    row = rows[0]
    run_at = due_at(row, now)
    state = due_state(row, run_at, now)
    ids = [one.id for one in rows]
    [last] = yield "find_last_seq", {}
    first = last["seq"] + 1
    yield "insert_alike", [_shared_values(row, ids, first, state, run_at, now)]
    yield "insert_payloads", _payloads(rows, first)
    yield "add_counts", [{"queue": row.queue, "state": state, "count": len(rows)}]
    key = (row.queue, row.kind, row.tenant, None)
    yield "add_events", [event_row(now, "job.created", state, key, pack_ids(ids), None)]
    created, found = to_time(now), to_state(state)
    due = created if run_at == now else to_time(run_at)
    return [
        Inserted(job_id, "inserted", seq, found, due, created)
        for seq, job_id in enumerate(ids, first)
    ]


def _shared_values(
    row: JobRow, ids: Sequence[str], first: int, state: str, run_at: int, now: int
) -> Values:
    return {
        "ids": to_json(ids),
        "first": first,
        "queue": row.queue,
        "kind": row.kind,
        "state": state,
        "priority": row.priority,
        "run_at": run_at,
        "created_at": now,
        "max_attempts": row.max_attempts,
        "max_crashes": row.max_crashes,
        "lease_seconds": row.lease_seconds,
        "retention_seconds": row.retention_seconds,
        "tenant": row.tenant,
        "limit_keys": to_json(row.limits) if row.limits else None,
        "fair_key": row.limits[0] if row.limits else None,
        "max_hold_seconds": row.max_hold_seconds,
    }


def _payloads(rows: Sequence[JobRow], first: int) -> list[Values]:
    headers = "" if rows[0].headers is None else raw_text(rows[0].headers)
    tags = to_json(rows[0].tags) if rows[0].tags else ""
    is_cleaned = int(rows[0].is_cleaned)
    return [
        {
            "seq": seq,
            "payload": raw_text(row.payload),
            "headers": headers,
            "tags": tags,
            "is_cleaned": is_cleaned,
        }
        for seq, row in enumerate(rows, first)
    ]
