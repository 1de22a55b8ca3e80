"""/queue/claim and what comes of it: workers in any language run jobs.

Every write after the claim names the job's `lease`. When another worker got the job meanwhile it is
409 LEASE_LOST, and nothing was written.
"""

from __future__ import annotations

import time
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import read_as, takes_type
from windrow.api.callers import Caller, Writer
from windrow.api.errors import bad_request
from windrow.api.queue.schemas import (
    MOST_RUNS,
    MOST_SECONDS,
    ClaimBody,
    CompleteBody,
    FailBody,
    FinishBody,
    ProgressBody,
    ReleaseBody,
    RenewBody,
    SnoozeBody,
)
from windrow.api.queue.views import name_job, show_claimed
from windrow.api.quick import Quick
from windrow.queue.lease import Lease
from windrow.services import tenant_runs

router = APIRouter(tags=["queue"], route_class=Quick)

LOOK_SECONDS: Final = 1.0  # how often one who waits is asked for, who may have left


@router.post("/queue/claim", openapi_extra=takes_type(ClaimBody))
async def claim(request: Request, caller: Writer) -> Response:
    """Claim jobs to run, best first; with `wait`, as soon as there are any within so many seconds.
    Each has a `lease`, which every later word about this run must name, and `lease_expires_at`."""
    wanted = await read_as(request, ClaimBody)
    if not wanted.queues:
        raise bad_request("queues: name at least one")
    if not 1 <= wanted.limit <= MOST_RUNS:
        raise bad_request(f"limit must be from 1 to {MOST_RUNS}, not {wanted.limit}")
    if not 0 <= wanted.wait <= MOST_SECONDS:
        raise bad_request(f"wait must be from 0 to {MOST_SECONDS:g} seconds, not {wanted.wait}")
    lease = await _claim(request, caller, wanted)
    return answer({"success": True, "jobs": [show_claimed(job) for job in lease.jobs]})


@router.post("/queue/renew", openapi_extra=takes_type(RenewBody))
async def renew(request: Request, caller: Writer) -> Response:
    """Hold leases on, by their own length or `seconds`. `stopping` has the jobs that somebody asked
    to stop, with the state they are to end in: release these, and they will. If a lease was lost
    the answer is 409, names those jobs (`lost`), and the others are held on."""
    body = await read_as(request, RenewBody)
    _check_number(len(body.runs))
    runs = [(run.id, run.lease) for run in body.runs]
    held = await tenant_runs.renew(caller.jobs, runs, body.seconds)
    return answer({"success": True, "lease_expires_at": held.until, "stopping": held.stopping})


@router.post("/queue/finish", openapi_extra=takes_type(FinishBody))
async def finish(request: Request, caller: Writer) -> Response:
    """End many runs in one transaction: each with its `outcome`, which is `complete`, `fail`,
    `snooze`, `release` or `cancel`. Those whose lease was lost are left as they are, and named by
    the answer, which is 409 then (`lost`)."""
    body = await read_as(request, FinishBody)
    _check_number(len(body.runs))
    runs = [(run.id, run.lease, run.to_outcome()) for run in body.runs]
    await tenant_runs.finish(caller.jobs, runs)
    return answer({"success": True})


@router.post("/queue/jobs/{job_id}/complete", openapi_extra=takes_type(CompleteBody))
async def complete(request: Request, job_id: str, caller: Writer) -> Response:
    """The job is done; `then` are enqueued in the same transaction."""
    return await _end(caller, job_id, await read_as(request, CompleteBody))


@router.post("/queue/jobs/{job_id}/fail", openapi_extra=takes_type(FailBody))
async def fail(request: Request, job_id: str, caller: Writer) -> Response:
    """The run failed. It is tried again while attempts are left, unless `retry` is false."""
    return await _end(caller, job_id, await read_as(request, FailBody))


@router.post("/queue/jobs/{job_id}/snooze", openapi_extra=takes_type(SnoozeBody))
async def snooze(request: Request, job_id: str, caller: Writer) -> Response:
    """Run it again later; no attempt is used."""
    return await _end(caller, job_id, await read_as(request, SnoozeBody))


@router.post("/queue/jobs/{job_id}/release", openapi_extra=takes_type(ReleaseBody))
async def release(request: Request, job_id: str, caller: Writer) -> Response:
    """Hand the job back unrun; no attempt is used."""
    return await _end(caller, job_id, await read_as(request, ReleaseBody))


@router.post("/queue/jobs/{job_id}/progress", openapi_extra=takes_type(ProgressBody))
async def progress(request: Request, job_id: str, caller: Writer) -> Response:
    """Say how far the run is. The percentage never goes back."""
    body = await read_as(request, ProgressBody)
    await tenant_runs.progress(
        caller.jobs, name_job(caller, job_id), body.lease, body.percent, body.message, body.counters
    )
    return answer({"success": True})


async def _claim(request: Request, caller: Caller, wanted: ClaimBody) -> Lease:
    """In short turns, so that jobs are not claimed for somebody who has left."""
    give_up_at = time.monotonic() + wanted.wait
    while True:
        left = max(0.0, give_up_at - time.monotonic())
        lease = await tenant_runs.claim(
            caller.jobs,
            wanted.queues,
            kinds=wanted.kinds,
            tenants=wanted.tenants,
            limit=wanted.limit,
            seconds=wanted.seconds,
            worker=wanted.worker,
            wait=min(left, LOOK_SECONDS),
        )
        is_left = await request.is_disconnected()
        if is_left:
            for job in lease.jobs:
                await lease.release(job)
        if lease or is_left or not left or request.app.state.is_stopping:
            return lease


async def _end(
    caller: Caller, job_id: str, body: CompleteBody | FailBody | SnoozeBody | ReleaseBody
) -> Response:
    named = name_job(caller, job_id)
    await tenant_runs.finish(caller.jobs, [(named, body.lease, body.to_outcome())])
    return answer({"success": True, "id": named})


def _check_number(runs: int) -> None:
    if not 1 <= runs <= MOST_RUNS:
        raise bad_request(f"runs: from 1 to {MOST_RUNS} at once, not {runs}")
