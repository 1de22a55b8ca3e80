"""Claiming jobs: the best ready ones of the wanted queues become active under a lease.

Whoever writes gives rows back, and the caller makes jobs of them: others wait for the one who
writes.
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from windrow.queue.job import Job, JobState
from windrow.queue.records import Claim
from windrow.queue.sqlite.rows import MICROSECONDS, claimed_jobs, to_json
from windrow.queue.sqlite.work import Work, event_rows

# Positions in the rows of claim_jobs.sql.
_ID, _SEQ, _QUEUE, _KIND, _PRIORITY = 0, 1, 2, 3, 4
_TENANT, _GROUP, _LEASE_SECONDS, _PLACE = 12, 13, 17, 25
_KEY, _JOB_ID = itemgetter(_QUEUE, _KIND, _TENANT, _GROUP), itemgetter(_ID)


@dataclass(frozen=True, slots=True)
class Leased:
    """Rows of jobs that are active now, under one lease."""

    rows: list[tuple[Any, ...]]
    token: str
    worker: str
    now: int
    expires_at: int


def claim_jobs(work: Work, claim: Claim) -> list[Leased]:
    """Make the best ready jobs active: one lease for each length of them."""
    rows = _find_best(work, claim)
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


def _find_best(work: Work, claim: Claim) -> list[tuple[Any, ...]]:
    queues = _open_queues(work, claim)
    wanted = {
        "kinds": None if claim.kinds is None else to_json(claim.kinds),
        "tenants": None if claim.tenants is None else to_json(claim.tenants),
        "limit": claim.limit,
        "now": work.now,
    }
    if len(queues) == 1:
        return work.rows("claim_jobs", wanted | {"queue": queues[0]})
    return _merge(work, queues, wanted)


def _open_queues(work: Work, claim: Claim) -> list[str]:
    paused = {name for (name,) in work.rows("list_paused_queues", {})}
    if claim.queues is None:
        chosen = [name for (name,) in work.rows("list_ready_queues", {})]
    else:
        chosen = list(dict.fromkeys(claim.queues))
    return [name for name in chosen if name not in paused]


def _merge(work: Work, queues: list[str], wanted: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The best of several queues. Looks at the queue with the best first job first, and stops when
    the first job of the next one is no better than what it has."""
    limit = wanted["limit"]
    heads = work.rows("find_heads", {"queues": to_json(queues)})
    best: list[tuple[Any, ...]] = []
    for queue, priority, place in sorted(heads, key=lambda head: (-head[1], head[2])):
        if len(best) == limit and (-priority, place) > _order(best[-1]):
            break
        best += work.rows("claim_jobs", wanted | {"queue": queue})
        best = sorted(best, key=_order)[:limit]
    return best


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
