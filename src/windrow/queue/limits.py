"""Which held jobs may run next: room under limits, and turns between keys. No database here.

Every job counts under all of its keys, and takes its turn by the first, its fairness key. Turns go
round robin: the key with the lowest `turn` is next, and each job moves its key on by one. A key
that had nothing to ask for, or no room, cannot save its turns up: it is never more than one behind
the others.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

import msgspec

from windrow.errors import StoreError

logger = logging.getLogger(__name__)

# Ready jobs of a key that nothing else limits. So many of a key's jobs can be in the line before
# those of another key that comes later.
WINDOW: Final = 25
# Keys looked at by one promotion of all, and jobs of one key looked at beyond those there is room
# for, in case the first ones lack room under another key.
KEYS_AT_ONCE: Final = 200
LOOK_AHEAD: Final = 200
# A ready job that nobody has claimed for so long gives its place to a job of another lane. Workers
# promote once a second, so that nobody waits longer than 5 s.
PATIENCE_SECONDS: Final = 3.0
# For so long the jobs of its lane get only places that no other job wants, or until somebody asks
# for them.
UNSERVED_SECONDS: Final = 60.0

# What decides who can run a job: its queue, its kind and its tenant.
Lane = tuple[str, str, str | None]


class Limit(msgspec.Struct):
    """A key while it is locked: its settings, its turn, and what it has in use."""

    key: str
    active: int | None = None
    per_second: float | None = None
    burst: int | None = None
    tokens: float | None = None  # None: never counted, so the bucket is full
    refilled_at: datetime | None = None
    parked_until: datetime | None = None
    turn: float = 0.0
    ready: int = 0
    in_use: int = 0  # ready or active
    started: int = 0  # since the last refill
    last_started_at: datetime | None = None

    @property
    def most_ready(self) -> int | None:
        """The most starts that may come at once, if starts are counted."""
        if self.per_second is None:
            return None
        return max(1, math.ceil(self.per_second)) if self.burst is None else self.burst

    @property
    def is_set(self) -> bool:
        """Whether somebody said what this key allows."""
        return self.active is not None or self.per_second is not None

    def refill(self, now: datetime) -> None:
        """Add the tokens of the time since the last refill.

        Jobs that lay ready take their tokens' place in the bucket until they start, for they may
        all start at once: up to the last start, tokens and ready and started jobs together are at
        most the burst. So starts in any time t are at most burst + per_second · t.
        """
        if self.per_second is None or self.most_ready is None:
            return
        if self.tokens is None or self.refilled_at is None:
            self.tokens, self.refilled_at = float(self.most_ready), now
        if self.started and self.last_started_at is not None:
            self._fill(self.last_started_at, self.most_ready - self.ready - self.started)
            self.started = 0
        self._fill(now, self.most_ready - self.ready)

    def _fill(self, until: datetime, most: int) -> None:
        if self.per_second is None or self.tokens is None or self.refilled_at is None:
            return
        elapsed = max(0.0, (until - self.refilled_at).total_seconds())
        self.tokens = max(0.0, min(self.tokens + elapsed * self.per_second, float(most)))
        self.refilled_at = max(until, self.refilled_at)

    def room(self, now: datetime) -> float:
        """How many jobs more may carry this key; after `refill`."""
        if self.parked_until is not None and self.parked_until > now:
            return 0
        return self._free()

    def _free(self) -> float:
        room = math.inf
        if self.active is not None:
            room = max(0, self.active - self.in_use)
        if self.per_second is not None:
            # A token that lacks a billionth is one: it was added up from many small times.
            room = min(room, math.floor((self.tokens or 0.0) + 1e-9))
        return room

    def first_room(self, now: datetime) -> int:
        """How many jobs more may have this key as their first."""
        room = self.room(now)
        return self._window() if room == math.inf else int(room)

    def _window(self) -> int:
        return max(0, WINDOW - self.ready)

    def has_place(self, *, is_first: bool) -> bool:
        """Whether a job that had a place can keep it. Nobody else wants that of a parked key."""
        free = self._free()
        return free >= 1 and (free != math.inf or not is_first or self._window() >= 1)

    def surplus(self) -> int:
        """How many ready jobs are over the limit, and must be held again."""
        over = 0 if self.active is None else self.in_use - self.active
        if self.most_ready is not None:
            over = max(over, self.ready - self.most_ready)
        return max(0, min(over, self.ready))

    def take(self) -> None:
        """One job more is ready."""
        self.ready += 1
        self.in_use += 1
        if self.tokens is not None:
            self.tokens = max(0.0, self.tokens - 1)

    def give_back(self) -> None:
        """A ready job waits again. It has not started, so its token goes back into the bucket."""
        self.ready -= 1
        self.in_use -= 1
        if self.tokens is not None:
            self.tokens += 1

    def describe(self) -> str:
        """The key and its limits, for an error's text."""
        limits = []
        if self.active is not None:
            limits.append(f"limit {self.active} active")
        if self.per_second is not None:
            limits.append(f"limit {self.per_second:g} per second")
        if self.parked_until is not None:
            limits.append(f"parked until {self.parked_until:%Y-%m-%d %H:%M:%S} UTC")
        return f"{self.key} ({', '.join(limits)})" if limits else self.key


class Held(msgspec.Struct, frozen=True):
    """A job that waits for room."""

    id: str
    keys: tuple[str, ...]
    lane: Lane | None = None  # known where some lanes are closed
    is_unserved: bool = False


class Idle(msgspec.Struct, frozen=True):
    """A ready job that could give its places to others. `is_overdue`: only because nobody has
    claimed it."""

    id: str
    keys: tuple[str, ...]
    lane: Lane
    is_overdue: bool = False


class Taker(msgspec.Struct, frozen=True):
    """Somebody who claims jobs of these queues, kinds and tenants; None: of any."""

    queues: Sequence[str] | None
    kinds: Sequence[str] | None
    tenants: Sequence[str] | None = None

    def takes(self, lane: Lane) -> bool:
        queue, kind, tenant = lane
        return (
            (self.queues is None or queue in self.queues)
            and (self.kinds is None or kind in self.kinds)
            and (self.tenants is None or tenant in self.tenants)
        )


class Choice(msgspec.Struct, frozen=True):
    """What a promotion does: held jobs that become ready, ready jobs that give their places back,
    and lanes that turn out to be unserved."""

    promoted: tuple[Held, ...] = ()
    returned: tuple[Idle, ...] = ()
    unserved: frozenset[Lane] = frozenset()


class _Lane(msgspec.Struct):
    """A fairness key's jobs, best first, and how far they were looked at."""

    limit: Limit
    jobs: Sequence[Held]
    room: int
    place: int = 0
    rooms: dict[str, float] = msgspec.field(default_factory=dict)

    def next_job(self) -> Held | None:
        """The next job that has room under all its keys. Room only shrinks, so one that was passed
        over need not be looked at again."""
        while self.room > 0 and self.place < len(self.jobs):
            job = self.jobs[self.place]
            self.place += 1
            # A key that is not among the locked ones: next time.
            if all(self.rooms.get(key, 0) >= 1 for key in job.keys):
                return job
        return None


def release(limits: Mapping[str, Limit], idle: Sequence[Idle]) -> None:
    """Let others choose before idle jobs: their places count as free."""
    for job in idle:
        for key in job.keys:
            if key in limits:
                limits[key].give_back()


def choose_places(
    limits: Mapping[str, Limit],
    waiting: Mapping[str, Sequence[Held]],
    idle: Sequence[Idle],
    now: datetime,
    most: int,
) -> Choice:
    """Give out the places, after `release`: first to jobs of lanes that are served, as far as is
    known, then to idle jobs that have places already, last to jobs of the other lanes."""
    closed = {job.lane for job in idle if job.is_overdue}
    served = _select(waiting, lambda job: not job.is_unserved and job.lane not in closed)
    promoted = choose_jobs(limits, served, now, most)
    oldest_first = sorted(idle, key=lambda job: job.id)
    returned = [job for job in oldest_first if not _keeps_place(limits, job)]
    others = _select(waiting, lambda job: job.is_unserved or job.lane in closed)
    promoted += choose_jobs(limits, others, now, most - len(promoted))
    is_wanted = any(served.values())
    return Choice(tuple(promoted), tuple(returned), frozenset(closed if is_wanted else ()))


def _select(
    waiting: Mapping[str, Sequence[Held]], is_chosen: Callable[[Held], bool]
) -> dict[str, list[Held]]:
    return {key: [job for job in jobs if is_chosen(job)] for key, jobs in waiting.items()}


def _keeps_place(limits: Mapping[str, Limit], job: Idle) -> bool:
    """Whether there is still room for an idle job, which then has it."""
    carried = [limits[key] for key in job.keys if key in limits]
    if not all(limit.has_place(is_first=limit.key == job.keys[0]) for limit in carried):
        return False
    for limit in carried:
        limit.take()
    return True


def note_served(
    waiting: Mapping[str, Sequence[Held]], takers: Sequence[Taker]
) -> Mapping[str, Sequence[Held]]:
    """Mark waiting jobs that none of the takers takes as unserved, unless none is taken at all:
    loops of people's own are known only while they ask."""
    lanes = {job.lane for jobs in waiting.values() for job in jobs if job.lane is not None}
    taken = {lane for lane in lanes if any(taker.takes(lane) for taker in takers)}
    if not taken:
        return waiting
    return {
        key: [
            job if job.lane in taken else msgspec.structs.replace(job, is_unserved=True)
            for job in jobs
        ]
        for key, jobs in waiting.items()
    }


def choose_jobs(
    limits: Mapping[str, Limit], waiting: Mapping[str, Sequence[Held]], now: datetime, most: int
) -> list[Held]:
    """The jobs to be made ready, in the order in which they take their places. `limits` are those
    of all their keys, refilled; their tokens and turns are moved on."""
    rooms = {key: limit.room(now) for key, limit in limits.items()}
    lanes = {
        key: _Lane(limits[key], jobs, limits[key].first_room(now), rooms=rooms)
        for key, jobs in waiting.items()
        if key in limits and jobs
    }
    _catch_up([lane.limit for lane in lanes.values()])
    turns = [(lane.limit.turn, key) for key, lane in lanes.items()]
    heapq.heapify(turns)
    chosen: list[Held] = []
    while turns and len(chosen) < most:
        _, key = heapq.heappop(turns)
        lane = lanes[key]
        job = lane.next_job()
        if job is None:
            continue
        chosen.append(job)
        lane.room -= 1
        for carried in job.keys:
            rooms[carried] -= 1
            limits[carried].take()
        lane.limit.turn += 1
        heapq.heappush(turns, (lane.limit.turn, key))
    return chosen


def _catch_up(limits: Sequence[Limit]) -> None:
    """Bring keys that stayed behind up to one turn behind the foremost."""
    least = max((limit.turn for limit in limits), default=0.0) - 1
    for limit in limits:
        limit.turn = max(limit.turn, least)


class Promoting(Protocol):
    async def promote_jobs(self, keys: Sequence[str] | None = None) -> int: ...


async def make_room(store: Promoting, keys: Sequence[Sequence[str]]) -> int:
    """Promote after something was done to jobs with these keys. It is done already and must not
    fail any more: a promotion that cannot be made now is made by the next one to tend the queue.

    A job with several keys leaves room that jobs with other first keys may want: then all are
    looked at.
    """
    wanted = [one for one in keys if one]
    if not wanted:
        return 0
    firsts = None if any(len(one) > 1 for one in wanted) else sorted({one[0] for one in wanted})
    try:
        return await store.promote_jobs(firsts)
    except StoreError as error:
        logger.warning("held jobs could not be looked at, which is done later: %s", error)
        return 0
