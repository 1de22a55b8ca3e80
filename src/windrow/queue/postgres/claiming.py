"""Claiming, and the floor that keeps it fast.

A claimed job leaves its entry in the claim index until it is vacuumed, and while some snapshot is
held nothing is: a claim would step over all of them, each time. So the store remembers for each
queue the place up to which it has claimed, and begins behind it. Jobs may still appear before the
floor (a late commit, a retry by another process), so it is dropped when a claim gets fewer jobs
than it asked for, about once a second, and whenever this store itself makes jobs of the queue
ready.

A claim that begins while others are on their way begins behind what they are going to take: a job
takes at least one place in the line, so so many jobs end at least so many places further on.
Otherwise it would step over each of the jobs that they have locked.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Self

from windrow.db.transactions import Executor
from windrow.queue.heads import BEFORE_ALL, LEAST_WIDTH, MOST_FILTERS, Heads, Place, Wanted
from windrow.queue.job import Job
from windrow.queue.postgres.rows import Row, as_json, columns, sql, to_claimed
from windrow.queue.records import Claim

RESCAN_SECONDS: Final = 1.0
MOST_BOUND: Final = 100_000
# The place of a queue without a floor, which hides nothing: the least priority there can be, before
# every seq. All jobs are of a higher priority, which a claim looks for first, or behind it. So a
# claim from the start is one look into the index.
START: Final = (-(2**31), -1)
# Of very many queues a claim looks at so many times more if the best have too few jobs, or none.
WIDEN: Final = 1
WIDEN_MOST: Final = 7


@dataclass(slots=True)
class Floor:
    priority: int
    seq: int
    scanned_at: float  # monotonic time of the last claim that looked everywhere
    ahead: list[int] = field(default_factory=list)  # where claims that are on their way may end

    @property
    def next_seq(self) -> int:
        """The place that the next claim begins behind."""
        return max([self.seq, *self.ahead])


@dataclass(frozen=True, slots=True)
class Look:
    """Where a claim looks: each queue with the most it takes of it and the place it begins at."""

    queues: list[str]
    shares: list[int]
    floor_priorities: list[int]
    floor_seqs: list[int]
    wanted: int
    is_floored: bool
    began_at: float
    token: str  # of the first lease, or the only one
    is_remembered: bool = False  # the queues are those of a moment ago, or some of all
    # The best of very many queues, and before which place nothing is left in each when the shares
    # are taken; None: nothing is left at all.
    nexts: dict[str, Place | None] = field(default_factory=dict)

    @classmethod
    def at(cls, queues: list[str], places: Sequence[tuple[int, int]], wanted: int) -> Self:
        return cls(
            queues=queues,
            shares=[wanted] * len(queues),
            floor_priorities=[priority for priority, _ in places],
            floor_seqs=[seq for _, seq in places],
            wanted=wanted,
            is_floored=any(place != START for place in places),
            began_at=time.monotonic(),
            token=str(uuid.uuid4()),
        )

    def of(self, shares: Mapping[str, int]) -> Look:
        """The same with so much of each queue, and without the others."""
        lanes = zip(self.queues, self.floor_priorities, self.floor_seqs, strict=True)
        chosen = [lane for lane in lanes if lane[0] in shares]
        queues, priorities, seqs = columns(chosen, 3)
        return replace(
            self,
            queues=queues,
            shares=[shares[queue] for queue in queues],
            floor_priorities=priorities,
            floor_seqs=seqs,
        )

    def values(self, claim: Claim) -> dict[str, Any]:
        return {
            "queues": self.queues,
            "shares": self.shares,
            "floor_priorities": self.floor_priorities,
            "floor_seqs": self.floor_seqs,
            "kinds": None if claim.kinds is None else list(claim.kinds),
            "tenants": None if claim.tenants is None else list(claim.tenants),
            "seconds": claim.seconds,
            "kind_seconds": as_json(claim.kind_seconds) if claim.kind_seconds else None,
            "worker": claim.worker,
            "token": self.token,
        }

    def is_from_start(self, queue: str) -> bool:
        return self.floor_seqs[self.queues.index(queue)] == START[1]

    def ends(self) -> Iterator[tuple[str, int]]:
        """For each queue that has a floor, the first place at which what is taken of it can end."""
        for queue, share, seq in zip(self.queues, self.shares, self.floor_seqs, strict=True):
            if seq != START[1]:
                yield queue, seq + share

    def was_outdone(self, jobs: Sequence[Job]) -> bool:
        """Whether jobs of a higher priority than the floor's were found: then less was taken of the
        floor's own than could be foreseen."""
        lanes = zip(self.queues, self.floor_priorities, self.floor_seqs, strict=True)
        floors = {queue: priority for queue, priority, seq in lanes if seq != START[1]}
        return any(job.priority > floors.get(job.queue, job.priority) for job in jobs)

    def may_have_more(self, found: int) -> bool:
        """Whether another look could find what is still wanted: before the floor, or in another
        queue instead of jobs that somebody else got first."""
        if found >= self.wanted:
            return False
        was_outrun = 0 < found < sum(self.shares) and len(self.queues) > 1
        return self.is_floored or self.is_remembered or was_outrun


class Floors:
    """The floor of each queue, as far as this process knows. Claims of some kinds or tenants pass
    over jobs that others want, so each such choice has floors of its own."""

    def __init__(self) -> None:
        self._floors: dict[str, dict[Wanted, Floor]] = {}

    def __bool__(self) -> bool:
        """Whether any is known: none is where nothing is claimed."""
        return bool(self._floors)

    def place(self, queue: str, wanted: Wanted) -> tuple[int, int]:
        """Where to begin; a floor that is old is forgotten."""
        floor = self._floors.get(queue, {}).get(wanted)
        if floor is None:
            return START
        if time.monotonic() - floor.scanned_at > RESCAN_SECONDS:
            del self._floors[queue][wanted]
            return START
        return floor.priority, floor.next_seq

    def begin(self, look: Look, wanted: Wanted) -> None:
        """A claim is on its way."""
        for queue, place in look.ends():
            if floor := self._floors.get(queue, {}).get(wanted):
                floor.ahead.append(place)

    def end(self, look: Look, wanted: Wanted) -> bool:
        """It has come back; whether another one began behind it."""
        is_passed = False
        for queue, place in look.ends():
            floor = self._floors.get(queue, {}).get(wanted)
            if floor and place in floor.ahead:
                floor.ahead.remove(place)
                is_passed |= floor.next_seq >= place
        return is_passed

    def drop(self, queues: Iterable[str]) -> None:
        for queue in queues:
            self._floors.pop(queue, None)

    def drop_all(self) -> None:
        self._floors.clear()

    def drop_behind(self, queue: str, priority: int, seq: int) -> None:
        """A job became ready at this place; no floor must hide it."""
        floors = self._floors.get(queue, {})
        hiding = [
            wanted
            for wanted, floor in floors.items()
            if floor.priority == priority and seq <= floor.next_seq
        ]
        for wanted in hiding:
            del floors[wanted]

    def move(self, jobs: Sequence[Job], wanted: Wanted, look: Look) -> None:
        """Raise the floors to the last job claimed of each queue; jobs are best first. One that was
        dropped since the claim began is only found again by a look from the start."""
        last = {job.queue: job for job in jobs}
        for queue, job in last.items():
            floors = self._floors.setdefault(queue, {})
            floor = floors.get(wanted)
            if floor is None:
                if look.is_from_start(queue):
                    floors[wanted] = Floor(job.priority, job.seq, look.began_at)
            elif job.priority < floor.priority:
                floor.priority, floor.seq = job.priority, job.seq
                floor.ahead.clear()  # places in another line
            elif job.priority == floor.priority:
                floor.seq = max(floor.seq, job.seq)


class Claimer:
    """Claims for one store: remembers the floors, and which claimed jobs are bound to a group."""

    def __init__(self) -> None:
        self.floors = Floors()
        self._bound: set[str] = set()
        self._heads: dict[Wanted, Heads] = {}

    def is_bound(self, job_id: str) -> bool:
        """Whether the job is known to be in a group or the root of one, so that its end takes more
        than one statement. Only a guess: the statement for the others passes over such jobs."""
        return job_id in self._bound

    def bind(self, job_id: str) -> None:
        if len(self._bound) >= MOST_BOUND:
            self._bound.clear()
        self._bound.add(job_id)

    def unbind(self, job_ids: Iterable[str]) -> None:
        self._bound.difference_update(job_ids)

    async def claim(self, executor: Executor, claim: Claim, now: datetime | None) -> list[Job]:
        """Claim up to the limit. Fewer means that there were no more to be had."""
        jobs: list[Job] = []
        is_floored = True
        try:
            while len(jobs) < claim.limit:
                look = await self.look(executor, claim, claim.limit - len(jobs), now, is_floored)
                if look is None:
                    break
                values = {**look.values(claim), "now": now}
                rows = await executor.fetch(sql("claim_jobs"), values)
                found = self.note(rows, look, claim)
                jobs += found
                if not look.may_have_more(len(found)):
                    break
                is_floored = False
        except BaseException:
            self.forget()
            raise
        return sorted(jobs, key=place_of)

    async def look(
        self,
        executor: Executor,
        claim: Claim,
        wanted: int,
        now: datetime | None,
        is_floored: bool = True,
        *,
        is_busy: bool = False,
    ) -> Look | None:
        """Where to look for `wanted` jobs; None if there is nowhere to look. `is_busy`: queues that
        had jobs a moment ago will do."""
        if wanted <= 0:
            return None
        chosen = (claim.kinds, claim.tenants)
        is_remembered = False
        if claim.queues is not None:
            queues = list(dict.fromkeys(claim.queues))
        else:
            heads, is_remembered = await self._list(executor, chosen, is_floored, is_busy)
            if heads.are_many:
                look = await self._look_at_best(executor, claim, wanted, now, is_floored, heads)
                look = replace(look, is_remembered=look.is_remembered or is_remembered)
                return await self._begin(look, executor, claim, now, is_floored)
            queues = heads.names()
        if not queues:
            return None
        look = replace(
            Look.at(queues, self._places(queues, claim, is_floored), wanted),
            is_remembered=is_remembered,
        )
        if len(queues) > 1:
            look = await _shared(executor, claim, look, now)
        return await self._begin(look, executor, claim, now, is_floored)

    async def _begin(
        self, look: Look, executor: Executor, claim: Claim, now: datetime | None, is_floored: bool
    ) -> Look | None:
        if look.queues:
            self.floors.begin(look, (claim.kinds, claim.tenants))
            return look
        if is_floored and (look.is_floored or look.is_remembered):
            return await self.look(executor, claim, look.wanted, now, is_floored=False)
        return None

    async def _list(
        self, executor: Executor, chosen: Wanted, is_floored: bool, is_busy: bool
    ) -> tuple[Heads, bool]:
        """The queues that have jobs, and whether they were listed a moment ago. Very many are
        listed again only when they have too few jobs."""
        if chosen not in self._heads and len(self._heads) >= MOST_FILTERS:
            self._heads.clear()
        heads = self._heads.setdefault(chosen, Heads())
        if is_floored and (is_busy or heads.are_many) and heads.is_fresh:
            return heads, True
        began_at = time.monotonic()
        rows = await executor.fetch(sql("list_ready_queues"), {})
        places = ((row["queue"], row["priority"], row["seq"]) for row in rows)
        heads.relist(places, time.monotonic() - began_at, with_taken=not is_floored)
        return heads, False

    async def _look_at_best(
        self,
        executor: Executor,
        claim: Claim,
        wanted: int,
        now: datetime | None,
        is_floored: bool,
        heads: Heads,
    ) -> Look:
        """Look at the queues with the best first jobs, and at more of them until they have as many
        jobs as are wanted that are no worse than what the others may have."""
        queues = heads.take(heads.width)
        try:
            while True:
                best = heads.best
                look = Look.at(queues, self._places(queues, claim, is_floored), wanted)
                found = await _share_heads(executor, claim, look, best, now)
                shares = {row["queue"]: row["share"] for row in found if row["share"]}
                if sum(shares.values()) >= wanted or best is None:
                    break
                times = WIDEN if shares else WIDEN_MOST
                # Meanwhile another claim may have given back, or listed anew, what this one has.
                more = heads.take_more(len(queues) * times)
                queues = list(dict.fromkeys([*queues, *more]))
        except BaseException:
            heads.forget()
            raise
        heads.width = max(LEAST_WIDTH, 2 * len(shares))
        nexts = {row["queue"]: _next_place(row) for row in found}
        for queue in queues:
            if queue not in shares:
                heads.give_back(queue, nexts.get(queue))
        return replace(
            look.of(shares),
            is_remembered=best is not None,
            nexts={queue: nexts[queue] for queue in shares},
        )

    def _places(
        self, queues: Sequence[str], claim: Claim, is_floored: bool
    ) -> list[tuple[int, int]]:
        chosen = (claim.kinds, claim.tenants)
        return [self.floors.place(queue, chosen) if is_floored else START for queue in queues]

    def forget(self) -> None:
        """A claim failed: what others were skipping behind its locks is free again."""
        self.floors.drop_all()
        self._heads.clear()

    def note(self, rows: Iterable[Row], look: Look, claim: Claim) -> list[Job]:
        """The claimed jobs, best first; floors are moved or dropped by what was found."""
        jobs = to_claimed(rows, claim, look.token)
        for job in jobs:
            if job.group is not None or job.root_of is not None:
                self.bind(job.id)
        chosen = (claim.kinds, claim.tenants)
        # Between the last one taken and the place where the other began, some may be left.
        leaves_gap = self.floors.end(look, chosen) and look.was_outdone(jobs)
        self._give_back(look, jobs, chosen)
        if len(jobs) < look.wanted or leaves_gap:
            self.floors.drop(look.queues)
        else:
            self.floors.move(jobs, chosen, look)
        return jobs

    def _give_back(self, look: Look, jobs: Sequence[Job], chosen: Wanted) -> None:
        """What the claim found tells where its queues go on."""
        heads = self._heads.get(chosen)
        if heads is None:
            return
        if len(jobs) < look.wanted:
            if look.nexts or not look.is_remembered:
                heads.forget()
            return
        found = Counter(job.queue for job in jobs)
        for queue, place in look.nexts.items():
            heads.give_back(queue, place, is_deep=2 * found[queue] >= look.wanted)


async def _shared(executor: Executor, claim: Claim, look: Look, now: datetime | None) -> Look:
    """The look with as much of each queue as it has among the best jobs of all."""
    values = {**look.values(claim), "limit": look.wanted, "now": now}
    found = await executor.fetch(sql("share_queues"), values)
    return look.of({row["queue"]: row["share"] for row in found})


async def _share_heads(
    executor: Executor, claim: Claim, look: Look, best: Place | None, now: datetime | None
) -> Sequence[Row]:
    """What queues have among the best jobs of all. `best`: the place of the queues that are not
    looked at."""
    values = {
        **look.values(claim),
        "other_priority": None if best is None else -best[0],
        "other_seq": None if best is None else best[1],
        "limit": look.wanted,
        "now": now,
    }
    return await executor.fetch(sql("share_heads"), values)


def _next_place(row: Row) -> Place | None:
    """Before which nothing is left in a queue; None: nothing is left."""
    if row["next_seq"] is not None:
        return -row["next_priority"], row["next_seq"]
    return BEFORE_ALL if row["may_have_more"] else None


def place_of(job: Job) -> tuple[int, int]:
    """Jobs sorted by this are best first."""
    return -job.priority, job.seq
