"""Jobs: found by filters, one by one with all that is known of them, and failed ones by error."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from windrow.errors import InvalidJob
from windrow.queue.ids import is_id, made_at
from windrow.queue.job import Job, JobState
from windrow.redaction import redact
from windrow.services.explaining import explain
from windrow.services.listing import list_page
from windrow.web.markdown import render_markdown
from windrow.web.pages import Look

PAGE: Final = 50
MOST_ERRORS: Final = 100
NEWEST_FAILED: Final = 20_000  # that are counted by error while somebody waits for the page
_FILTERS: Final = ("queue", "kind", "state", "tenant", "group", "tag", "error")


async def show_list(look: Look) -> Response:
    query = look.query
    text = query.get("text", "").strip()
    if is_id(text):
        return look.back(f"/ui/jobs/{text}")
    wanted: dict[str, Any] = {name: query[name] for name in _FILTERS if name in query}
    if text:
        wanted["unique"] = text
    page = await list_page(look.jobs, wanted, after=query.get("after"), limit=PAGE)
    more = {**query, "after": page.after} if page.after else None
    return look.render(
        "jobs.html",
        page=page,
        reached=made_at(page.after) if page.after else None,
        states=list(JobState),
        queues=[info.name for info in await look.queue.queues()] if not look.viewer.tenant else [],
        next=f"/ui/jobs?{urlencode(more)}" if more else None,
    )


async def show_one(look: Look) -> Response:
    job = await look.jobs.get(look.request.path_params["id"])
    return look.render(
        "job.html",
        job=job,
        payload=redact(job.payload),
        steps=await look.queue.steps(job.id),
        reasons=await explain(look.queue, job) if not look.viewer.tenant else [],
        document=_document(job),
    )


async def change_one(look: Look) -> Response:
    form = await look.form("write")
    id = look.request.path_params["id"]
    here = f"/ui/jobs/{id}"
    match form.get("do"):
        case "retry":
            await look.jobs.retry(id)
            return look.back(here, "it will run again")
        case "cancel":
            await look.jobs.cancel(id, "cancelled on the dashboard")
            return look.back(here, "it is cancelled")
        case "pause":
            await look.jobs.pause_job(id)
            return look.back(here, "it is paused")
        case "resume":
            await look.jobs.resume_job(id)
            return look.back(here, "it goes on")
        case "delete":
            await look.jobs.delete(id)
            return look.back("/ui/jobs", "it is deleted")
        case "edit":
            return await _edit(look, id, str(form.get("payload", "")), str(form.get("priority")))
    raise InvalidJob("there is no such thing to do with a job")


async def _edit(look: Look, id: str, payload: str, priority: str) -> Response:
    try:
        changes = {"payload": msgspec.json.decode(payload), "priority": int(priority)}
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidJob(f"the payload is no JSON, or the priority no number: {error}") from error
    job = await look.jobs.edit(id, changes)
    if job.is_finished:
        await look.jobs.retry(id)
    return look.back(f"/ui/jobs/{id}", "it is changed")


async def show_failed(look: Look) -> Response:
    if look.viewer.tenant:
        return look.back("/ui/jobs?state=failed")
    errors = await look.queue.errors(limit=MOST_ERRORS, newest=NEWEST_FAILED)
    return look.render("failed.html", errors=errors, newest=NEWEST_FAILED)


async def retry_failed(look: Look) -> Response:
    form = await look.form("write")
    error = str(form.get("error", ""))
    if not error:
        raise InvalidJob("say which error's jobs are to run again")
    count = await look.queue.retry_all(error=error, tenant=look.viewer.tenant)
    return look.back("/ui/failed", f"{count} jobs will run again")


def _document(job: Job) -> Any:
    """What a page or file became, to be read."""
    result: dict[str, Any] = job.result if isinstance(job.result, dict) else {}
    inner = result.get("document")
    text = (inner if isinstance(inner, dict) else result).get("markdown")
    return render_markdown(text) if isinstance(text, str) and text.strip() else None
