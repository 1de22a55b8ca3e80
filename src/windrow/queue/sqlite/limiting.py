"""Limits per key: setting them, promoting held jobs under them, giving up on those held too long.

There is one writer, so nothing has to be locked: what is counted here stays so until the commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from windrow.queue.job import JobError, JobState
from windrow.queue.limits import KEYS_AT_ONCE, LOOK_AHEAD, Held, Limit, choose_jobs
from windrow.queue.records import Change, LimitInfo, LimitRow
from windrow.queue.sqlite.rows import LiveJob, after, to_json, to_micros, to_optional_time, to_time
from windrow.queue.sqlite.settling import leave
from windrow.queue.sqlite.work import Work, statement


def set_limit(work: Work, row: LimitRow) -> None:
    work.run(
        "set_limit",
        {
            "key": row.key,
            "active": row.active,
            "per_second": row.per_second,
            "burst": row.burst,
        },
    )
    limits = _count(work, _read_limits(work, [row.key]))
    _save(work, limits)
    limit = limits[row.key]
    if surplus := limit.surplus():
        _demote(work, row.key, surplus)


def _demote(work: Work, key: str, count: int) -> None:
    """Ready jobs over a limit are held again, the last in the line first."""
    worst = work.rows("find_surplus", {"key": key, "limit": count})
    work.run("demote_jobs", {"seqs": to_json([seq for seq, _ in worst])})
    for _, queue in worst:
        work.counts[queue, "ready"] -= 1
        work.counts[queue, "held"] += 1


def remove_limit(work: Work, key: str) -> bool:
    was_set = _read_limits(work, [key])[key].is_set
    work.run("remove_limit", {"key": key})
    return was_set


def list_limits(work: Work, counts_held: bool) -> list[LimitInfo]:
    values = {"now": work.now, "counts_held": counts_held}
    found = work.named_rows(statement("list_limits"), values)
    return [
        LimitInfo(**dict(row) | {"parked_until": to_optional_time(row["parked_until"])})
        for row in found
    ]


def park_key(work: Work, key: str, until: datetime | None, seconds: float | None) -> None:
    moment = None if until is None else to_micros(until)
    if moment is None and seconds is not None:
        moment = after(work.now, seconds)
    work.run("park_key", {"key": key, "until": moment})


def list_held_keys(work: Work, behind: str) -> tuple[list[str], str]:
    """The next keys that jobs are held under, from the first again after the last; and the key to
    begin behind next time."""
    keys = [key for (key,) in _held_keys(work, behind, KEYS_AT_ONCE)]
    if len(keys) == KEYS_AT_ONCE:
        return keys, keys[-1]
    if not behind:
        return keys, ""
    more = [key for (key,) in _held_keys(work, "", KEYS_AT_ONCE - len(keys))]
    return list(dict.fromkeys([*keys, *more])), more[-1] if more else ""


def _held_keys(work: Work, behind: str, limit: int) -> list[tuple[Any, ...]]:
    return work.rows("list_held_keys", {"after": behind, "limit": limit})


def promote_jobs(work: Work, keys: Sequence[str], limit: int) -> int:
    """Make held jobs ready while all their keys have room; how many were."""
    firsts = sorted(set(keys))
    spare = max(1, min(LOOK_AHEAD, limit, 5 * limit // max(1, len(firsts))))
    now = to_time(work.now)
    carried = {
        key
        for first in firsts
        for (key,) in work.rows("list_carried_keys", {"key": first, "look": spare})
    }
    if not carried:
        return 0
    limits = _count(work, _read_limits(work, sorted(carried)))
    firsts = [key for key in firsts if key in limits]
    spare = spare if len(limits) > len(firsts) else 0
    waiting: dict[str, list[Held]] = {}
    found: dict[str, tuple[int, str]] = {}
    for key in firsts:
        room = limits[key].first_room(now)
        if room > 0:
            rows = work.rows("find_held", {"key": key, "limit": min(room, limit) + spare})
            waiting[key] = [Held(id, tuple(msgspec.json.decode(keys))) for _, id, _, keys in rows]
            found |= {id: (seq, queue) for seq, id, queue, _ in rows}
    chosen = choose_jobs(limits, waiting, now, limit)
    _save(work, limits)
    _promote(work, chosen, found)
    return len(chosen)


def _promote(work: Work, chosen: Sequence[Held], found: dict[str, tuple[int, str]]) -> None:
    if not chosen:
        return
    [(last,)] = work.rows("find_last_seq", {})
    work.run("take_places", {"count": len(chosen)})
    promoted, slots = [], []
    for place, job in enumerate(chosen, last + 1):
        seq, queue = found[job.id]
        promoted.append({"seq": seq, "place": place})
        slots += [{"key": key, "seq": seq} for key in job.keys]
        work.counts[queue, "held"] -= 1
        work.counts[queue, "ready"] += 1
    work.run_many("promote_jobs", promoted)
    work.run_many("add_slots", slots)


def _read_limits(work: Work, keys: Sequence[str]) -> dict[str, Limit]:
    """Keys with their settings."""
    limits = {key: Limit(key) for key in keys}
    wanted = {"keys": to_json(list(keys))}
    for row in work.named_rows(statement("get_limits"), wanted):
        times = {name: to_optional_time(row[name]) for name in ("refilled_at", "parked_until")}
        limits[row["key"]] = Limit(**dict(row) | times)
    return limits


def _count(work: Work, limits: dict[str, Limit]) -> dict[str, Limit]:
    """Add what keys have in use, and refill them. A slot of a job that is in use no more is
    removed. They must be saved: starts that were seen now are not seen again."""
    stale = []
    for key, seq, state, started_at in work.rows("find_slots", {"keys": to_json(list(limits))}):
        limit = limits[key]
        if state not in ("ready", "active"):
            stale.append({"key": key, "seq": seq})
        else:
            limit.in_use += 1
            limit.ready += state == "ready"
        started = to_optional_time(started_at)
        if started is not None and limit.refilled_at is not None and started > limit.refilled_at:
            limit.started += 1
            limit.last_started_at = max(started, limit.last_started_at or started)
    work.run_many("drop_slots", stale)
    for limit in limits.values():
        limit.refill(to_time(work.now))
    return limits


def _save(work: Work, limits: dict[str, Limit]) -> None:
    work.run_many(
        "save_limits",
        [
            {
                "key": limit.key,
                "tokens": limit.tokens,
                "refilled_at": None if limit.refilled_at is None else to_micros(limit.refilled_at),
                "turn": limit.turn,
            }
            for limit in limits.values()
        ],
    )


def prune_limits(work: Work, after: str, limit: int) -> tuple[int, str]:
    """Forget keys that nothing is set for and no job has; how many, and where to go on."""
    values = {"after": after, "limit": limit, "now": work.now}
    keys = [key for (key,) in work.rows("find_idle_limits", values)]
    counted = _count(work, {key: Limit(key) for key in keys})
    idle = [key for key in keys if not counted[key].in_use]
    pruned = work.run("prune_limits", {"keys": to_json(idle)}) if idle else 0
    return pruned, keys[-1] if len(keys) == limit else ""


def expire_jobs(work: Work, limit: int) -> list[Change]:
    """Jobs that have been held too long fail."""
    overdue = work.rows("find_overdue", {"now": work.now, "limit": limit})
    by_reason: defaultdict[str, list[LiveJob]] = defaultdict(list)
    jobs = []
    for *columns, seconds in overdue:
        job = LiveJob._make(columns)
        jobs.append(job)
        by_reason[_reason(work, job, seconds)].append(job)
    for reason, alike in by_reason.items():
        leave(work, alike, JobState.FAILED, reason)
        work.add_errors(alike, JobError(None, "hold", reason))
    return [Change(job.id, JobState.HELD, JobState.FAILED) for job in jobs]


def _reason(work: Work, job: LiveJob, seconds: int) -> str:
    keys = msgspec.json.decode(job.limit_keys or "[]")
    limits = _read_limits(work, keys)
    under = ", ".join(limits[key].describe() for key in keys)
    return f"held too long: waited {seconds} s for room under {under}"
