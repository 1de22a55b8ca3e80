"""Procrastinate's table: the task is the kind, its arguments are the payload."""

from __future__ import annotations

from typing import Any, Final

from windrow.queue.copying import CopiedJob
from windrow.queue.job import DEFAULT_PRIORITY, JobState, NewJob
from windrow.services.migration.arriving import (
    DONE,
    Context,
    Left,
    Past,
    Reading,
    as_count,
    as_text,
    make_job,
    read_json,
    read_time,
)
from windrow.services.migration.origins import Row

TABLE: Final = "procrastinate_jobs"
_STATES: Final = {
    "succeeded": JobState.COMPLETED,
    "failed": JobState.FAILED,
    "cancelled": JobState.CANCELLED,
    "aborted": JobState.CANCELLED,
}


def from_job(row: Row, id: str, context: Context) -> CopiedJob | Left:
    state = _STATES.get(str(row.get("status")), JobState.READY)
    if state in (JobState.COMPLETED, JobState.CANCELLED) and not context.with_finished:
        return Left(DONE)
    is_waiting = row.get("status") == "todo"  # for these alone a queueing lock is kept
    headers: dict[str, Any] = {"procrastinate_id": str(row["id"])}
    if lock := as_text(row.get("lock")):
        headers["procrastinate_lock"] = lock
    new = NewJob(
        as_text(row.get("task_name")) or "unknown",
        read_json(row.get("args")),
        queue=as_text(row.get("queue_name")) or "default",
        priority=DEFAULT_PRIORITY + int(row.get("priority") or 0),
        unique=as_text(row.get("queueing_lock")) if is_waiting else None,
        headers=headers,
    )
    past = Past(
        state=state,
        run_at=read_time(row.get("scheduled_at")),
        attempts=as_count(row.get("attempts")),
    )
    return make_job(context, id, new, past)


READINGS: Final = [Reading(TABLE, ("id",), ("id",), from_job)]
