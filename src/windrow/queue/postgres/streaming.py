"""The stream of events: read up to where nothing can come in between any more, removed by leaves.

Numbers are taken in the order in which things happen, but transactions commit in another. Each one
that writes events holds a lock on a number smaller than all of its own until it ends
(windrow.next_event), so the smallest of these locks is how far a reader may go.
"""

from __future__ import annotations

from typing import Any

from windrow.db.transactions import Executor
from windrow.errors import StoreConflict
from windrow.queue.postgres.pruning import on_leaf
from windrow.queue.postgres.rows import Row, as_utc, sql
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.records import EventBatch, EventFilter, EventPage


class Streaming(Verbs):
    async def read_events(
        self, after: int | None, wanted: EventFilter, *, span: int, limit: int
    ) -> EventPage:
        [found] = await self._run("find_horizon")
        horizon, last = found["horizon"], found["last"]
        start = horizon if after is None else max(after, found["floor"])
        if start >= horizon:
            return EventPage((), start, found["floor"], last, start < last)
        until = min(horizon, start + span)
        values = _wanted(wanted) | {"after": start, "until": until, "limit": limit}
        rows = await self._database.fetch(sql("read_events"), values)
        # A leaf that was truncated meanwhile is empty for older snapshots too; the floor tells.
        [found] = await self._run("find_horizon")
        read_to = until if len(rows) < limit else rows[-1]["seq"]
        return EventPage(tuple(map(_to_batch, rows)), read_to, found["floor"], last, read_to < last)

    async def prune_events(self, seconds: float, limit: int = 1000) -> bool:
        for leaf in await self._run("list_event_leaves", seconds=seconds):
            if not leaf["is_old"]:
                return True
            if not await self._cut_events(leaf["leaf"], seconds):
                break  # the next prune will find it
        return True

    async def _cut_events(self, leaf: str, seconds: float) -> bool:
        """Remove a leaf of events if they are still old; False if somebody uses it just now."""

        async def do(executor: Executor) -> None:
            await executor.fetch(on_leaf(leaf, "lock_leaf"), {})
            values = {"seconds": seconds, "now": self.clock.now()}
            for last in await executor.fetch(on_leaf(leaf, "find_last_event"), values):
                await executor.fetch(sql("raise_floor"), {"seq": last["seq"]})
                await executor.fetch(on_leaf(leaf, "empty_leaf"), {})

        try:
            await self._database.in_transaction(do)
        except StoreConflict:
            return False
        return True


def _wanted(wanted: EventFilter) -> dict[str, Any]:
    return {
        "types": None if wanted.types is None else list(wanted.types),
        "queue": wanted.queue,
        "group_id": wanted.group,
        "job_id": wanted.job,
        "names_jobs": wanted.names_jobs,
    }


def _to_batch(row: Row) -> EventBatch:
    return EventBatch(
        seq=row["seq"],
        at=as_utc(row["at"]),
        type=row["type"],
        state=row["state"],
        queue=row["queue"],
        kind=row["kind"],
        tenant=row["tenant"],
        group_id=None if row["group_id"] is None else str(row["group_id"]),
        job_ids=None if row["job_ids"] is None else tuple(map(str, row["job_ids"])),
        details=row["details"],
        jobs=row["jobs"],
    )
