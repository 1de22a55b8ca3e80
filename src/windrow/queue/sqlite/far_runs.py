"""Runs of jobs whose queue is elsewhere: what they write is committed with the note of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow.errors import ConfigError, LeaseLost
from windrow.queue.sqlite.call_verbs import CallVerbs
from windrow.queue.sqlite.rows import to_json
from windrow.queue.sqlite.transaction import SqliteTransaction
from windrow.queue.sqlite.work import Work


class FarRunVerbs(CallVerbs):
    async def keep_far_run(self, key: str, run: int, ended: str | None, tx: Any) -> str | None:
        if not isinstance(tx, SqliteTransaction):
            raise ConfigError("tx is a transaction from begin() of this store")
        return await self._write(lambda work: _keep(work, key, run, ended, tx))

    async def find_far_ends(self, keys: Sequence[str]) -> dict[str, str]:
        return await self._read(lambda work: _find_ends(work, keys))

    async def list_far_runs(self, seconds: float, *, after: str = "", limit: int) -> list[str]:
        def look(work: Work) -> list[str]:
            values = {"seconds": seconds, "after": after, "limit": limit, "now": work.now}
            return [key for (key,) in work.rows("list_far_runs", values)]

        return await self._read(look)

    async def drop_far_runs(self, keys: Sequence[str]) -> None:
        await self._write(lambda work: work.run("drop_far_runs", {"keys": to_json(list(keys))}))


def _keep(work: Work, key: str, run: int, ended: str | None, tx: SqliteTransaction) -> str | None:
    values = {"key": key, "run": run, "ended": ended, "now": work.now}
    if work.rows("keep_far_run", values):
        tx.replay(work)
        return None
    ends = _find_ends(work, [key])
    if key not in ends:
        raise LeaseLost(key)
    return ends[key]


def _find_ends(work: Work, keys: Sequence[str]) -> dict[str, str]:
    return dict(work.rows("find_far_ends", {"keys": to_json(list(keys))}))
