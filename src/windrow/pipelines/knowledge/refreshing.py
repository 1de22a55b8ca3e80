"""`source.refresh`: have a source looked at again, whatever it is, with the options it was added
with. Schedules enqueue it (`refresh_seconds`), and people do."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.sources import SourceRow
from windrow.errors import ScheduleNotFound
from windrow.pipelines.index.awaiting import write_awaited
from windrow.pipelines.knowledge.items import QUEUE, FilePayload, new_item
from windrow.pipelines.knowledge.sites import crawl_job, find_crawl, page_job
from windrow.pipelines.web.payloads import BudgetPayload
from windrow.queue.job import Job, NewJob, Priority
from windrow.queue.outcome import Done
from windrow.queue.queue import Queue

REFRESH: Final = "source.refresh"


class RefreshPayload(msgspec.Struct, frozen=True):
    source: str


def refresh_job(source: SourceRow, *, priority: int = Priority.COMMAND) -> NewJob:
    """One that waits is enough; beside one that runs another may wait."""
    return NewJob(
        REFRESH,
        {"source": source.id},
        queue=QUEUE,
        priority=priority,
        tenant=source.tenant,
        unique=f"{REFRESH}:{source.id}",
        on_conflict="follow",
        tags=(f"source:{source.id}",),
    )


def schedule_name(source: SourceRow) -> str:
    return f"refresh:{source.tenant or ''}:{source.id}"


async def unplan_refresh(queue: Queue, source: SourceRow) -> None:
    """Have a source not looked at again by itself; as it is removed, or wanted no more."""
    if queue.store.capabilities.schedules:
        with suppress(ScheduleNotFound):
            await queue.unschedule(schedule_name(source))


async def refresh(queue: Queue, job: Job, payload: RefreshPayload) -> Done:
    found = await Catalog(queue.database).sources.get(job.tenant or "", [payload.source])
    if not found:
        return Done({"dropped": f"there is no source {payload.source}"})
    await write_awaited(queue, found[0])  # what the index once gave up is tried again, too
    running = await find_crawl(queue, job.tenant, payload.source)
    if running is not None:
        return Done({"running": running})
    then = source_jobs(found[0], priority=job.priority)
    return Done({"jobs": [one.id for one in then if one.id]}, then=then)


def source_jobs(
    source: SourceRow, *, priority: int, budget: BudgetPayload | None = None
) -> list[NewJob]:
    """The jobs that look at a source again; none for what can be had only once. What is fetched for
    them may use this of their tenant's quota."""
    match source.kind:
        case "site":
            crawl, scrape = _part(source, "crawl"), _part(source, "scrape")
            return [crawl_job(source, crawl, scrape, budget=budget)]
        case "page":
            return [page_job(source, _part(source, "scrape"), budget=budget)]
        case "folder":
            return [_item(source, "folder", "scan", {"folder_path": source.uri}, priority)]
        case "project":
            return [_item(source, "project", "scan", {"project_root": source.uri}, priority)]
        case "file":
            path = FilePayload(file_path=source.uri)
            return [_item(source, "file", "update", msgspec.to_builtins(path), priority)]
        case "library":
            payload = {
                "library_name": source.options.get("library_name", source.title),
                "library_version": source.options.get("library_version", ""),
            }
            return [_item(source, "library", "update", payload, priority)]
    return []


def _item(
    source: SourceRow, item_type: Any, op: Any, payload: Mapping[str, Any], priority: int
) -> NewJob:
    return new_item(
        item_type,
        op,
        source.collection,
        {**payload, "source": source.id},
        tenant=source.tenant,
        priority=priority,
    )


def _part(source: SourceRow, name: str) -> Mapping[str, Any]:
    part: Mapping[str, Any] = source.options.get(name, {})
    return part
