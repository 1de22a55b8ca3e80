"""Adding something and seeing it through, for somebody who waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from windrow.catalog import Catalog
from windrow.catalog.documents import Pending
from windrow.pipelines.index.payloads import WRITE
from windrow.queue.job import Job, JobState
from windrow.queue.queue import Queue
from windrow.services.attending import TAKEN, Attendance, Interrupted, attend
from windrow.services.knowledge import (
    Added,
    AddOptions,
    SourceInfo,
    add,
    add_text,
    find_source,
    get_info,
    is_settled,
    refresh_source,
    remove_source,
)
from windrow.services.operations import is_awaited, look_at_pending
from windrow.services.working import COMMAND_HANDLERS
from windrow.settings import Settings

LOOKED_AT: Final = 1000  # contents that documents wait for
Progress = Callable[[SourceInfo], None]


@dataclass(frozen=True, slots=True)
class Lost:
    """Documents of a source that the index does not have, and that nobody will give it."""

    count: int
    refused: int  # of them: those that are not tried again before they change, or the model does
    why: str | None  # of one of them


@dataclass(frozen=True, slots=True)
class AddRun:
    info: SourceInfo
    job: Job
    is_interrupted: bool
    lost: Lost | None = None


async def run_add(
    settings: Settings,
    what: str,
    options: AddOptions,
    show: Progress,
    *,
    text: str | None = None,
    waits: bool = True,
    concurrency: int = 10,
) -> AddRun:
    """Add what was named, or a text, and wait until it can be found."""
    async with attend(settings, concurrency=concurrency, own=COMMAND_HANDLERS) as attendance:
        queue = attendance.queue
        added = await (
            add(queue, what, options) if text is None else add_text(queue, text, options)
        )
        done = await _see_through(attendance, added, show, waits=waits)
        if added.is_new and _was_dropped(done.job) and not done.info.documents:
            await remove_source(queue, added.source)  # it was never there
        return done


async def run_refresh(
    settings: Settings, named: str, show: Progress, *, tenant: str | None, concurrency: int = 10
) -> AddRun:
    """Have a source looked at again, and wait for it."""
    async with attend(settings, concurrency=concurrency, own=COMMAND_HANDLERS) as attendance:
        found = await find_source(attendance.queue, named, tenant=tenant)
        job_id = await refresh_source(attendance.queue, found.source)
        added = Added(found.source, job_id, is_new=False)
        return await _see_through(attendance, added, show, waits=True)


async def _see_through(
    attendance: Attendance, added: Added, show: Progress, *, waits: bool
) -> AddRun:
    queue, source = attendance.queue, added.source
    is_interrupted = False
    try:
        while waits:
            # Before the counts: what a job has put is in those that are read after its end.
            has_ended = await _has_ended(queue, added)
            info = await get_info(queue, source.tenant, source.id)
            show(info)
            if has_ended and await _is_found(queue, info):
                break
            await attendance.pause()
    except Interrupted:
        is_interrupted = True
    info = await get_info(queue, source.tenant, source.id)
    lost = await _find_lost(queue, info)
    return AddRun(info, await queue.get(added.job_id), is_interrupted, lost)


async def _has_ended(queue: Queue, added: Added) -> bool:
    job = await queue.get(added.job_id)
    return job.is_finished and await is_settled(queue, added.source.tenant, added.source.id)


async def _is_found(queue: Queue, info: SourceInfo) -> bool:
    """Whether all is in the index that it takes, or nobody is there to put it in."""
    if not info.pending:
        return True
    if not any(one.takes(*TAKEN["index"]) for one in await queue.workers()):
        return True
    return not await is_awaited(queue, (await _pending(queue, info)).contents)


async def _find_lost(queue: Queue, info: SourceInfo) -> Lost | None:
    pending, is_coming = await look_at_pending(queue, partial(_pending, queue, info))
    count = pending.refused if is_coming else pending.waiting
    if not count:
        return None
    why = pending.why
    if why is None and pending.contents:
        why = await _why_given_up(queue, pending.contents[0])
    return Lost(count, pending.refused, why)


async def _pending(queue: Queue, info: SourceInfo) -> Pending:
    source = info.source
    return await Catalog(queue.database).documents.count_pending(
        source.tenant, source.collection, source.id, limit=LOOKED_AT
    )


async def _why_given_up(queue: Queue, content: str) -> str | None:
    unique = f"{WRITE}:{content}"
    for job in await queue.list(unique=unique, state=JobState.FAILED, limit=1):
        return (await queue.get(job.id)).error
    return None


def why_failed(run: AddRun) -> str | None:
    """Why there is nothing of what was added, if so."""
    return run.job.error or _was_dropped(run.job)


def _was_dropped(job: Job) -> str | None:
    """Why there was nothing to be had, if that is so."""
    result = job.result if isinstance(job.result, dict) else {}
    dropped = result.get("dropped")
    return str(dropped) if dropped else None
