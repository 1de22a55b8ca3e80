"""Claiming jobs: the best ready ones of the wanted queues become active under a lease.

Whoever writes gives rows back, and the caller makes jobs of them: others wait for the one who
writes.
"""

from __future__ import annotations

import secrets
import time
from bisect import insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from windrow.queue.heads import BEFORE_ALL, MANY_QUEUES, MOST_FILTERS, Heads, Place, Wanted
from windrow.queue.job import Job, JobState
from windrow.queue.records import Claim
from windrow.queue.sqlite.rows import MICROSECONDS, claimed_jobs, to_json
from windrow.queue.sqlite.work import Work, event_rows

# Positions in the rows of claim_jobs.sql.
_ID, _SEQ, _QUEUE, _KIND, _PRIORITY = 0, 1, 2, 3, 4
_TENANT, _GROUP, _LEASE_SECONDS, _PLACE = 12, 13, 17, 25
_KEY, _JOB_ID = itemgetter(_QUEUE, _KIND, _TENANT, _GROUP), itemgetter(_ID)

MOST_STIRRED = 1000  # queues that have got jobs since the last claim


class Leased(msgspec.Struct, frozen=True):
    """Rows of jobs that are active now, under one lease."""

    rows: list[tuple[Any, ...]]
    token: str
    worker: str
    now: int
    expires_at: int


class Memory:
    """What a store remembers of very many queues between its claims. Used by whoever writes."""

    def __init__(self) -> None:
        self._heads: dict[Wanted, Heads] = {}
        self._stirred: deque[str] = deque(maxlen=MOST_STIRRED)

    def heads_of(self, claim: Claim) -> Heads:
        """The queues that a claim of these kinds and tenants looks at."""
        while self._stirred:
            queue = self._stirred.popleft()
            for heads in self._heads.values():
                heads.stir(queue)
        wanted = (claim.kinds, claim.tenants)
        if wanted not in self._heads and len(self._heads) >= MOST_FILTERS:
            self._heads.clear()
        return self._heads.setdefault(wanted, Heads())

    def stir(self, queues: Iterable[str]) -> None:
        """This store has made jobs of these queues ready; called by any thread."""
        if self._heads:
            self._stirred.extend(queues)

    def forget(self) -> None:
        """A write failed, which may have been a claim; called by any thread."""
        self._heads = {}


def claim_jobs(work: Work, claim: Claim, memory: Memory) -> list[Leased]:
    """Make the best ready jobs active: one lease for each length of them."""
    rows = _find_best(work, claim, memory)
    if not rows:
        return []
    by_length: defaultdict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        by_length[claim.lease_length(row[_KIND], row[_LEASE_SECONDS])].append(row)
    leased = [_lease(work, alike, seconds, claim) for seconds, alike in by_length.items()]
    for queue, count in Counter(row[_QUEUE] for row in rows).items():
        work.counts[queue, JobState.READY.value] -= count
        work.counts[queue, JobState.ACTIVE.value] += count
    work.events += event_rows(work.now, "job.started", JobState.ACTIVE.value, rows, _KEY, _JOB_ID)
    return leased


def to_jobs(leased: Sequence[Leased]) -> list[Job]:
    """The jobs, best first."""
    jobs = [
        job
        for one in leased
        for job in claimed_jobs(one.rows, one.token, one.worker, one.now, one.expires_at)
    ]
    if len(leased) > 1:
        places = {row[_SEQ]: row[_PLACE] for one in leased for row in one.rows}
        jobs.sort(key=lambda job: (-job.priority, places[job.seq]))
    return jobs


def _find_best(work: Work, claim: Claim, memory: Memory) -> list[tuple[Any, ...]]:
    wanted = {
        "kinds": None if claim.kinds is None else to_json(claim.kinds),
        "tenants": None if claim.tenants is None else to_json(claim.tenants),
        "limit": claim.limit,
        "now": work.now,
    }
    paused = {name for (name,) in work.rows("list_paused_queues", {})}
    if claim.queues is not None:
        return _find_in(work, list(dict.fromkeys(claim.queues)), paused, wanted)
    memory.stir(work.ready_queues)
    heads = memory.heads_of(claim)
    if heads.are_many and heads.is_fresh:
        best = _merge(work, heads, paused, wanted)
        if len(best) == claim.limit:
            return best
    if not heads.are_many:
        queues = [name for (name,) in work.rows("list_ready_queues", {})]
        if len(queues) <= MANY_QUEUES:
            return _find_in(work, queues, paused, wanted)
    began_at = time.monotonic()
    listed = work.rows("list_heads", {name: wanted[name] for name in ("kinds", "tenants")})
    heads.relist(listed, time.monotonic() - began_at, with_taken=True)
    return _merge(work, heads, paused, wanted)


def _find_in(
    work: Work, queues: Sequence[str], paused: set[str], wanted: dict[str, Any]
) -> list[tuple[Any, ...]]:
    queues = [name for name in queues if name not in paused]
    if len(queues) == 1:
        return work.rows("claim_jobs", wanted | {"queue": queues[0]})
    heads = Heads()
    heads.relist(work.rows("find_heads", {"queues": to_json(queues)}), 0)
    return _merge(work, heads, paused, wanted)


def _merge(
    work: Work, heads: Heads, paused: set[str], wanted: dict[str, Any]
) -> list[tuple[Any, ...]]:
    """The best of several queues. Looks at the queue with the best first job first, and stops when
    the first job of the next one is no better than what it has."""
    limit = wanted["limit"]
    best: list[
        tuple[Place, int, tuple[Any, ...]]
    ] = []  # with the seq, so that no rows are compared
    found: dict[str, list[tuple[Any, ...]]] = {}
    while (head := heads.best) is not None:
        if len(best) == limit and head > best[-1][0]:
            break
        [queue] = heads.take(1)
        if queue in paused or queue in found:
            continue
        found[queue] = work.rows("claim_jobs", wanted | {"queue": queue})
        for row in found[queue]:
            insort(best, (_order(row), row[_SEQ], row))
            if len(best) > limit and best.pop()[2] is row:
                break  # those behind it are no better
    last = best[-1][0] if best else BEFORE_ALL
    for queue, rows in found.items():
        left = next((place for place in map(_order, rows) if place > last), None)
        heads.give_back(queue, last if left is None and len(rows) == limit else left)
    return [row for _, _, row in best]


def _order(row: tuple[Any, ...]) -> tuple[int, int]:
    return -row[_PRIORITY], row[_PLACE]


def _lease(work: Work, rows: list[tuple[Any, ...]], seconds: int, claim: Claim) -> Leased:
    token = secrets.token_urlsafe(16)
    expires_at = work.now + seconds * MICROSECONDS
    seqs = to_json([row[_SEQ] for row in rows])
    work.run("start_jobs", {"seqs": seqs, "token": token, "now": work.now})
    work.run(
        "insert_lease",
        {
            "token": token,
            "worker": claim.worker,
            "seconds": seconds,
            "now": work.now,
            "expires_at": expires_at,
            "pending": len(rows),
            "seqs": seqs,
        },
    )
    return Leased(rows, token, claim.worker, work.now, expires_at)


def release_leases(work: Work, tokens: Sequence[str]) -> None:
    """Jobs held under these tokens (one each) have left; a lease goes with its last job."""
    counts = Counter(tokens)
    work.run_many(
        "release_leases", [{"token": token, "count": count} for token, count in counts.items()]
    )
    work.run("delete_leases", {"tokens": to_json(list(counts))})
