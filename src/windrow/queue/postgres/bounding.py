"""Bounded queues: how many jobs may wait in one, and what happens to those that are too many.

The row of a bounded queue is locked before an insert and its depth counted after it, so that on
our own connections the bound is exact. In a caller's transaction nothing is locked, because it may
stay open for long; there a bound may be passed by what others insert meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from windrow.db.transactions import Executor
from windrow.errors import QueueFull
from windrow.queue.postgres.rows import as_json, sql
from windrow.queue.postgres.work import Work
from windrow.queue.records import Inserted, JobRow, OnFull


@dataclass(frozen=True, slots=True)
class Bound:
    queue: str
    max_depth: int
    on_full: OnFull


async def find_bounds(
    executor: Executor, rows: Sequence[JobRow], *, is_locking: bool
) -> list[Bound]:
    """The bounds of the queues that rows go to."""
    queues = as_json(sorted({row.queue for row in rows}))
    statement = sql("lock_bounds" if is_locking else "find_bounds")
    found = await executor.fetch(statement, {"queues": queues})
    return [Bound(row["name"], row["max_depth"], row["on_full"]) for row in found]


async def keep_bounds(
    executor: Executor,
    bounds: Sequence[Bound],
    rows: Sequence[JobRow],
    inserted: Sequence[Inserted],
    work: Work | None = None,
) -> None:
    """See after an insert that queues have not become too deep. The oldest jobs can only be given
    up where there is a `work` to do it in."""
    if not bounds:
        return
    added = Counter(
        row.queue for row, one in zip(rows, inserted, strict=True) if one.outcome == "inserted"
    )
    bounded = [bound for bound in bounds if added[bound.queue]]
    queues = as_json([bound.queue for bound in bounded])
    counted = await executor.fetch(sql("count_unclaimed"), {"queues": queues})
    depths = {row["queue"]: row["depth"] for row in counted}
    for bound in bounded:
        surplus = depths.get(bound.queue, 0) - bound.max_depth
        if surplus <= 0:
            continue
        if bound.on_full != "drop_oldest":
            before = depths[bound.queue] - added[bound.queue]
            may_wait = bound.on_full == "block"
            raise QueueFull(bound.queue, before, bound.max_depth, may_wait=may_wait)
        if work is not None:
            await _drop_oldest(work, bound, surplus)


async def _drop_oldest(work: Work, bound: Bound, surplus: int) -> None:
    oldest = await work.run("find_oldest", queue=bound.queue, limit=surplus)
    reason = f"dropped: queue {bound.queue} is full ({bound.max_depth})"
    await work.cancel_jobs([str(row["id"]) for row in oldest], reason)
