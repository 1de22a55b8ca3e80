"""Runs of jobs whose queue is elsewhere: what they write is committed with the note of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windrow.errors import LeaseLost
from windrow.queue.sqlite.rows import to_json
from windrow.queue.sqlite.transaction import SqliteTransaction
from windrow.queue.sqlite.work import Work


def keep(work: Work, key: str, run: int, ended: str | None, tx: SqliteTransaction) -> str | None:
    values = {"key": key, "run": run, "ended": ended, "now": work.now}
    if work.rows("keep_far_run", values):
        tx.replay(work)
        return None
    ends = find_ends(work, [key])
    if key not in ends:
        raise LeaseLost(key)
    return ends[key]


def find_ends(work: Work, keys: Sequence[str]) -> dict[str, str]:
    return dict(work.rows("find_far_ends", {"keys": to_json(list(keys))}))


def list_keys(work: Work, values: Mapping[str, Any]) -> list[str]:
    return [key for (key,) in work.rows("list_far_runs", {**values, "now": work.now})]
