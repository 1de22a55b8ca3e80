"""Bounded queues: how many jobs may wait in one, and what happens to those that are too many.

This is for the writer, whose transaction is rolled back if a queue is full. In a caller's, the
insertion itself refuses before it writes anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from windrow.errors import QueueFull
from windrow.queue.records import Inserted, JobRow
from windrow.queue.sqlite.inserting import insert_now
from windrow.queue.sqlite.settling import cancel_now
from windrow.queue.sqlite.work import Work, statement


def insert_bounded(work: Work, rows: Sequence[JobRow]) -> list[Inserted]:
    """Insert, and see that bounded queues do not become too deep by it."""
    bounds = work.named_rows(statement("find_bounds"), {})
    inserted = insert_now(work, rows)
    for bound in _concerned(bounds, rows, inserted):
        [(depth,)] = work.rows("count_unclaimed", {"queue": bound["name"]})
        surplus = depth - bound["max_depth"]
        if surplus <= 0:
            continue
        if bound["on_full"] != "drop_oldest":
            raise _full(bound, depth, rows, inserted)
        oldest = work.live_jobs("find_oldest", {"queue": bound["name"], "limit": surplus})
        reason = f"dropped: queue {bound['name']} is full ({bound['max_depth']})"
        cancel_now(work, oldest, reason)
    return inserted


def _concerned(
    bounds: Sequence[Any], rows: Sequence[JobRow], inserted: Sequence[Inserted]
) -> list[Any]:
    if not bounds:
        return []
    added = _added(rows, inserted)
    return [bound for bound in bounds if added[bound["name"]]]


def _added(rows: Sequence[JobRow], inserted: Sequence[Inserted]) -> Counter[str]:
    pairs = zip(rows, inserted, strict=True)
    return Counter(row.queue for row, one in pairs if one.outcome == "inserted")


def _full(
    bound: Any, depth: int, rows: Sequence[JobRow], inserted: Sequence[Inserted]
) -> QueueFull:
    before = depth - _added(rows, inserted)[bound["name"]]
    may_wait = bound["on_full"] == "block"
    return QueueFull(bound["name"], before, bound["max_depth"], may_wait=may_wait)
