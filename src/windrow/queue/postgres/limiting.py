"""Limits per key: setting them, promoting held jobs under them, giving up on those held too long.

Lock order: keys in their order, then job rows, and never the other way round; no other verb takes
a key's lock. An insert in a caller's transaction, however long it stays open, locks none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    choose_jobs,
    choose_places,
    note_served,
    release,
)
from windrow.queue.postgres.rows import Row, as_json, columns
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import Ending, Work
from windrow.queue.records import Change, Claim, LimitInfo, LimitRow


@dataclass(frozen=True, slots=True)
class Promotion:
    promoted: int
    missing: tuple[str, ...] = ()  # keys that had no row to be locked


class Limiting(Verbs):
    _held_after = ""  # where the next look at all keys begins

    async def set_limit(self, row: LimitRow) -> None:
        async def do(work: Work) -> None:
            await work.run(
                "set_limit",
                key=row.key,
                active=row.active,
                per_second=row.per_second,
                burst=row.burst,
            )
            locked = await _lock(work, [row.key])
            await _save(work, locked.limits)
            await _demote(work, locked.limits[row.key])

        await self._transact(do)

    async def remove_limit(self, key: str) -> bool:
        async def do(work: Work) -> bool:
            locked = await work.run("lock_limits", keys=[key])
            await work.run("remove_limit", key=key)
            return any(_to_limit(row).is_set for row in locked)

        return await self._transact(do)

    async def list_limits(self, *, counts_held: bool = True) -> list[LimitInfo]:
        found = await self._run("list_limits", counts_held=counts_held)
        return [
            LimitInfo(**{**row, "ready_queues": tuple(row["ready_queues"] or ())}) for row in found
        ]

    async def park_key(
        self, key: str, *, until: datetime | None = None, seconds: float | None = None
    ) -> None:
        await self._run("park_key", key=key, until=until, seconds=seconds)

    async def promote_jobs(
        self,
        keys: Sequence[str] | None = None,
        limit: int = 1000,
        *,
        claim: Claim | None = None,
        rounds: int = 1,
    ) -> int:
        if keys is not None:
            return await self._promote(sorted(set(keys)), limit, claim)
        promoted, seen = 0, set[str]()
        for _ in range(rounds):
            firsts = await self._held_keys()
            if seen.issuperset(firsts):
                break
            promoted += await self._promote(firsts, limit - promoted, claim)
            if promoted >= limit:
                break
            seen.update(firsts)
        return promoted

    async def _promote(self, firsts: Sequence[str], limit: int, claim: Claim | None) -> int:
        look = max(1, min(LOOK_AHEAD, limit, 5 * limit // max(1, len(firsts))))
        carried = [
            row["key"] for row in await self._run("list_carried_keys", keys=firsts, look=look)
        ]
        if not carried:
            return 0
        if claim is not None:
            taker = Taker(claim.queues, claim.kinds, claim.tenants)
            await self._run("clear_unserved", **msgspec.structs.asdict(taker))

        async def do(work: Work) -> Promotion:
            return await _Promoter(work, firsts, sorted(carried), limit, look, claim).promote()

        promotion = await self._transact(do)
        if promotion.missing:
            await self._run("add_limits", keys=list(promotion.missing))
            promotion = await self._transact(do)
        return promotion.promoted

    async def _held_keys(self) -> list[str]:
        """The next keys that jobs are held under, from the first again after the last."""
        found = await self._run("list_held_keys", after=self._held_after, limit=KEYS_AT_ONCE)
        keys = [row["key"] for row in found]
        if len(keys) < KEYS_AT_ONCE and self._held_after:
            more = await self._run("list_held_keys", after="", limit=KEYS_AT_ONCE - len(keys))
            keys += [row["key"] for row in more]
            self._held_after = more[-1]["key"] if more else ""
        else:
            self._held_after = keys[-1] if len(keys) == KEYS_AT_ONCE else ""
        return sorted(set(keys))

    async def expire_jobs(self, limit: int = 1000) -> list[Change]:
        async def do(work: Work) -> list[Change]:
            overdue = {str(row["id"]): row for row in await work.run("find_overdue", limit=limit)}
            keys = sorted({key for row in overdue.values() for key in row["limit_keys"] or ()})
            limits = {row["key"]: _to_limit(row) for row in await work.run("get_limits", keys=keys)}
            reasons = {job_id: _reason(row, limits) for job_id, row in overdue.items()}
            endings = [Ending(i, JobState.FAILED, error=text) for i, text in reasons.items()]
            ended = await work.end_jobs(endings, (JobState.HELD,))
            await work.add_errors([(i, JobError(None, "hold", reasons[i])) for i in ended])
            return [Change(job_id, JobState.HELD, JobState.FAILED) for job_id in ended]

        return await self._transact(do)

    async def prune_limits(self, after: str = "", limit: int = 1000) -> tuple[int, str]:
        async def do(work: Work) -> tuple[int, str]:
            found = await work.run("find_idle_limits", after=after, limit=limit)
            keys = [row["key"] for row in found]
            # A statement of its own: it sees what was promoted until the keys were locked.
            counts = await _count(work, keys, [None] * len(keys))
            used = {row["key"] for row in counts if row["in_use"]}
            idle = [key for key in keys if key not in used]
            pruned = await work.run("prune_limits", keys=idle) if idle else ()
            return len(pruned), keys[-1] if len(keys) == limit else ""

        return await self._transact(do)


@dataclass(frozen=True, slots=True)
class _Locked:
    """Keys that are locked, with what they have in use."""

    limits: dict[str, Limit]
    idle: tuple[Idle, ...]
    now: datetime
    is_lane_closed: bool  # some queue or group is paused, or some lane unserved


@dataclass(frozen=True, slots=True)
class _Promoter:
    """One promotion, in its transaction."""

    work: Work
    firsts: Sequence[str]
    carried: Sequence[str]
    limit: int
    look: int
    claim: Claim | None

    async def promote(self) -> Promotion:
        locked = await _lock(self.work, self.carried)
        missing = tuple(key for key in self.carried if key not in locked.limits)
        if missing:
            return Promotion(0, missing)
        before = {key: msgspec.structs.replace(limit) for key, limit in locked.limits.items()}
        release(locked.limits, locked.idle)
        waiting = await self._find_held(locked)
        choice = choose_places(locked.limits, waiting, locked.idle, locked.now, self.limit)
        limits, chosen = locked.limits, list(choice.promoted)
        returned = await self._return_places(choice.returned)
        if len(returned) < len(choice.returned):
            # The others were claimed just now, and need their places.
            limits = before
            release(limits, returned)
            chosen = choose_jobs(limits, waiting, locked.now, self.limit)
        await _save(self.work, limits)
        promoted = await self._make_ready(chosen)
        await self._mark_unserved(choice.unserved)
        return Promotion(promoted)

    async def _find_held(self, locked: _Locked) -> Mapping[str, Sequence[Held]]:
        """The held jobs of each fairness key that has room: as many as that, and some more if the
        first ones may lack room under another key."""
        limits = locked.limits
        spare = self.look if len(limits) > len([key for key in self.firsts if key in limits]) else 0
        rooms = {key: limits[key].first_room(locked.now) for key in self.firsts if key in limits}
        wants = [(key, min(room, self.limit) + spare) for key, room in rooms.items() if room > 0]
        keys, counts = columns(wants, 2)
        if not keys:
            return {}
        if locked.is_lane_closed or any(job.is_overdue for job in locked.idle):
            rows = await self.work.run("find_held_by_lane", keys=keys, wants=counts)
            return note_served(_by_key(map(_to_held, rows)), await self._takers())
        rows = await self.work.run("find_held", keys=keys, wants=counts)
        return _by_key(Held(str(row["id"]), tuple(row["limit_keys"])) for row in rows)

    async def _takers(self) -> list[Taker]:
        """Who takes jobs of which lanes, as far as is known."""
        rows = await self.work.run("list_workers")
        takers = [Taker(row["queues"], row["kinds"]) for row in rows]
        if self.claim is not None:
            takers.append(Taker(self.claim.queues, self.claim.kinds, self.claim.tenants))
        return takers

    async def _return_places(self, jobs: Sequence[Idle]) -> list[Idle]:
        """Those of the jobs that are held again."""
        if not jobs:
            return []
        rows = await self.work.run("return_places", ids=sorted(job.id for job in jobs))
        back = {str(row["id"]) for row in rows}
        return [job for job in jobs if job.id in back]

    async def _make_ready(self, chosen: Sequence[Held]) -> int:
        if not chosen:
            return 0
        given = as_json([{"id": job.id, "keys": job.keys} for job in chosen])
        promoted = await self.work.run("promote_jobs", jobs=given)
        self.work.ready_queues |= {row["queue"] for row in promoted}
        return len(promoted)

    async def _mark_unserved(self, lanes: Iterable[Lane]) -> None:
        marked = sorted((queue, kind, tenant or "") for queue, kind, tenant in lanes)
        if marked:
            queues, kinds, tenants = columns(marked, 3)
            await self.work.run(
                "mark_unserved",
                queues=queues,
                kinds=kinds,
                tenants=tenants,
                seconds=UNSERVED_SECONDS,
            )


def _by_key(jobs: Iterable[Held]) -> dict[str, list[Held]]:
    waiting: defaultdict[str, list[Held]] = defaultdict(list)
    for job in jobs:
        waiting[job.keys[0]].append(job)
    return waiting


def _to_held(row: Row) -> Held:
    lane = (row["queue"], row["kind"], row["tenant"])
    return Held(str(row["id"]), tuple(row["limit_keys"]), lane, row["is_unserved"])


def _to_idle(job: dict[str, Any]) -> Idle:
    lane = (job["queue"], job["kind"], job["tenant"])
    return Idle(job["id"], tuple(job["keys"]), lane, job["is_overdue"])


async def _lock(work: Work, keys: Sequence[str]) -> _Locked:
    """The keys that are there, locked, with what they have in use, and the time. They must be
    saved: starts that were seen now are not seen again."""
    locked = await work.run("lock_limits", keys=sorted(keys))
    limits = {row["key"]: _to_limit(row) for row in locked}
    times = [one.refilled_at if one.per_second else None for one in limits.values()]
    *counts, last = await _count(work, list(limits), times)
    now: datetime = last["now"]
    idle: dict[str, Idle] = {}
    for row in counts:
        limit = limits[row["key"]]
        limit.ready, limit.in_use = row["ready"], row["in_use"]
        limit.started, limit.last_started_at = row["started"], row["last_started_at"]
        idle |= {job["id"]: _to_idle(job) for job in msgspec.json.decode(row["idle"] or "[]")}
    for limit in limits.values():
        limit.refill(now)
    return _Locked(limits, tuple(idle.values()), now, last["is_lane_closed"])


async def _count(
    work: Work, keys: Sequence[str], times: Sequence[datetime | None]
) -> Sequence[Row]:
    return await work.run("count_slots", keys=keys, times=times, patience=PATIENCE_SECONDS)


async def _save(work: Work, limits: dict[str, Limit]) -> None:
    keys, tokens, times, turns = columns(
        [(one.key, one.tokens, one.refilled_at, one.turn) for one in limits.values()], 4
    )
    await work.run("save_limits", keys=keys, tokens=tokens, times=times, turns=turns)


async def _demote(work: Work, limit: Limit) -> None:
    """Ready jobs over a limit are held again, the last in the line first."""
    if surplus := limit.surplus():
        worst = await work.run("find_surplus", key=limit.key, limit=surplus)
        await work.run("demote_jobs", ids=[str(row["id"]) for row in worst])


def _to_limit(row: Row) -> Limit:
    return Limit(**row)


def _reason(row: Row, limits: dict[str, Limit]) -> str:
    reason = f"held too long: waited {row['max_hold_seconds']} s"
    if row["limit_keys"] is None:  # held by a dialect, for whoever wrote it there
        return reason
    under = ", ".join(limits.get(key, Limit(key)).describe() for key in row["limit_keys"])
    return f"{reason} for room under {under}"
