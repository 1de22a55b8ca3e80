"""Limits per key: setting them, promoting held jobs under them, giving up on those held too long.

Lock order: keys in their order, then job rows, and never the other way round; no other verb takes
a key's lock. An insert in a caller's transaction, however long it stays open, locks none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from windrow.queue.job import JobError, JobState
from windrow.queue.limits import KEYS_AT_ONCE, LOOK_AHEAD, Held, Limit, choose_jobs
from windrow.queue.postgres.rows import Row, as_json, columns
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import Ending, Work
from windrow.queue.records import Change, LimitInfo, LimitRow


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
            limits, _ = await _lock(work, [row.key])
            await _save(work, limits)
            await _demote(work, limits[row.key])

        await self._transact(do)

    async def remove_limit(self, key: str) -> bool:
        async def do(work: Work) -> bool:
            locked = await work.run("lock_limits", keys=[key])
            await work.run("remove_limit", key=key)
            return any(_to_limit(row).is_set for row in locked)

        return await self._transact(do)

    async def list_limits(self, *, counts_held: bool = True) -> list[LimitInfo]:
        found = await self._run("list_limits", counts_held=counts_held)
        return [LimitInfo(**row) for row in found]

    async def park_key(
        self, key: str, *, until: datetime | None = None, seconds: float | None = None
    ) -> None:
        await self._run("park_key", key=key, until=until, seconds=seconds)

    async def promote_jobs(self, keys: Sequence[str] | None = None, limit: int = 1000) -> int:
        firsts = await self._held_keys() if keys is None else sorted(set(keys))
        look = max(1, min(LOOK_AHEAD, limit, 5 * limit // max(1, len(firsts))))
        carried = [
            row["key"] for row in await self._run("list_carried_keys", keys=firsts, look=look)
        ]
        if not carried:
            return 0

        async def do(work: Work) -> Promotion:
            return await _promote(work, firsts, sorted(carried), limit, look)

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
            counts = await work.run("count_slots", keys=keys, times=[None] * len(keys))
            used = {row["key"] for row in counts if row["in_use"]}
            idle = [key for key in keys if key not in used]
            pruned = await work.run("prune_limits", keys=idle) if idle else ()
            return len(pruned), keys[-1] if len(keys) == limit else ""

        return await self._transact(do)


async def _promote(
    work: Work, firsts: Sequence[str], carried: Sequence[str], limit: int, look: int
) -> Promotion:
    limits, now = await _lock(work, carried)
    missing = tuple(key for key in carried if key not in limits)
    if missing:
        return Promotion(0, missing)
    waiting = await _find_held(work, firsts, limits, now, limit, look)
    chosen = choose_jobs(limits, waiting, now, limit)
    await _save(work, limits)
    if not chosen:
        return Promotion(0)
    given = as_json([{"id": job.id, "keys": job.keys} for job in chosen])
    promoted = await work.run("promote_jobs", jobs=given)
    work.ready_queues |= {row["queue"] for row in promoted}
    return Promotion(len(promoted))


async def _lock(work: Work, keys: Sequence[str]) -> tuple[dict[str, Limit], datetime]:
    """The keys that are there, locked, with what they have in use, and the time. They must be
    saved: starts that were seen now are not seen again."""
    locked = await work.run("lock_limits", keys=sorted(keys))
    limits = {row["key"]: _to_limit(row) for row in locked}
    times = [one.refilled_at if one.per_second else None for one in limits.values()]
    *counts, last = await work.run("count_slots", keys=list(limits), times=times)
    now: datetime = last["now"]
    for row in counts:
        limit = limits[row["key"]]
        limit.ready, limit.in_use = row["ready"], row["in_use"]
        limit.started, limit.last_started_at = row["started"], row["last_started_at"]
    for limit in limits.values():
        limit.refill(now)
    return limits, now


async def _find_held(
    work: Work,
    firsts: Sequence[str],
    limits: dict[str, Limit],
    now: datetime,
    limit: int,
    look: int,
) -> dict[str, list[Held]]:
    """The held jobs of each fairness key that has room: as many as that, and some more if the
    first ones may lack room under another key."""
    spare = look if len(limits) > len([key for key in firsts if key in limits]) else 0
    rooms = {key: limits[key].first_room(now) for key in firsts if key in limits}
    wants = [(key, min(room, limit) + spare) for key, room in rooms.items() if room > 0]
    keys, counts = columns(wants, 2)
    waiting: defaultdict[str, list[Held]] = defaultdict(list)
    if keys:
        for row in await work.run("find_held", keys=keys, wants=counts):
            carried = tuple(row["limit_keys"])
            waiting[carried[0]].append(Held(str(row["id"]), carried))
    return waiting


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
