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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Self

from windrow.queue.job import Job
from windrow.queue.postgres.rows import Row, as_json, columns, sql, to_claimed
from windrow.queue.records import Claim
from windrow.queue.statements import Statement
from windrow.queue.transactions import Executor

RESCAN_SECONDS: Final = 1.0
# How often a busy worker asks which queues have jobs; what it claims with ends, it claims of these.
QUEUES_SECONDS: Final = 0.05
MOST_BOUND: Final = 100_000
# Before every place there can be: nothing has a higher priority, no seq is smaller.
START: Final = (2**31 - 1, -1)


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
    is_remembered: bool = False  # the queues are those of a moment ago

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

    def to_claim(self, claim: Claim, now: datetime | None) -> tuple[Statement, dict[str, Any]]:
        """The statement that claims what is looked for, and its values."""
        if len(self.queues) > 1 or self.is_floored:
            return sql("claim_jobs"), {**self.values(claim), "now": now}
        one = {"queue": self.queues[0], "limit": self.shares[0]}
        return sql("claim_queue"), {**self.values(claim), **one, "now": now}

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
        priorities = dict(zip(self.queues, self.floor_priorities, strict=True))
        return any(job.priority > priorities[job.queue] for job in jobs)

    def may_have_more(self, found: int) -> bool:
        """Whether another look could find what is still wanted: before the floor, or in another
        queue instead of jobs that somebody else got first."""
        if found >= self.wanted:
            return False
        was_outrun = 0 < found < sum(self.shares) and len(self.queues) > 1
        return self.is_floored or self.is_remembered or was_outrun


Wanted = tuple[tuple[str, ...] | None, tuple[str, ...] | None]


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
        self._ready: tuple[list[str], float] = ([], 0.0)  # queues that had jobs, and when

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
                rows = await executor.fetch(*look.to_claim(claim, now))
                found = self.note(rows, look, claim)
                jobs += found
                if not look.may_have_more(len(found)):
                    break
                is_floored = False
        except BaseException:
            # What other claims were skipping behind our locks is free again.
            self.floors.drop_all()
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
        remembered = self._remembered(claim) if is_busy else None
        queues = remembered or await self._named_queues(executor, claim)
        if not queues or wanted <= 0:
            return None
        chosen = (claim.kinds, claim.tenants)
        places = [self.floors.place(queue, chosen) if is_floored else START for queue in queues]
        look = replace(Look.at(queues, places, wanted), is_remembered=remembered is not None)
        if len(queues) > 1:
            look = await _shared(executor, claim, look, now)
            if not look.queues and look.is_floored:
                return await self.look(executor, claim, wanted, now, is_floored=False)
        if not look.queues:
            return None
        self.floors.begin(look, chosen)
        return look

    def _remembered(self, claim: Claim) -> list[str] | None:
        queues, at = self._ready
        is_new = time.monotonic() - at < QUEUES_SECONDS
        return queues if claim.queues is None and queues and is_new else None

    async def _named_queues(self, executor: Executor, claim: Claim) -> list[str]:
        if claim.queues is not None:
            return list(dict.fromkeys(claim.queues))
        at = time.monotonic()
        found = [row["queue"] for row in await executor.fetch(sql("list_ready_queues"), {})]
        self._ready = (found, at)
        return found

    def note(self, rows: Iterable[Row], look: Look, claim: Claim) -> list[Job]:
        """The claimed jobs, best first; floors are moved or dropped by what was found."""
        jobs = to_claimed(rows, claim, look.token)
        for job in jobs:
            if job.group is not None or job.root_of is not None:
                self.bind(job.id)
        chosen = (claim.kinds, claim.tenants)
        # Between the last one taken and the place where the other began, some may be left.
        leaves_gap = self.floors.end(look, chosen) and look.was_outdone(jobs)
        if len(jobs) < look.wanted:
            self._ready = ([], 0.0)
        if len(jobs) < look.wanted or leaves_gap:
            self.floors.drop(look.queues)
        else:
            self.floors.move(jobs, chosen, look)
        return jobs


async def _shared(executor: Executor, claim: Claim, look: Look, now: datetime | None) -> Look:
    """The look with as much of each queue as it has among the best jobs of all."""
    values = {**look.values(claim), "limit": look.wanted, "now": now}
    found = await executor.fetch(sql("share_queues"), values)
    shares: dict[str, int] = {row["queue"]: row["share"] for row in found}
    lanes = zip(look.queues, look.floor_priorities, look.floor_seqs, strict=True)
    chosen = [lane for lane in lanes if lane[0] in shares]
    queues, priorities, seqs = columns(chosen, 3)
    return replace(
        look,
        queues=queues,
        shares=[shares[queue] for queue in queues],
        floor_priorities=priorities,
        floor_seqs=seqs,
    )


def place_of(job: Job) -> tuple[int, int]:
    """Jobs sorted by this are best first."""
    return -job.priority, job.seq
