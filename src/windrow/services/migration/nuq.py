"""NuQ's tables: pages of crawls, their groups, and what follows the end of a crawl.

A group comes with all of its jobs, finished ones included, in one transaction: its counts are then
true at each moment, and it ends when the last of them does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

import msgspec

from windrow.queue.checks import SizeLimits, to_row
from windrow.queue.copying import CopiedGroup, CopiedJob
from windrow.queue.importing import Arrival
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
    checksum,
    make_job,
    read_json,
    read_time,
)
from windrow.services.migration.origins import Origin, Row, Table

SCRAPE: Final = "nuq.queue_scrape"
BACKLOG: Final = "nuq.queue_scrape_backlog"
FINISHED: Final = "nuq.queue_crawl_finished"
GROUPS: Final = "nuq.group_crawl"
_OF_GROUPS: Final = (SCRAPE, BACKLOG)
_LONGEST_MS: Final = 10 * 365 * 86_400_000
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


async def group_arrivals(
    origin: Origin, found: Sequence[Table], groups: Mapping[str, Row], context: Context
) -> AsyncIterator[list[Arrival]]:
    """Of each of these groups the group and all of its jobs."""
    members: dict[str, list[tuple[Row, CopiedJob]]] = {id: [] for id in groups}
    for table in found:
        if not groups or table.name not in _OF_GROUPS:
            continue
        async for rows in origin.read(table, ["priority", "created_at", "id"]):
            for row in rows:
                group = as_text(row.get("group_id"))
                if group in members:
                    job = to_job(row, context.id_of(str(row["id"])), context, group)
                    members[group].append((row, job))
    context.enter(GROUPS)
    for id, row in groups.items():
        yield _group_arrivals(id, row, members.pop(id), context)


def _group_arrivals(
    id: str, row: Row, members: Sequence[tuple[Row, CopiedJob]], context: Context
) -> list[Arrival]:
    pending = sum(job.state not in FINAL for _, job in members)
    # The last of its jobs has ended, and NuQ had not looked since: it ends as it comes.
    is_ending = is_active(row) and not pending
    group = _to_group(row, [job for _, job in members], context, is_ending=is_ending)
    arrivals = [Arrival(key=f"{GROUPS}/{id}", checksum=checksum(row), item=group)]
    arrivals += [
        Arrival(key=member_key(job.id), checksum=checksum(said), item=job) for said, job in members
    ]
    if is_ending:
        key = f"{id}/{FINISHED}"
        job = make_job(context, context.id_of(key), _finish(id, group.tenant), Past())
        item = msgspec.structs.replace(job, unit=id)
        arrivals.append(Arrival(key=f"{GROUPS}/{key}", checksum=checksum(row), item=item))
    return arrivals


def group_of(key: str) -> str:
    """The group that came under a key."""
    return key.removeprefix(f"{GROUPS}/")


def is_group(key: str) -> bool:
    """Whether it is a group, and none of its jobs, that comes under a key."""
    return key.startswith(f"{GROUPS}/") and "/" not in group_of(key)


def member_key(job_id: str) -> str:
    """The key under which a job came with its group."""
    return f"{SCRAPE}/{job_id}"


def _finish(group: str, tenant: str | None) -> NewJob:
    """What follows the end of a crawl."""
    return NewJob(
        FINISHED,
        {},
        queue=FINISHED,
        priority=0,
        tenant=tenant,
        unique=f"{GROUPS}/{group}",
        max_attempts=1,
        max_crashes=_MAX_CRASHES,
    )


def _to_group(
    row: Row, members: Sequence[CopiedJob], context: Context, *, is_ending: bool
) -> CopiedGroup:
    id = str(row["id"])
    owner = as_text(row.get("owner_id"))
    tenant = None if owner == _NOBODY else owner
    status = "completed" if is_ending else str(row.get("status"))
    states = [job.state for job in members]
    ttl = as_count(row.get("ttl"), most=_LONGEST_MS) // 1000
    expires = context.now + timedelta(seconds=ttl) if is_ending else None
    return CopiedGroup(
        id=id,
        unit=id,
        state=status,
        is_paused=False,
        is_open=False,
        is_cancelled=status == "cancelled",
        reason=None,
        members=len(members),
        pending=sum(state not in FINAL for state in states),
        completed=states.count(JobState.COMPLETED),
        failed=states.count(JobState.FAILED),
        cancelled=states.count(JobState.CANCELLED),
        root=None,
        tenant=tenant,
        finish_job=msgspec.json.encode(to_row(_finish(id, tenant), SizeLimits())).decode(),
        retention_seconds=ttl or None,
        created_at=read_time(row.get("created_at")) or context.now,
        ended_at=None if status == "active" else context.now,
        expires_at=read_time(row.get("expires_at")) or expires,
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


def is_active(group: Row) -> bool:
    return str(group["status"]) == "active"


def is_member(table: str, row: Row, groups: Collection[str]) -> bool:
    """Whether a row comes with its group, and not by itself."""
    return table in _OF_GROUPS and as_text(row.get("group_id")) in groups


READINGS: Final = [
    Reading(SCRAPE, ("id",), ("priority", "created_at", "id"), from_scrape),
    Reading(BACKLOG, ("id",), ("created_at", "id"), from_scrape),
    Reading(FINISHED, ("id",), ("created_at", "id"), from_crawl_finished),
]
