"""NuQ's tables: pages of crawls, their groups, and what follows the end of a crawl.

A group comes with all of its jobs, finished ones included, in one transaction: its counts are then
true at each moment, and it ends when the last of them does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from windrow.queue.checks import SizeLimits, to_row
from windrow.queue.copying import CopiedGroup, CopiedJob
from windrow.queue.job import FINAL, JobState, NewJob
from windrow.services.migration.arriving import (
    DONE,
    Context,
    Left,
    Past,
    Reading,
    as_count,
    as_errors,
    as_text,
    make_job,
    read_json,
    read_time,
)
from windrow.services.migration.origins import Row

SCRAPE: Final = "nuq.queue_scrape"
BACKLOG: Final = "nuq.queue_scrape_backlog"
FINISHED: Final = "nuq.queue_crawl_finished"
GROUPS: Final = "nuq.group_crawl"
_NOBODY: Final = "00000000-0000-0000-0000-000000000000"
_STATES: Final = {"completed": JobState.COMPLETED, "failed": JobState.FAILED}
_MAX_CRASHES: Final = 10  # stalls, of NuQ


def from_scrape(row: Row, id: str, context: Context) -> CopiedJob | Left:
    """A job by itself; those of groups come with them."""
    state = _state(row)
    if state is JobState.COMPLETED and not context.with_finished:
        return Left(DONE)
    return to_job(row, id, context)


def from_crawl_finished(row: Row, id: str, context: Context) -> CopiedJob | Left:
    if _state(row) in FINAL and not context.with_finished:
        return Left(DONE)
    group = as_text(row.get("group_id"))
    new = _new(row, FINISHED, unique=f"{GROUPS}/{group}/{id}" if group else None)
    return make_job(context, id, new, _past(row))


def to_job(row: Row, id: str, context: Context, group: str | None = None) -> CopiedJob:
    past = _past(row)
    return make_job(context, id, _new(row, SCRAPE), replace(past, group=group))


def to_group(row: Row, members: Sequence[CopiedJob], context: Context) -> CopiedGroup:
    id = str(row["id"])
    owner = as_text(row.get("owner_id"))
    tenant = None if owner == _NOBODY else owner
    status = str(row.get("status"))
    states = [job.state for job in members]
    pending = sum(state not in FINAL for state in states)
    finish = to_row(
        NewJob(
            FINISHED,
            {},
            queue=FINISHED,
            priority=0,
            tenant=tenant,
            unique=f"{GROUPS}/{id}",
            max_attempts=1,
            max_crashes=_MAX_CRASHES,
        ),
        SizeLimits(),
    )
    is_active = status == "active"
    return CopiedGroup(
        id=id,
        unit=id,
        state=status,
        is_paused=False,
        is_open=False,
        is_cancelled=status == "cancelled",
        reason=None,
        members=len(members),
        pending=pending,
        completed=states.count(JobState.COMPLETED),
        failed=states.count(JobState.FAILED),
        cancelled=states.count(JobState.CANCELLED),
        root=None,
        tenant=tenant,
        finish_job=msgspec.json.encode(finish).decode(),
        retention_seconds=as_count(row.get("ttl")) // 1000 or None,
        created_at=read_time(row.get("created_at")) or context.now,
        ended_at=None if is_active else context.now,
        expires_at=read_time(row.get("expires_at")),
    )


def _new(row: Row, table: str, unique: str | None = None) -> NewJob:
    channel = as_text(row.get("listen_channel_id"))
    return NewJob(
        table,
        read_json(row.get("data")),
        queue=table,
        priority=-int(row.get("priority") or 0),
        tenant=as_text(row.get("owner_id")),
        unique=unique,
        headers={"nuq_listen_channel_id": channel} if channel else None,
        max_attempts=1,
        max_crashes=_MAX_CRASHES,
    )


def _past(row: Row) -> Past:
    return Past(
        state=_state(row),
        created_at=read_time(row.get("created_at")),
        finished_at=read_time(row.get("finished_at")),
        crashes=as_count(row.get("stalls")),
        max_crashes=_MAX_CRASHES,
        errors=as_errors(row.get("failedreason")),
        result=read_json(row.get("returnvalue")),
    )


def _state(row: Row) -> JobState:
    return _STATES.get(str(row.get("status") or ""), JobState.READY)


def is_member(row: Row, groups: Collection[str | None]) -> bool:
    return as_text(row.get("group_id")) in groups


READINGS: Final = [
    Reading(SCRAPE, ("id",), ("priority", "created_at", "id"), from_scrape),
    Reading(BACKLOG, ("id",), ("created_at", "id"), from_scrape),
    Reading(FINISHED, ("id",), ("created_at", "id"), from_crawl_finished),
]
