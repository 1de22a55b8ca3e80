"""Runs of jobs by workers elsewhere, who hold nothing but a job's id and the token of its lease.

The token proves the claim: who names a stale one gets LeaseLost, and nothing of theirs is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from windrow.errors import InvalidJob, LeaseLost
from windrow.ids import is_id, plain_id
from windrow.queue.checks import check_lease
from windrow.queue.job import Job, JobState
from windrow.queue.lease import Lease
from windrow.queue.outcome import Done, Outcome
from windrow.queue.steps import report_progress
from windrow.services.tenant_queue import TenantQueue

UUID_LENGTH: Final = 36
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Held:
    """Leases that were renewed: until when at least, and which jobs somebody asked to stop."""

    until: datetime | None
    stopping: Mapping[str, JobState]


async def claim(
    queue: TenantQueue,
    queues: Sequence[str],
    *,
    kinds: Sequence[str] | None = None,
    tenants: Sequence[str] | None = None,
    limit: int = 1,
    seconds: float = 30,
    worker: str | None = None,
    wait: float = 0.0,
) -> Lease:
    """Jobs to run, each with its token (`lease_token`)."""
    if queue.tenant is not None:
        tenants = [str(queue.narrow(tenant)) for tenant in tenants or [queue.tenant]]
    return await queue.queue.claim(
        queues,
        kinds=kinds,
        tenants=tenants,
        limit=limit,
        seconds=seconds,
        worker=worker,
        wait=wait,
    )


async def finish(queue: TenantQueue, runs: Sequence[tuple[str, str, Outcome]]) -> None:
    """End runs, given as the job's id, the token and the outcome, in one transaction. Raises
    LeaseLost, which names those that were lost; the others have ended."""
    jobs = await _leased(queue, [(job_id, token) for job_id, token, _ in runs])
    outcomes = [
        (job, await _owned(queue, outcome)) for job, (_, _, outcome) in zip(jobs, runs, strict=True)
    ]
    await Lease(queue.queue.store, jobs, queue.queue.size_limits).finish_many(outcomes)


async def renew(
    queue: TenantQueue, runs: Sequence[tuple[str, str]], seconds: float | None = None
) -> Held:
    """Hold leases longer, by their own length or by `seconds`. Raises LeaseLost, which names the
    jobs that were lost; the others are held on."""
    tokens = await _own_tokens(queue, runs)
    renewal = await queue.queue.store.extend_leases(sorted(tokens), check_lease(seconds))
    wanted = [plain_id(job_id) for job_id, _ in runs]
    if lost := [job_id for job_id in wanted if job_id not in renewal.held]:
        raise LeaseLost(*lost)
    stopping = {job_id: renewal.stopping[job_id] for job_id in wanted if job_id in renewal.stopping}
    return Held(renewal.expires_at, stopping)


async def progress(
    queue: TenantQueue,
    job_id: str,
    token: str,
    percent: float | None,
    message: str | None,
    counters: Mapping[str, int],
) -> None:
    """Say how far a run is. Raises LeaseLost."""
    [job] = await _leased(queue, [(job_id, token)])
    await report_progress(queue.queue.store, job, percent, message, counters)


async def _leased(queue: TenantQueue, runs: Sequence[tuple[str, str]]) -> list[Job]:
    """The jobs as their workers hold them: under the tokens that were named."""
    found = await queue.get_all([job_id for job_id, _ in runs])
    if len(found) < len(runs):
        raise InvalidJob("a job is named twice")
    if lost := [job_id for job_id, token in runs if not _is_token(token)]:
        raise LeaseLost(*lost)
    return [
        msgspec.structs.replace(found[plain_id(job_id)], lease_token=plain_id(token))
        for job_id, token in runs
    ]


async def _own_tokens(queue: TenantQueue, runs: Sequence[tuple[str, str]]) -> set[str]:
    """A lease is of all the jobs of a claim: whoever names one that is not that of its own job
    would hold on to somebody else's."""
    if queue.tenant is None:
        return {token for _, token in runs}
    found = await queue.get_all([job_id for job_id, _ in runs])
    return {
        token for job_id, token in runs if found[plain_id(job_id)].lease_token == plain_id(token)
    }


def _is_token(text: str) -> bool:
    """Whether a store may have given it out: a UUID, or a short text of letters and digits, which
    some stores write behind the queue."""
    queue, _, drawn = text.rpartition(":")
    if not queue and len(text) >= UUID_LENGTH:
        return is_id(text)
    return _TOKEN.fullmatch(drawn) is not None


async def _owned(queue: TenantQueue, outcome: Outcome) -> Outcome:
    if isinstance(outcome, Done) and outcome.then:
        return Done(outcome.result, await queue.own(outcome.then))
    return outcome
