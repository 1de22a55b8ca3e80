"""/queue/jobs: jobs put in, looked at, changed and taken out."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import read_as, takes_type
from windrow.api.callers import Reader, Writer
from windrow.api.errors import bad_request
from windrow.api.queue.schemas import (
    MOST_JOBS,
    MOST_SECONDS,
    EditBody,
    JobBody,
    JobsBody,
    ReasonBody,
    RetryBody,
)
from windrow.api.queue.views import name_job, show_change, show_head, show_inserted, show_job
from windrow.api.quick import Quick
from windrow.errors import WaitTimeout
from windrow.queue.job import Job, JobState

router = APIRouter(tags=["queue"], route_class=Quick)

PAGE: Final = 100
MOST: Final = 1_000
LOOK_SECONDS: Final = 1.0  # how often one who waits is asked for, who may have left

Name = Annotated[str | None, Query(max_length=255)]


@router.post("/queue/jobs", openapi_extra=takes_type(JobBody, JobsBody))
async def enqueue(request: Request, caller: Writer) -> Response:
    """Enqueue a job, or many at once (`{"jobs": […]}`), of which all are stored or none. When this
    answers they are on disk."""
    body = await read_as(request, dict[str, Any])
    if "jobs" not in body:
        one = await caller.jobs.enqueue((await read_as(request, JobBody)).to_new())
        return answer({"success": True, "job": show_job(one)})
    many = (await read_as(request, JobsBody)).jobs
    if len(many) > MOST_JOBS:
        raise bad_request(f"jobs: {len(many)} at once; {MOST_JOBS} are the most")
    inserted = await caller.jobs.enqueue_many([job.to_new() for job in many])
    return answer({"success": True, "jobs": [show_inserted(one) for one in inserted]})


@router.get("/queue/jobs")
async def list_jobs(
    caller: Reader,
    queue: Name = None,
    kind: Name = None,
    state: Annotated[list[JobState] | None, Query()] = None,
    tenant: Name = None,
    group: UUID | None = None,
    tag: Name = None,
    error: Name = None,
    unique: Name = None,
    after: Name = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = PAGE,
) -> Response:
    """Jobs, newest first, without results and errors. `next`, if there may be more, is what to give
    as `after`."""
    jobs = await caller.jobs.list(
        queue=queue,
        kind=kind,
        state=state,
        tenant=tenant,
        group=None if group is None else str(group),
        tag=tag,
        error=error,
        unique=unique,
        after=after,
        limit=limit,
    )
    body: dict[str, Any] = {"success": True, "jobs": [show_head(job) for job in jobs]}
    if len(jobs) == limit:
        body["next"] = jobs[-1].id
    return answer(body)


@router.get("/queue/jobs/{job_id}")
async def get_job(
    request: Request,
    job_id: str,
    caller: Reader,
    wait: Annotated[float, Query(ge=0, le=MOST_SECONDS)] = 0.0,
) -> Response:
    """A job with its result and errors; with `wait`, when it has ended or so many seconds later."""
    job = await caller.jobs.get(name_job(caller, job_id))
    if wait and not job.is_finished:
        job = await _wait(request, caller, job, wait)
    return answer({"success": True, "job": show_job(job)})


@router.patch("/queue/jobs/{job_id}", openapi_extra=takes_type(EditBody))
async def edit_job(request: Request, job_id: str, caller: Writer) -> Response:
    """Change a job that is not running."""
    body = await read_as(request, EditBody)
    job = await caller.jobs.edit(name_job(caller, job_id), body.changes())
    return answer({"success": True, "job": show_job(job)})


@router.delete("/queue/jobs/{job_id}")
async def delete_job(job_id: str, caller: Writer) -> Response:
    """Remove a job without a trace. One that runs must be cancelled first."""
    named = name_job(caller, job_id)
    await caller.jobs.delete(named)
    return answer({"success": True, "id": named})


@router.post("/queue/jobs/{job_id}/cancel", openapi_extra=takes_type(ReasonBody, required=False))
async def cancel_job(request: Request, job_id: str, caller: Writer) -> Response:
    """Cancel a job; one that runs is told when its lease is renewed."""
    body = await read_as(request, ReasonBody, default=ReasonBody())
    change = await caller.jobs.cancel(name_job(caller, job_id), body.reason)
    return answer({"success": True, **show_change(change)})


@router.post("/queue/jobs/{job_id}/retry", openapi_extra=takes_type(RetryBody, required=False))
async def retry_job(request: Request, job_id: str, caller: Writer) -> Response:
    """Run a failed or cancelled job again, with all its attempts; a scheduled one at once."""
    body = await read_as(request, RetryBody, default=RetryBody())
    change = await caller.jobs.retry(name_job(caller, job_id), from_start=body.from_start)
    return answer({"success": True, **show_change(change)})


@router.post("/queue/jobs/{job_id}/pause")
async def pause_job(job_id: str, caller: Writer) -> Response:
    """Keep a job from running until it is resumed."""
    return answer(
        {"success": True, **show_change(await caller.jobs.pause_job(name_job(caller, job_id)))}
    )


@router.post("/queue/jobs/{job_id}/resume")
async def resume_job(job_id: str, caller: Writer) -> Response:
    """Let a paused job run again."""
    return answer(
        {"success": True, **show_change(await caller.jobs.resume_job(name_job(caller, job_id)))}
    )


async def _wait(request: Request, caller: Reader, job: Job, seconds: float) -> Job:
    """The job when it has ended, or as it is when the time is up or nobody waits any more."""
    give_up_at = time.monotonic() + seconds
    while (left := give_up_at - time.monotonic()) > 0:
        try:
            return await caller.queue.wait(job.id, timeout=min(left, LOOK_SECONDS))
        except WaitTimeout:
            if request.app.state.is_stopping or await request.is_disconnected():
                break
    return await caller.jobs.get(job.id)
