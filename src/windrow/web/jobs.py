"""Jobs: found by filters, one by one with all that is known of them, and failed ones by error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from windrow.errors import InvalidJob, WindrowError
from windrow.ids import is_id, made_at
from windrow.queue.job import Job, JobError, JobState, Step
from windrow.redaction import redact
from windrow.services.explaining import explain
from windrow.services.failing import count_errors, retry_failed, retry_pattern
from windrow.services.listing import list_page
from windrow.web.markdown import render_markdown
from windrow.web.pages import Look, counted, shown_payload

PAGE: Final = 50
MOST_ERRORS: Final = 100
_FILTERS: Final = ("queue", "kind", "state", "tenant", "group", "tag", "error")


@dataclass(frozen=True, slots=True)
class Moment:
    """A line of what happened to a job."""

    what: str
    at: datetime | None
    error: JobError | None = None


async def show_list(look: Look) -> Response:
    query = look.query
    text = query.get("text", "").strip()
    if is_id(text):
        return look.back(f"/ui/jobs/{text}")
    wanted: dict[str, Any] = {name: query[name] for name in _FILTERS if name in query}
    if text:
        is_key = await look.jobs.list(unique=text, limit=1)
        wanted |= {"unique": text} if is_key else {"text": text}
    page = await list_page(look.jobs, wanted, after=query.get("after"), limit=PAGE)
    more = {**query, "after": page.after} if page.after else None
    return look.render(
        "jobs.html",
        page=page,
        # What is hidden of a payload is not found in it either.
        jobs=[job for job in page.jobs if "text" not in wanted or _shows(job, text)],
        reached=made_at(page.after) if page.after and page.is_cut_short else None,
        states=list(JobState),
        queues=[info.name for info in await look.queue.queues()] if not look.viewer.tenant else [],
        next=f"/ui/jobs?{urlencode(more)}" if more else None,
    )


def _shows(job: Job, text: str) -> bool:
    return text.lower() in shown_payload(job).lower()


@dataclass(frozen=True, slots=True)
class Edit:
    """What somebody typed to change a job, and what is wrong with it."""

    payload: str
    priority: str
    why: str


async def show_one(look: Look) -> Response:
    return await _job_page(look)


async def _job_page(look: Look, edit: Edit | None = None) -> Response:
    job = await look.jobs.get(look.request.path_params["id"])
    return look.render(
        "job.html",
        status=400 if edit else 200,
        edit=edit,
        job=job,
        payload=redact(job.payload),
        history=_history(job, await look.queue.steps(job.id)),
        reasons=await explain(look.queue, job) if not look.viewer.tenant else [],
        document=_document(job),
        answer=_answer(job),
    )


async def change_one(look: Look) -> Response:
    form = await look.form("write")
    id = look.request.path_params["id"]
    here = f"/ui/jobs/{id}"
    match form.get("do"):
        case "retry":
            await look.jobs.retry(id)
            return look.back(here, "The job will run again")
        case "cancel":
            await look.jobs.cancel(id, "cancelled on the dashboard")
            return look.back(here, "The job is cancelled")
        case "pause":
            await look.jobs.pause_job(id)
            return look.back(here, "The job is paused")
        case "resume":
            await look.jobs.resume_job(id)
            return look.back(here, "The job goes on")
        case "delete":
            await look.jobs.delete(id)
            return look.back("/ui/jobs", "The job is deleted")
        case "edit":
            return await _edit(look, id, str(form.get("payload", "")), str(form.get("priority")))
    raise InvalidJob("there is no such thing to do with a job")


async def _edit(look: Look, id: str, payload: str, priority: str) -> Response:
    try:
        job = await look.jobs.edit(id, _changes(payload, priority))
        if job.is_finished:
            await look.jobs.retry(id)
    except WindrowError as error:
        return await _job_page(look, Edit(payload, priority, str(error)))
    return look.back(f"/ui/jobs/{id}", "The job is changed")


def _changes(payload: str, priority: str) -> dict[str, Any]:
    try:
        return {"payload": msgspec.json.decode(payload), "priority": int(priority)}
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidJob(f"the payload is no JSON, or the priority no number: {error}") from error


async def show_failed(look: Look) -> Response:
    counted = await count_errors(look.jobs, limit=MOST_ERRORS)
    return look.render(
        "failed.html",
        errors=counted.patterns,
        newest=counted.newest,
        reached=made_at(counted.reached) if counted.reached else None,
    )


async def change_failed(look: Look) -> Response:
    form = await look.form("write")
    if "pattern" in form:
        count = await retry_pattern(look.jobs, str(form["pattern"]))
    elif form.get("do") == "all":
        count = await retry_failed(look.jobs)
    else:
        raise InvalidJob("say which error's jobs are to run again")
    return look.back("/ui/failed", f"{counted(count, 'job', 'jobs')} will run again")


def _history(job: Job, steps: Sequence[Step]) -> list[Moment]:
    """What is known to have happened to a job, in its order."""
    moments = [Moment("made", job.created_at)]
    if job.run_at != job.created_at:
        moments.append(Moment("due", job.run_at))
    moments += [Moment("error", error.at, error=error) for error in job.errors]
    moments += [Moment(f"step {step.name}", step.at) for step in steps]
    if job.started_at is not None:
        begun = "begun" if job.runs <= 1 else f"begun, run {job.runs}"
        moments.append(Moment(begun, job.started_at))
    if job.finished_at is not None:
        moments.append(Moment("end", job.finished_at))
    return sorted(moments, key=lambda one: one.at or job.created_at)


def _document(job: Job) -> Any:
    """What a page or file became, to be read."""
    text = _converted(job).get("markdown")
    return render_markdown(text) if isinstance(text, str) and text.strip() else None


def _answer(job: Job) -> int | None:
    """What a page answered with: one with an error is completed all the same."""
    metadata = _converted(job).get("metadata")
    status = metadata.get("statusCode") if isinstance(metadata, dict) else None
    return status if isinstance(status, int) else None


def _converted(job: Job) -> dict[str, Any]:
    result: dict[str, Any] = job.result if isinstance(job.result, dict) else {}
    inner = result.get("document")
    return inner if isinstance(inner, dict) else result
