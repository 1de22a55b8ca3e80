"""Pipelines by stage, schedules, settings and API keys."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from starlette.responses import Response

from windrow.errors import InvalidSchedule
from windrow.queue.job import JobState
from windrow.services.database import without_password
from windrow.settings import Settings
from windrow.web.pages import Look

# Stages in their order, each with the queue it waits in.
PIPELINES: Final = {
    "Pages": (("crawl and scrape", "web"), ("index", "index")),
    "Files and notes": (("scan and read", "unified_queue"), ("index", "index")),
    "Videos": (("scrape", "scrape_jobs"), ("enrich", "enrich_jobs"), ("index", "index")),
    "Calls": (("extract, transcribe, analyse", "processing_jobs"), ("index", "index")),
    "Webhooks": (("send", "webhooks"),),
}
COUNTED: Final = (JobState.READY, JobState.ACTIVE, JobState.SCHEDULED, JobState.FAILED)


async def show_pipelines(look: Look) -> Response:
    counts = {info.name: info.counts for info in await look.jobs.list_queues()}
    flows = {
        name: [
            (stage, queue, [(state, counts.get(queue, {}).get(state, 0)) for state in COUNTED])
            for stage, queue in stages
        ]
        for name, stages in PIPELINES.items()
    }
    return look.render("pipelines.html", flows=flows)


async def show_schedules(look: Look) -> Response:
    schedules = [
        one for one in await look.queue.schedules() if look.viewer.tenant in (None, one.job.tenant)
    ]
    return look.render("schedules.html", schedules=schedules)


async def change_schedule(look: Look) -> Response:
    form = await look.form("admin")
    name = str(form.get("name", ""))
    known = {one.name: one for one in await look.queue.schedules()}
    if name not in known or look.viewer.tenant not in (None, known[name].job.tenant):
        raise InvalidSchedule(f"there is no schedule {name!r}")
    if form.get("do") == "pause":
        await look.queue.pause_schedule(name)
        return look.back("/ui/schedules", f"{name} is paused")
    await look.queue.resume_schedule(name)
    return look.back("/ui/schedules", f"{name} goes on")


async def show_settings(look: Look) -> Response:
    settings: Settings = look.request.app.state.settings
    shown = []
    if look.viewer.tenant is None and look.viewer.may("admin"):
        shown = [
            (item.name, _shown(settings, item.name, item.repr), item.metadata["doc"])
            for item in fields(Settings)
        ]
    keys = await look.queue.store.list_api_keys() if shown else []
    return look.render("settings.html", settings=shown, keys=keys)


def _shown(settings: Settings, name: str, is_open: bool) -> str:
    """Secrets, and passwords in addresses, are not."""
    value = getattr(settings, name)
    if not is_open:
        return "set" if value else "not set"
    return without_password(value) if isinstance(value, str) and "://" in value else str(value)
