"""Real PGMQ: a queue is a table of messages and one of its archive, both named in pgmq.meta."""

from __future__ import annotations

from typing import Final

from windrow.queue.copying import CopiedJob
from windrow.queue.job import JobState, NewJob
from windrow.services.migration.arriving import (
    DONE,
    Context,
    Left,
    Past,
    Reading,
    as_count,
    as_mapping,
    make_job,
    read_json,
    read_time,
)
from windrow.services.migration.origins import Row

MESSAGES: Final = "pgmq.q_"
ARCHIVE: Final = "pgmq.a_"
# A message may be read as often as one likes: nothing counts against it.
_ANY: Final = 1_000_000


def reading_of(table: str) -> Reading | None:
    """How a table of PGMQ is read, if it is one."""
    if table.startswith(MESSAGES):
        return Reading(table, ("msg_id",), ("msg_id",), from_message)
    if table.startswith(ARCHIVE):
        return Reading(table, ("msg_id",), ("archived_at", "msg_id"), from_archive)
    return None


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
