"""Tables that there is a dialect for, where they were tables of their own: unified_queue,
crawl_jobs, processing_jobs and those of PGMQ. A row becomes the job that the dialect shows as this
row. In PGMQ a queue is a table of messages and one of its archive, both named in pgmq.meta."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from windrow.errors import InvalidJob
from windrow.pipelines.knowledge.items import ItemType, kind_of, read_payload
from windrow.queue.copying import CopiedJob
from windrow.queue.job import JobState, NewJob
from windrow.services.migration.arriving import (
    DONE,
    Context,
    Left,
    Past,
    Reading,
    as_count,
    as_errors,
    as_mapping,
    as_priority,
    as_text,
    is_unreadable,
    make_job,
    read_json,
    read_time,
    spoilt,
)
from windrow.services.migration.origins import Row

_STATES: Final = {
    "done": JobState.COMPLETED,
    "completed": JobState.COMPLETED,
    "failed": JobState.FAILED,
    "cancelled": JobState.CANCELLED,
    "paused": JobState.PAUSED,
}
_OVER: Final = (JobState.COMPLETED, JobState.CANCELLED)
MESSAGES: Final = "pgmq.q_"
ARCHIVE: Final = "pgmq.a_"
# A message may be read as often as one likes: nothing counts against it.
_ANY: Final = 1_000_000


def from_unified_queue(row: Row, id: str, context: Context) -> CopiedJob | Left:
    state = _state(row)
    if state in _OVER and not context.with_finished:
        return Left(DONE)
    is_waiting = str(row.get("status") or "pending") == "pending"
    headers: dict[str, Any] = {"collection": as_text(row.get("collection")) or ""}
    if branch := as_text(row.get("branch")):
        headers["branch"] = branch
    if metadata := as_mapping(row.get("metadata")):
        headers["metadata"] = msgspec.json.encode(metadata).decode()  # as the dialect has it
    retries = as_count(row.get("retry_count"))
    kind = (as_text(row.get("item_type")), as_text(row.get("op")))
    new = NewJob(
        ".".join(filter(None, kind)) or "unknown",
        read_json(row.get("payload_json")),
        queue="unified_queue",
        priority=as_priority(row.get("priority"), 5),
        unique=as_text(row.get("idempotency_key")),
        tenant=as_text(row.get("tenant_id")),
        headers=headers,
        max_attempts=as_count(row.get("max_retries")) + 1,
    )
    past = Past(
        state=state,
        created_at=read_time(row.get("created_at")),
        run_at=read_time(row.get("lease_until")) if is_waiting else None,
        finished_at=read_time(row.get("updated_at")),
        attempts=retries,
        errors=as_errors(row.get("error_message")),
    )
    if state not in _OVER and (fault := _fault_of_item(row, kind)):
        return spoilt(context, id, new.kind, row, fault, past)
    return _job(row, "payload_json", id, context, new, past)


def _fault_of_item(row: Row, kind: tuple[str | None, str | None]) -> str | None:
    """Why no worker can run this item: the fault that would be refused if it was enqueued."""
    item_type, op = kind
    if item_type is None or op is None:
        return "it has no item_type, or no op"
    if is_unreadable(row.get("payload_json")):
        return "its payload_json is no JSON"
    if as_text(row.get("collection")) is None:
        return "it has no collection"
    try:
        kind_of(item_type, op)
        read_payload(cast(ItemType, item_type), read_json(row.get("payload_json")))
    except InvalidJob as error:
        return str(error)
    return None


def from_crawl_jobs(row: Row, id: str, context: Context) -> CopiedJob | Left:
    state = _state(row)
    if state in _OVER and not context.with_finished:
        return Left(DONE)
    source = as_text(row.get("source_id"))
    new = NewJob(
        "crawl",
        read_json(row.get("payload")),
        queue="crawl_jobs",
        priority=int(row.get("priority") or 0),
        tenant=as_text(row.get("user_id")),
        headers={"source_id": source} if source else None,
        max_attempts=as_count(row.get("max_retries")) + 1,
    )
    past = Past(
        state=state,
        created_at=read_time(row.get("created_at")),
        finished_at=read_time(row.get("completed_at")),
        attempts=as_count(row.get("retry_count")),
        errors=as_errors(row.get("error_message")),
        progress=min(as_count(row.get("progress_percentage")), 100) or None,
    )
    return _job(row, "payload", id, context, new, past)


def from_processing_jobs(row: Row, id: str, context: Context) -> CopiedJob | Left:
    state = _state(row)
    if state in _OVER and not context.with_finished:
        return Left(DONE)
    call, stage = as_text(row.get("call_id")), as_text(row.get("stage"))
    new = NewJob(
        stage or "unknown",
        read_json(row.get("payload")),
        queue="processing_jobs",
        tenant=as_text(row.get("org_id")),
        headers={"call_id": call} if call else None,
        max_attempts=as_count(row.get("max_attempts")) or 5,
    )
    past = Past(
        state=state,
        created_at=read_time(row.get("created_at")),
        run_at=read_time(row.get("available_at")),
        finished_at=read_time(row.get("updated_at")),
        attempts=as_count(row.get("attempts")),
        errors=as_errors(row.get("last_error")),
    )
    if stage is None and state not in _OVER:
        return spoilt(context, id, new.kind, row, "it has no stage", past)
    return _job(row, "payload", id, context, new, past)


def from_message(row: Row, id: str, context: Context) -> CopiedJob | Left:
    past = Past(
        created_at=read_time(row.get("enqueued_at")),
        run_at=read_time(row.get("vt")),
        runs=as_count(row.get("read_ct")),
        max_crashes=_ANY,
    )
    return make_job(context, id, _message(row, context.table.removeprefix(MESSAGES)), past)


def from_archive(row: Row, id: str, context: Context) -> CopiedJob | Left:
    if not context.with_finished:
        return Left(DONE)
    past = Past(
        state=JobState.COMPLETED,
        created_at=read_time(row.get("enqueued_at")),
        finished_at=read_time(row.get("archived_at")),
        runs=as_count(row.get("read_ct")),
        max_crashes=_ANY,
    )
    return make_job(context, id, _message(row, context.table.removeprefix(ARCHIVE)), past)


def _message(row: Row, queue: str) -> NewJob:
    headers = as_mapping(row.get("headers"))
    return NewJob("pgmq", read_json(row.get("message")), queue=queue, headers=headers or None)


def _job(row: Row, column: str, id: str, context: Context, new: NewJob, past: Past) -> CopiedJob:
    """Nobody can do what cannot be read; what is done need not be."""
    if past.state not in _OVER and is_unreadable(row.get(column)):
        return spoilt(context, id, new.kind, row, f"its {column} is no JSON", past)
    return make_job(context, id, new, past)


def _state(row: Row) -> JobState:
    """What somebody was at when it stopped is to be done."""
    return _STATES.get(str(row.get("status") or ""), JobState.READY)


READINGS: Final = [
    Reading("unified_queue", ("queue_id",), ("created_at", "queue_id"), from_unified_queue),
    Reading("crawl_jobs", ("id",), ("created_at", "id"), from_crawl_jobs),
    Reading("processing_jobs", ("id",), ("created_at", "id"), from_processing_jobs),
]


def reading_of(table: str) -> Reading | None:
    """How a table of PGMQ is read, if it is one."""
    if table.startswith(MESSAGES):
        return Reading(table, ("msg_id",), ("msg_id",), from_message)
    if table.startswith(ARCHIVE):
        return Reading(table, ("msg_id",), ("archived_at", "msg_id"), from_archive)
    return None
