"""The stream of events: read in order, removed from its front. `work.py` has the writing."""

from __future__ import annotations

from typing import Any, Final

from windrow.queue.records import EventBatch, EventFilter, EventPage
from windrow.queue.sqlite.rows import MICROSECONDS, to_json, to_time
from windrow.queue.sqlite.work import Work, pack_ids

ID_BYTES: Final = 16
_HEX: Final = 2 * ID_BYTES


def read_events(
    work: Work, after: int | None, wanted: EventFilter, span: int, limit: int
) -> EventPage:
    [(horizon, floor)] = work.rows("find_horizon", {})
    start = horizon if after is None else max(after, floor)
    until = min(horizon, start + span)
    rows = work.rows(
        "read_events",
        {
            "after": start,
            "until": until,
            "types": None if wanted.types is None else to_json(wanted.types),
            "queue": wanted.queue,
            "group_id": wanted.group,
            "job_id": None if wanted.job is None else pack_ids([wanted.job]),
            "names_jobs": wanted.names_jobs,
            "limit": limit,
        },
    )
    read_to = max(start, until) if len(rows) < limit else rows[-1][0]
    batches = tuple(map(_to_batch, rows))
    return EventPage(batches, read_to, floor, horizon, read_to < horizon)


def prune_events(work: Work, seconds: float, limit: int) -> bool:
    before = work.now - round(seconds * MICROSECONDS)
    [(last,)] = work.rows("find_last_event", {"before": before, "limit": limit})
    return last is None or work.run("raise_floor", {"seq": last}) < limit


def _to_batch(row: tuple[Any, ...]) -> EventBatch:
    seq, at, type, state, queue, kind, tenant, group_id, job_ids, details, jobs = row
    ids = _unpack_ids(job_ids)
    return EventBatch(
        seq, to_time(at), type, state, queue, kind, tenant, group_id, ids, details, jobs
    )


def _unpack_ids(packed: bytes | None) -> tuple[str, ...] | None:
    if packed is None:
        return None
    text = packed.hex()
    digits = (text[i : i + _HEX] for i in range(0, len(text), _HEX))
    return tuple(f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}" for d in digits)
