"""Claims: as many calls of BullMQ's `moveToActive` as there is room, sent together, never blocking.

Each job has a token of its own, `queue:random`, because BullMQ locks jobs one by one.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import msgpack
from bullmq.scripts import raw2NextJobData
from redis.asyncio.client import Pipeline

from windrow.errors import StoreError, Unsupported
from windrow.queue.bullmq import finishing, rows
from windrow.queue.bullmq.connection import Links, now_ms
from windrow.queue.bullmq.job_schedulers import make_next_ticks
from windrow.queue.job import Job, JobError, JobState
from windrow.queue.records import Claim, Finish

MOST_AT_ONCE: Final = 100
# A job that we have no handler for is looked at again after this: somebody else may have one.
NOT_OURS_SECONDS: Final = 1.0


@dataclass(slots=True)
class Leases:
    """What this process has claimed, by token; and how many jobs it is likely to find."""

    held: dict[str, tuple[str, int]] = field(default_factory=dict)  # BullMQ's id, seconds
    likely: dict[str, int] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)  # of jobs that had run before
    turn: int = 0
    next_due: dict[str, int] = field(default_factory=dict)  # delayed jobs, by queue

    def hold(self, token: str, job_id: str, seconds: int, *, is_first: bool) -> None:
        self.held[token] = (job_id, seconds)
        if not is_first:
            self.again.add(token)

    def let_go(self, token: str) -> None:
        self.held.pop(token, None)
        self.again.discard(token)

    def ran_before(self, token: str) -> bool:
        """Whether the job had run before; of one that another process claimed nobody knows."""
        return token in self.again or token not in self.held


# Of claimed jobs of a queue (token, BullMQ's id, hash), the ends of those that have ended already.
FindEnds = Callable[
    [str, Sequence[tuple[str, str, Mapping[str, str]]]], Awaitable[dict[str, Finish]]
]


def queue_of(token: str) -> str:
    return token.rpartition(":")[0]


async def claim_jobs(
    links: Links, leases: Leases, claim: Claim, find_ends: FindEnds | None = None
) -> list[Job]:
    if claim.tenants is not None:
        raise Unsupported(
            "exact_claims",
            "BullMQ cannot claim by tenant: give each tenant a queue of its own, or use Postgres",
        )
    if claim.queues is None:
        queues = await links.queues()
    else:
        queues = list(claim.queues)
        await links.know(queues)
    leases.turn += 1
    start = leases.turn % len(queues) if queues else 0
    jobs: list[Job] = []
    for queue in queues[start:] + queues[:start]:
        room = claim.limit - len(jobs)
        jobs += await _claim_of(links, leases, queue, claim, room, find_ends)
        if len(jobs) >= claim.limit:
            break
    return jobs


async def _claim_of(
    links: Links,
    leases: Leases,
    queue: str,
    claim: Claim,
    limit: int,
    find_ends: FindEnds | None,
) -> list[Job]:
    jobs: list[Job] = []
    while len(jobs) < limit:
        asked = min(limit - len(jobs), leases.likely.get(queue, 1), MOST_AT_ONCE)
        found = await _activate(links, leases, queue, claim, asked)
        known, foreign = await _look_into(links, queue, claim, found, find_ends)
        jobs += await _sort_out(links, leases, queue, claim, found, known, foreign)
        if len(found) < asked:
            leases.likely[queue] = max(1, len(found))
            break
        leases.likely[queue] = 2 * asked
    return jobs


async def _activate(
    links: Links, leases: Leases, queue: str, claim: Claim, count: int
) -> list[tuple[str, str, Mapping[str, str]]]:
    """Token, BullMQ's id and the hash of each job that is active now."""
    scripts = links.scripts(queue)
    names = ["wait", "active", "prioritized", "events", "stalled", "limiter"]
    names += ["delayed", "paused", "meta", "pc", "marker"]
    tokens = [f"{queue}:{secrets.token_hex(16)}" for _ in range(count)]

    async def fill(pipe: Pipeline) -> None:
        for token in tokens:
            options = {
                "token": token,
                "lockDuration": claim.seconds * 1000,
                "limiter": None,
                "name": claim.worker,
            }
            args = [scripts.keys[""], now_ms(), msgpack.packb(options, use_bin_type=True)]
            await scripts.run(pipe, "moveToActive", scripts.getKeys(names), args)

    found = []
    for token, answer in zip(tokens, await links.together(fill, transaction=False), strict=True):
        data, job_id, _, next_due = raw2NextJobData(answer)
        if data:
            found.append((token, str(job_id), data))
        elif next_due:
            leases.next_due[queue] = int(next_due)
        else:
            leases.next_due.pop(queue, None)
    return found


async def _look_into(
    links: Links,
    queue: str,
    claim: Claim,
    found: Sequence[tuple[str, str, Mapping[str, str]]],
    find_ends: FindEnds | None,
) -> tuple[dict[str, Finish], set[str]]:
    """The ends of jobs that have ended already, and the tokens of those that only Node can run.
    A tick that goes back, because its kind is not asked for, makes no next one."""
    taken = [one for one in found if claim.kinds is None or one[2].get("name") in claim.kinds]
    try:
        foreign = await make_next_ticks(links, queue, taken)
        return {} if find_ends is None else await find_ends(queue, found), foreign
    except StoreError:  # handed back: were they just left, each would count a crash
        back = [
            Finish(rows.our_id(queue, job_id), token, JobState.READY, delay=NOT_OURS_SECONDS)
            for token, job_id, _ in found
        ]
        await finishing.finish_jobs(links, back)
        raise


async def _sort_out(
    links: Links,
    leases: Leases,
    queue: str,
    claim: Claim,
    found: Sequence[tuple[str, str, Mapping[str, str]]],
    known: Mapping[str, Finish],
    foreign: Collection[str],
) -> list[Job]:
    """Jobs that may run. What has ended already (`known`) or crashed too often ends here, and what
    nobody here can run goes back: BullMQ gives out jobs without asking which."""
    jobs: list[Job] = []
    ends: list[Finish] = []
    longer: list[tuple[str, str, int]] = []
    for token, job_id, fields in found:
        job = rows.to_job(queue, job_id, fields, JobState.ACTIVE)
        seconds = claim.lease_length(job.kind, job.lease_seconds)
        if token in foreign:
            ends.append(Finish(job.id, token, JobState.READY, delay=NOT_OURS_SECONDS))
            continue
        if end := known.get(token) or _end_instead(job, token, fields, claim):
            ends.append(end)
            continue
        if seconds != claim.seconds:
            longer.append((token, job_id, seconds))
        leases.hold(token, job_id, seconds, is_first=job.runs <= 1)
        job.lease_token = token
        job.worker = claim.worker
        started = job.started_at or rows.from_ms(now_ms())
        job.lease_expires_at = started + timedelta(seconds=seconds)
        jobs.append(job)
    if longer:
        await _set_lengths(links, queue, longer)
    if ends:
        await finishing.finish_jobs(links, ends)
    return jobs


def _end_instead(job: Job, token: str, fields: Mapping[str, str], claim: Claim) -> Finish | None:
    if stop := fields.get(rows.STOP):  # somebody asked for it, and then the run crashed
        reason = fields.get(rows.STOP_REASON) or "cancelled"
        return Finish(job.id, token, JobState(stop), error=JobError(None, "cancel", reason))
    if (why := fields.get("defa")) or job.crashes >= job.max_crashes:
        text = why or f"crashed {job.crashes} times: the leases of its runs ran out"
        return Finish(job.id, token, JobState.FAILED, error=JobError(None, "crash", text))
    if claim.kinds is not None and job.kind not in claim.kinds:
        return Finish(job.id, token, JobState.READY, delay=NOT_OURS_SECONDS)
    return None


async def _set_lengths(links: Links, queue: str, leases: Sequence[tuple[str, str, int]]) -> None:
    scripts = links.scripts(queue)

    async def fill(pipe: Pipeline) -> None:
        for token, job_id, seconds in leases:
            await scripts.extendLock(job_id, token, seconds * 1000, pipe)

    await links.together(fill, transaction=False)
