"""The ingestion tables that unified_queue replaced, in all their variants, and their dead letters.

Which columns there are differs from version to version, so each is looked at by what it has:
`retry_from` is a path in one version and a time in another, and most have no status.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec

from windrow.errors import InvalidJob
from windrow.pipelines.knowledge.items import MAX_ATTEMPTS, ItemType, Operation, kind_of, new_item
from windrow.queue.copying import CopiedJob
from windrow.queue.job import JobState, Priority
from windrow.services.migration.arriving import (
    DONE,
    Context,
    Left,
    Past,
    Reading,
    Wish,
    as_count,
    as_errors,
    as_mapping,
    as_priority,
    as_text,
    make_job,
    read_json,
    read_time,
    spoilt,
)
from windrow.services.migration.origins import Row

# What processing_queue's four levels were read as.
_LEVELS: Final = {1: 2, 2: 5, 3: 7, 4: 9}
WEIGHED: Final = "it is only looked at"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)  # a row without a time is the oldest
_USUAL_BRANCH: Final = "main"  # which a row without one was taken to be of


def from_ingestion_queue(row: Row, id: str, context: Context) -> CopiedJob | Left:
    state = _state(row.get("status"))
    if state is JobState.COMPLETED and not context.with_finished:
        return Left(DONE)
    metadata = as_mapping(row.get("metadata"))
    retry_from = row.get("retry_from")
    if retry_from is not None and read_time(retry_from) is None:
        metadata["retry_from"] = str(retry_from)
    past = Past(
        state=state,
        created_at=read_time(row.get("queued_timestamp")),
        run_at=read_time(row.get("scheduled_at")) or read_time(retry_from),
        attempts=as_count(row.get("retry_count")),
        errors=_error(context, row.get("error_message_id")),
    )
    return _file(row, id, context, past, metadata, path=row.get("file_absolute_path"))


def from_content_ingestion_queue(row: Row, id: str, context: Context) -> CopiedJob | Left:
    state = _state(row.get("status"))
    if state is JobState.COMPLETED and not context.with_finished:
        return Left(DONE)
    main_tag, full_tag = as_text(row.get("main_tag")), as_text(row.get("full_tag"))
    branch = ""
    if main_tag and full_tag and full_tag.startswith(f"{main_tag}."):
        branch = full_tag.removeprefix(f"{main_tag}.")
    past = Past(
        state=state,
        created_at=read_time(row.get("created_at")),
        finished_at=read_time(row.get("completed_at")) or read_time(row.get("updated_at")),
        attempts=as_count(row.get("retry_count")),
        errors=as_errors(row.get("error_message")),
    )
    payload = {
        "content": row.get("content"),
        "source_type": as_text(row.get("source_type")) or "scratchbook",
        "main_tag": main_tag,
        "full_tag": full_tag,
    }
    return _item(
        row,
        id,
        context,
        past,
        as_mapping(row.get("metadata")),
        kind=("content", "ingest"),
        payload=payload,
        collection=row.get("collection"),
        tenant=main_tag,
        branch=branch,
        priority=as_priority(row.get("priority"), Priority.NOTE),
        max_attempts=as_count(row.get("max_retries")) + 1,
    )


def from_processing_queue(row: Row, id: str, context: Context) -> CopiedJob | Left:
    metadata = as_mapping(row.get("metadata"))
    past = Past(
        created_at=read_time(row.get("created_at")),
        run_at=read_time(row.get("scheduled_at")),
        attempts=as_count(row.get("attempts")),
    )
    said = {
        **row,
        "operation": metadata.get("operation") or "ingest",
        "tenant_id": metadata.get("tenant_id"),
        "branch": metadata.get("branch"),
        "collection_name": row.get("collection"),
        "priority": _LEVELS.get(as_count(row.get("priority")), Priority.NORMAL),
    }
    return _file(said, id, context, past, metadata, path=row.get("file_path"))


def from_missing_metadata_queue(row: Row, id: str, context: Context) -> CopiedJob | Left:
    metadata = as_mapping(row.get("metadata"))
    metadata["missing_tools"] = read_json(row.get("missing_tools"))
    past = Past(
        created_at=read_time(row.get("queued_timestamp")),
        attempts=as_count(row.get("retry_count")),
    )
    return _file(row, id, context, past, metadata, path=row.get("file_absolute_path"))


def from_cumulative_deletions_queue(row: Row, id: str, context: Context) -> CopiedJob | Left:
    is_done = row.get("deleted_at") is not None
    state = JobState.COMPLETED if is_done else _state(row.get("status"))
    if state is JobState.COMPLETED and not context.with_finished:
        return Left(DONE)
    past = Past(
        state=state,
        created_at=read_time(row.get("marked_for_deletion_at")),
        finished_at=read_time(row.get("deleted_at")),
        run_at=read_time(row.get("deletion_scheduled_at")),
        attempts=as_count(row.get("retry_count")),
        errors=as_errors(row.get("error_message")),
    )
    said = {**row, "operation": "delete"}
    return _file(said, id, context, past, {}, path=row.get("file_absolute_path"))


def from_dead_letter_queue(row: Row, id: str, context: Context) -> CopiedJob | Left:
    """Both versions: of files alone, and of every type of item."""
    if row.get("reprocessed_at") is not None:
        return Left("it was done again later")
    past = Past(
        state=JobState.FAILED,
        created_at=read_time(row.get("original_queued_at"))
        or read_time(row.get("moved_to_dlq_at")),
        finished_at=read_time(row.get("failed_at")) or read_time(row.get("final_failure_at")),
        attempts=as_count(row.get("retry_count")),
        errors=as_errors(row.get("error_message") or row.get("error_category")),
    )
    metadata = as_mapping(row.get("metadata"))
    metadata["error_category"] = row.get("error_category")
    if "payload_json" not in row:
        said = {**row, "priority": row.get("original_priority")}
        return _file(said, id, context, past, metadata, path=row.get("file_path"))
    return _item(
        row,
        id,
        context,
        past,
        metadata,
        kind=(as_text(row.get("item_type")) or "", as_text(row.get("op")) or ""),
        payload=as_mapping(row.get("payload_json")),
        collection=row.get("collection"),
        tenant=as_text(row.get("tenant_id")),
        branch=as_text(row.get("branch")) or "",
        priority=Priority.NORMAL,
    )


def _file(
    row: Row, id: str, context: Context, past: Past, metadata: dict[str, Any], *, path: Any
) -> CopiedJob | Left:
    return _item(
        row,
        id,
        context,
        past,
        metadata,
        kind=("file", as_text(row.get("operation")) or ""),
        payload={"file_path": path},
        collection=row.get("collection_name"),
        tenant=as_text(row.get("tenant_id")),
        branch=as_text(row.get("branch")) or "",
        priority=as_priority(row.get("priority"), Priority.NORMAL),
    )


def _item(
    row: Row,
    id: str,
    context: Context,
    past: Past,
    metadata: dict[str, Any],
    *,
    kind: tuple[str, str],
    payload: Mapping[str, Any],
    collection: Any,
    tenant: str | None,
    branch: str,
    priority: int,
    max_attempts: int = MAX_ATTEMPTS,
) -> CopiedJob | Left:
    try:
        kind_of(*kind)
        new = new_item(
            cast(ItemType, kind[0]),
            cast(Operation, kind[1]),
            as_text(collection) or "",
            payload,
            tenant=tenant,
            branch=branch,
            priority=priority,
            metadata={**metadata, "migrated_from": context.table},
        )
    except InvalidJob as error:
        return spoilt(context, id, ".".join(filter(None, kind)), row, str(error), past)
    unique = new.unique
    if past.state is JobState.READY:
        wanted = branch or _USUAL_BRANCH
        if context.is_weighing:
            context.weigh(new, wanted, _wish(id, new.kind, past, context.now))
            return Left(WEIGHED)
        if left := context.choose(new, wanted, id):
            return left
        unique = context.unique_of(new, wanted)
    new = msgspec.structs.replace(
        new, unique=unique, max_attempts=max_attempts, on_conflict="return"
    )
    return make_job(context, id, new, past)


def _wish(id: str, kind: str, past: Past, now: datetime) -> Wish:
    return Wish(id, kind, past.created_at or _LONG_AGO, past.run_at is None or past.run_at <= now)


def _state(status: Any) -> JobState:
    """Of a row without a status, or one that somebody was at: to be done."""
    text = str(status or "").lower()
    if text in ("completed", "done"):
        return JobState.COMPLETED
    return JobState.FAILED if text == "failed" else JobState.READY


def _error(context: Context, message_id: Any) -> list[str]:
    text = None if message_id is None else context.messages.get(message_id)
    return [] if text is None else [text]


READINGS: Final = [
    Reading(
        "ingestion_queue",
        ("queue_id", ("file_absolute_path", "tenant_id", "branch")),
        ("queued_timestamp",),
        from_ingestion_queue,
    ),
    Reading(
        "content_ingestion_queue",
        ("queue_id",),
        ("created_at", "queue_id"),
        from_content_ingestion_queue,
    ),
    Reading("processing_queue", ("queue_id",), ("created_at", "queue_id"), from_processing_queue),
    Reading(
        "missing_metadata_queue",
        ("queue_id",),
        ("queued_timestamp", "queue_id"),
        from_missing_metadata_queue,
    ),
    Reading(
        "cumulative_deletions_queue",
        ("id",),
        ("marked_for_deletion_at", "id"),
        from_cumulative_deletions_queue,
    ),
    Reading(
        "dead_letter_queue", ("dlq_id", "id"), ("failed_at", "dlq_id", "id"), from_dead_letter_queue
    ),
]
NAMES: Final = frozenset(reading.name for reading in READINGS)
