"""Retention: removing what is past its time.

Jobs that are kept for a day at the most lie in a ring of leaves by the hour of their expiry. When
that is over they are removed in batches, each with its payload, history and count in one
transaction; then the empty leaf is cut to nothing, so its dead rows cost no vacuum and its room is
given back at once. That takes a lock nobody else holds, or is left for later: nothing waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from windrow.db.statements import Statement
from windrow.db.transactions import Executor
from windrow.errors import StoreConflict
from windrow.queue.postgres.changing import delete_blobs
from windrow.queue.postgres.looking import read_jobs
from windrow.queue.postgres.rows import Row, sql
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import Work
from windrow.queue.records import Archive, DiskUsage, Pruned, Retention

KEPT: Final = "job_finished_kept"
MOST_PER_STEP: Final = 500
KEYS_PER_STEP: Final = 10_000
PAGES_PER_SCAN: Final = 64
MOST_BLOBS: Final = 100
LEAVES_LOOKED_AT_AGAIN: Final = 2  # by list_due_leaves, before an hour has passed


class Pruning(Verbs):
    async def set_retention(self, queue: str, seconds: Mapping[str, int | None]) -> None:
        values: dict[str, Any] = {"name": queue}
        for state in ("completed", "failed", "cancelled"):
            values |= {state: seconds.get(state), f"has_{state}": state in seconds}
        await self._run("set_retention", **values)

    async def list_retention(self) -> dict[str, Retention]:
        return {
            row["name"]: Retention(
                row["completed_seconds"], row["failed_seconds"], row["cancelled_seconds"]
            )
            for row in await self._run("list_retention")
        }

    async def prune_jobs(self, limit: int = 500, *, archive: Archive | None = None) -> Pruned:
        jobs = groups = 0
        is_held = False
        leaves = await self._run("list_due_leaves")
        for leaf in leaves:
            if leaf["pages"]:
                jobs += await self._sweep(leaf["leaf"], leaf["pages"], limit - jobs, archive)
                if jobs >= limit:
                    return Pruned(jobs, is_done=False)
                is_held |= not await self._cut(leaf["leaf"])
        while jobs < limit and (ids := await self._find("find_expired_jobs", limit - jobs)):
            removed = await self._remove(KEPT, ids, archive)
            jobs += removed
            if not removed:
                break
        while jobs < limit and (found := await self._find("find_expired_groups", 1)):
            removed, is_gone = await self._remove_members(found[0], limit - jobs, archive)
            jobs += removed
            groups += is_gone
            if not removed and not is_gone:
                break
        if jobs >= limit:
            return Pruned(jobs, groups, is_done=False)
        if not is_held:
            if len(leaves) > LEAVES_LOOKED_AT_AGAIN:  # about once an hour
                await self._remove_unused_blobs()
            await self._run("record_pruning")
        return Pruned(jobs, groups)

    async def measure_disk(self) -> DiskUsage:
        [row] = await self._run("measure_disk")
        total = row["total"]
        return DiskUsage(total, total, row["payloads"], row["results"], row["blobs"])

    async def _find(self, name: str, limit: int, **values: Any) -> list[str]:
        found = await self._run(name, limit=min(limit, MOST_PER_STEP), **values)
        return [str(row["id"]) for row in found]

    async def _sweep(self, leaf: str, pages: int, limit: int, archive: Archive | None) -> int:
        """Remove what has expired in a leaf, page after page: a search from the beginning would
        meet all that was removed before, each time."""
        removed = 0
        for first in range(0, pages, PAGES_PER_SCAN):
            found = await self._database.fetch(
                on_leaf(leaf, "scan_leaf"),
                {
                    "first_page": first,
                    "end_page": first + PAGES_PER_SCAN,
                    "now": self.clock.now(),
                },
            )
            for batch in _batches([str(row["id"]) for row in found]):
                if removed >= limit:
                    return removed
                removed += await self._remove(leaf, batch, archive)
        return removed

    async def _cut(self, leaf: str) -> bool:
        """Give the room of an empty leaf back; False if somebody uses it just now. One that is not
        empty has been written to again, and stays as it is."""

        async def do(executor: Executor) -> None:
            await executor.fetch(on_leaf(leaf, "lock_leaf"), {})
            [found] = await executor.fetch(on_leaf(leaf, "probe_leaf"), {})
            if not found["is_used"]:
                await executor.fetch(on_leaf(leaf, "empty_leaf"), {})

        try:
            await self._database.in_transaction(do)
        except StoreConflict:
            return False
        return True

    async def _remove_members(
        self, group_id: str, limit: int, archive: Archive | None
    ) -> tuple[int, bool]:
        """Remove members of an expired group, and the group with the last of them."""
        ids = await self._find("find_expired_members", limit, group_id=group_id)
        removed = await self._remove(KEPT, ids, archive) if ids else 0
        keys = {"group_id": group_id, "limit": KEYS_PER_STEP}
        while len(await self._run("delete_group_keys", **keys)) == KEYS_PER_STEP:
            pass
        return removed, bool(await self._run("delete_groups", ids=[group_id]))

    async def _remove(self, leaf: str, ids: Sequence[str], archive: Archive | None) -> int:
        """Remove jobs with all that is kept of them. The archive is written before, under a lock on
        the rows, so that nobody else writes them too; if it fails nothing is removed."""

        async def do(work: Work) -> int:
            chosen = list(ids)
            if archive is not None:
                chosen = await _lock(work, leaf, chosen)
                jobs = await read_jobs(work.run, chosen)
                await asyncio.to_thread(archive, list(jobs.values()))
            values = {"ids": chosen, "now": work.now}
            gone = await work.executor.fetch(on_leaf(leaf, "prune_jobs"), values)
            await delete_blobs(work, {row["hash"] for row in gone if row["hash"] is not None})
            return len(gone)

        return await self._transact(do)

    async def _remove_unused_blobs(self) -> None:
        async def do(work: Work) -> int:
            found: Sequence[Row] = await work.run("find_unused_blobs", limit=MOST_BLOBS)
            await delete_blobs(work, {row["hash"] for row in found})
            return len(found)

        while await self._transact(do) == MOST_BLOBS:
            pass


async def _lock(work: Work, leaf: str, ids: Sequence[str]) -> list[str]:
    locked = await work.executor.fetch(on_leaf(leaf, "lock_expired"), {"ids": ids})
    return [str(row["id"]) for row in locked]


def on_leaf(leaf: str, name: str) -> Statement:
    """A statement on one leaf: naming it keeps the others out of the plan and unlocked."""
    statement = sql(name)
    return msgspec.structs.replace(
        statement,
        text=statement.text.format(leaf=leaf),
        numbered=statement.numbered.format(leaf=leaf),
    )


def _batches(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[i : i + MOST_PER_STEP] for i in range(0, len(ids), MOST_PER_STEP)]
