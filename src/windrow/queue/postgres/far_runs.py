"""Runs of jobs whose queue is elsewhere: what they write is committed with the note of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow.db.postgres.failures import wrapped_errors
from windrow.errors import LeaseLost
from windrow.queue.postgres.finishing import own_transaction
from windrow.queue.postgres.rows import sql
from windrow.queue.postgres.verbs import Verbs


class FarRuns(Verbs):
    async def keep_far_run(self, key: str, run: int, ended: str | None, tx: Any) -> str | None:
        own = own_transaction(tx)
        values = {"key": key, "run": run, "ended": ended, "now": self.clock.now()}
        try:
            with wrapped_errors():
                kept = await own.executor.fetch(sql("keep_far_run"), values)
            if kept:
                await own.commit()
                return None
        finally:
            await own.rollback()  # which changes nothing when it was committed
        ends = await self.find_far_ends([key])
        if key not in ends:
            raise LeaseLost(key)
        return ends[key]

    async def find_far_ends(self, keys: Sequence[str]) -> dict[str, str]:
        found = await self._run("find_far_ends", keys=list(keys))
        return {row["key"]: row["ended"] for row in found}

    async def list_far_runs(self, seconds: float, *, after: str = "", limit: int) -> list[str]:
        found = await self._run("list_far_runs", seconds=seconds, after=after, limit=limit)
        return [row["key"] for row in found]

    async def drop_far_runs(self, keys: Sequence[str]) -> None:
        await self._run("drop_far_runs", keys=list(keys))
