"""Limits per key: setting them, promoting held jobs under them, giving up on those held too long.

There is one writer, so nothing has to be locked: what is counted here stays so until the commit.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from windrow.queue.job import JobError, JobState
from windrow.queue.limits import (
    KEYS_AT_ONCE,
    LOOK_AHEAD,
    PATIENCE_SECONDS,
    UNSERVED_SECONDS,
    Held,
    Idle,
    Lane,
    Limit,
    Taker,
    choose_places,
    note_served,
    release,
)
from windrow.queue.records import Change, Claim, LimitInfo, LimitRow
from windrow.queue.sqlite.registering import list_workers
from windrow.queue.sqlite.rows import (
    LiveJob,
    after,
    to_json,
    to_micros,
    to_optional_time,
    to_tags,
    to_time,
)
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
    limits, _ = _count(work, _read_limits(work, [row.key]))
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
        LimitInfo(
            **dict(row)
            | {
                "parked_until": to_optional_time(row["parked_until"]),
                "ready_queues": to_tags(row["ready_queues"]),
            }
        )
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


def promote_jobs(work: Work, keys: Sequence[str], limit: int, claim: Claim | None) -> int:
    """Make held jobs ready while all their keys have room; how many were."""
    if claim is not None:
        clear_unserved(work, claim.queues, claim.kinds, claim.tenants)
    firsts = sorted(set(keys))
    look = max(1, min(LOOK_AHEAD, limit, 5 * limit // max(1, len(firsts))))
    lanes = _closed_lanes(work, firsts)
    carried = {key for first in firsts for key in _carried_keys(work, first, look, lanes)}
    if not carried:
        return 0
    limits, seqs = _count(work, _read_limits(work, sorted(carried)))
    idle = list(seqs)
    if any(job.is_overdue for job in idle):
        lanes = _lanes(work, firsts)
    release(limits, idle)
    waiting, found = _find_waiting(work, firsts, limits, lanes, limit, look)
    if lanes:
        takers = [Taker(one.queues, one.kinds) for one in list_workers(work)]
        if claim is not None:
            takers.append(Taker(claim.queues, claim.kinds, claim.tenants))
        waiting = note_served(waiting, takers)
    choice = choose_places(limits, waiting, idle, to_time(work.now), limit)
    _save(work, limits)
    _return_places(work, choice.returned, {job.id: seq for job, seq in seqs.items()})
    _promote(work, choice.promoted, found)
    _mark_unserved(work, choice.unserved)
    return len(choice.promoted)


class _HeldLane(msgspec.Struct, frozen=True):
    queue: str
    kind: str
    tenant: str  # '' for none
    is_unserved: bool


Lanes = Mapping[str, Sequence[_HeldLane]]


def _closed_lanes(work: Work, firsts: Sequence[str]) -> Lanes:
    """The lanes of each key, if some lanes must be passed over."""
    [(is_closed,)] = work.rows("is_lane_closed", {"now": work.now})
    return _lanes(work, firsts) if is_closed else {}


def _lanes(work: Work, firsts: Sequence[str]) -> Lanes:
    return {
        key: [
            _HeldLane(queue, kind, tenant, bool(is_unserved))
            for queue, kind, tenant, is_unserved in work.rows(
                "list_held_lanes", {"key": key, "now": work.now}
            )
        ]
        for key in firsts
    }


def _carried_keys(work: Work, first: str, look: int, lanes: Lanes) -> set[str]:
    """The keys that the first held jobs of a key carry, and those of each of its lanes."""
    keys = {key for (key,) in work.rows("list_carried_keys", {"key": first, "look": look})}
    for lane in lanes.get(first, ()):
        for row in _find_in_lane(work, first, lane, look):
            keys.update(msgspec.json.decode(row[_KEYS]))
    return keys


_SEQ, _ID, _QUEUE, _KEYS, _PRIORITY, _IS_PLACED, _PLACE = range(7)


def _find_in_lane(work: Work, key: str, lane: _HeldLane, limit: int) -> list[tuple[Any, ...]]:
    values = {"key": key, "queue": lane.queue, "kind": lane.kind, "tenant": lane.tenant}
    return work.rows("find_held_lane", values | {"limit": limit})


def _find_waiting(
    work: Work,
    firsts: Sequence[str],
    limits: Mapping[str, Limit],
    lanes: Lanes,
    limit: int,
    look: int,
) -> tuple[Mapping[str, Sequence[Held]], dict[str, tuple[int, str]]]:
    """The held jobs of each fairness key that has room: as many as that, and some more if the
    first ones may lack room under another key. And where each is: its seq and queue."""
    now = to_time(work.now)
    known = [key for key in firsts if key in limits]
    spare = look if len(limits) > len(known) else 0
    waiting: dict[str, list[Held]] = {}
    found: dict[str, tuple[int, str]] = {}
    for key in known:
        room = limits[key].first_room(now)
        if room <= 0:
            continue
        want = min(room, limit) + spare
        if lanes:
            rows, waiting[key] = _find_by_lane(work, key, lanes.get(key, ()), want)
        else:
            rows = work.rows("find_held", {"key": key, "limit": want})
            waiting[key] = [Held(row[_ID], tuple(msgspec.json.decode(row[_KEYS]))) for row in rows]
        found |= {row[_ID]: (row[_SEQ], row[_QUEUE]) for row in rows}
    return waiting, found


def _find_by_lane(
    work: Work, key: str, lanes: Sequence[_HeldLane], want: int
) -> tuple[list[tuple[Any, ...]], list[Held]]:
    """The first jobs of each lane, best first."""
    found = [(row, lane) for lane in lanes for row in _find_in_lane(work, key, lane, want)]
    found.sort(key=lambda pair: (-pair[0][_PRIORITY], -pair[0][_IS_PLACED], pair[0][_PLACE]))
    held = [
        Held(
            row[_ID],
            tuple(msgspec.json.decode(row[_KEYS])),
            (lane.queue, lane.kind, lane.tenant or None),
            lane.is_unserved,
        )
        for row, lane in found
    ]
    return [row for row, _ in found], held


def _return_places(work: Work, jobs: Sequence[Idle], seqs: Mapping[str, int]) -> None:
    """Ready jobs are held again. There is one writer: nobody can have claimed them."""
    if not jobs:
        return
    work.run("return_places", {"seqs": to_json([seqs[job.id] for job in jobs])})
    for job in jobs:
        work.counts[job.lane[0], "ready"] -= 1
        work.counts[job.lane[0], "held"] += 1


def _mark_unserved(work: Work, lanes: Iterable[Lane]) -> None:
    marked = sorted((queue, kind, tenant or "") for queue, kind, tenant in lanes)
    if not marked:
        return
    until = after(work.now, UNSERVED_SECONDS)
    work.run("drop_unserved", {"now": work.now})
    work.run_many(
        "mark_unserved",
        [
            {"queue": queue, "kind": kind, "tenant": tenant, "until": until}
            for queue, kind, tenant in marked
        ],
    )


def clear_unserved(
    work: Work,
    queues: Sequence[str] | None,
    kinds: Sequence[str] | None,
    tenants: Sequence[str] | None = None,
) -> None:
    """Somebody asks for jobs of these: their lanes are served."""
    given = {"queues": queues, "kinds": kinds, "tenants": tenants}
    values = {name: None if one is None else to_json(list(one)) for name, one in given.items()}
    work.run("clear_unserved", values)


def _promote(work: Work, chosen: Sequence[Held], found: dict[str, tuple[int, str]]) -> None:
    if not chosen:
        return
    [(last,)] = work.rows("find_last_seq", {})
    work.run("take_places", {"count": len(chosen)})
    promoted, slots = [], []
    for place, job in enumerate(chosen, last + 1):
        seq, queue = found[job.id]
        promoted.append({"seq": seq, "place": place})
        slots += [{"key": key, "seq": seq, "now": work.now} for key in job.keys]
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


def _count(work: Work, limits: dict[str, Limit]) -> tuple[dict[str, Limit], dict[Idle, int]]:
    """Add what keys have in use, and refill them. A slot of a job that is in use no more is
    removed. They must be saved: starts that were seen now are not seen again. Also the ready jobs
    that could give their places to others, with their seqs."""
    stale = []
    idle: dict[Idle, int] = {}
    values = {"keys": to_json(list(limits)), "now": work.now}
    for row in work.named_rows(statement("find_slots"), values):
        limit, seq, state = limits[row["key"]], row["seq"], row["state"]
        if state not in ("ready", "active"):
            stale.append({"key": limit.key, "seq": seq})
        else:
            limit.in_use += 1
            limit.ready += state == "ready"
        started = to_optional_time(row["started_at"])
        if started is not None and limit.refilled_at is not None and started > limit.refilled_at:
            limit.started += 1
            limit.last_started_at = max(started, limit.last_started_at or started)
        if state == "ready" and (job := _to_idle(work, row)) is not None:
            idle[job] = seq
    work.run_many("drop_slots", stale)
    for limit in limits.values():
        limit.refill(to_time(work.now))
    return limits, idle


def _to_idle(work: Work, row: sqlite3.Row) -> Idle | None:
    is_known = bool(row["is_blocked"] or row["is_unserved"])
    is_overdue = after(row["taken_at"], PATIENCE_SECONDS) < work.now
    if not is_known and not is_overdue:
        return None
    lane = (row["queue"], row["kind"], row["tenant"])
    return Idle(row["id"], tuple(to_tags(row["limit_keys"])), lane, is_overdue and not is_known)


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
    counted, _ = _count(work, {key: Limit(key) for key in keys})
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
