"""Our jobs as BullMQ's, and BullMQ's as ours.

A job's kind is BullMQ's `name`, its payload the `data`, so a worker in Node reads both as its own.
What BullMQ has no place for is one JSON text in the options (`windrow`), and, for what comes about
later, fields of the job's hash that begin with `windrow:`.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from windrow.ids import is_id, plain_id
from windrow.queue.bullmq.connection import now_ms
from windrow.queue.job import (
    DEFAULT_MAX_CRASHES,
    Job,
    JobError,
    JobState,
    Progress,
    Step,
)
from windrow.queue.records import FOREVER, JobRow

# Fields of a job's hash that are ours.
TOKEN: Final = "windrow:token"  # noqa: S105 - a name; the field: of the last run that ended, and its number
ATTEMPTS: Final = "windrow:attempts"  # of a completed job
ERRORS: Final = "windrow:errors"
STOP: Final = "windrow:stop"  # what a running job is asked to become
STOP_REASON: Final = "windrow:reason"
EXPIRES: Final = "windrow:expires"  # in milliseconds
CLEANED: Final = "windrow:cleaned"  # so was the result
RETRIES: Final = "windrow:retries"  # by hand
STEP: Final = "windrow:step:"

# Priority 10 is BullMQ's 1, the highest it has; ours above that count as 10.
HIGHEST: Final = 10
LOWEST_IN_BULLMQ: Final = 2_097_152
DEFAULT_SECONDS: Final = {
    JobState.COMPLETED: 86_400,
    JobState.FAILED: 7 * 86_400,
    JobState.CANCELLED: 86_400,
}
MAX_ERROR: Final = 500
LATEST_MS: Final = 2**48 - 1  # that an id has room for
# How a worker in Node waits between attempts: as ours do by default, without the jitter.
NODE_BACKOFF: Final = {"type": "exponential", "delay": 2000}

States: Final = {
    "completed": JobState.COMPLETED,
    "failed": JobState.FAILED,
    "delayed": JobState.SCHEDULED,
    "prioritized": JobState.READY,
    "waiting": JobState.READY,
    "active": JobState.ACTIVE,
    "waiting-children": JobState.WAITING,
}


class Extras(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What BullMQ's options have no place for."""

    seq: int | None = None
    priority: int | None = None
    max_crashes: int = DEFAULT_MAX_CRASHES
    lease: int | None = None
    retention: int | None = None
    tenant: str | None = None
    unique: str | None = None
    tags: tuple[str, ...] = ()
    headers: dict[str, Any] | None = None
    is_cleaned: bool = False


@dataclass(slots=True)
class Adding:
    """A new job, with the attributes that BullMQ's scripts ask for."""

    id: str
    name: str
    json: str
    opts: dict[str, Any]
    timestamp: int
    deduplication_id: str | None = None
    data: None = None
    parent: None = None
    parentKey: None = None  # noqa: N815
    repeatJobKey: None = None  # noqa: N815


def to_bullmq(row: JobRow, now: int) -> Adding:
    extras = Extras(
        seq=next_seq(),
        priority=row.priority,
        max_crashes=row.max_crashes,
        lease=row.lease_seconds,
        retention=row.retention_seconds,
        tenant=row.tenant,
        unique=row.unique,
        tags=row.tags,
        headers=msgspec.json.decode(row.headers) if row.headers else None,
        is_cleaned=row.is_cleaned,
    )
    options: dict[str, Any] = {
        "jobId": row.id,
        "attempts": row.max_attempts,
        "backoff": NODE_BACKOFF,
        "priority": bullmq_priority(row.priority),
        "delay": delay_of(row, now),
        "timestamp": now,
        "windrow": msgspec.json.encode(extras).decode(),
    }
    key = unique_id(row.tenant, row.unique)
    if key is not None:
        options["deduplication"] = {"id": key}
        if row.on_conflict == "follow":  # while the other runs it is kept, and added at its end
            options["deduplication"]["keepLastIfActive"] = True
    return Adding(row.id, row.kind, bytes(row.payload).decode(), options, now, key)


_last_seq = 0


def next_seq() -> int:
    """A number greater than all before in this process, and by the clock among those of others."""
    global _last_seq
    _last_seq = max((time.time_ns() << 12) // 1_000_000, _last_seq + 1)
    return _last_seq


def bullmq_priority(priority: int) -> int:
    """BullMQ's 1 is the highest; 0 would be none, and be served before all others."""
    return max(1, min(LOWEST_IN_BULLMQ, HIGHEST + 1 - priority))


def our_priority(priority: int) -> int:
    return HIGHEST + 1 - priority


def delay_of(row: JobRow, now: int) -> int:
    if row.run_at is not None:
        return max(0, to_ms(row.run_at) - now)
    return max(0, round(row.delay * 1000))


def unique_id(tenant: str | None, unique: str | None) -> str | None:
    """The name under which BullMQ keeps jobs from being doubled."""
    if unique is None:
        return None
    return unique if tenant is None else f"{tenant}:{unique}"


def extras_of(options: Mapping[str, Any]) -> Extras:
    try:
        return msgspec.json.decode(options.get("windrow") or "{}", type=Extras)
    except msgspec.MsgspecError:  # somebody else's, by the same name
        return Extras()


def options_of(fields: Mapping[str, str]) -> dict[str, Any]:
    decoded = msgspec.json.decode(fields.get("opts") or "{}")
    return decoded if isinstance(decoded, dict) else {}


def to_job(
    queue: str,
    job_id: str,
    fields: Mapping[str, str],
    state: JobState,
    *,
    due: int | None = None,
    locked_ms: int | None = None,
    token: str | None = None,
) -> Job:
    """A job as its hash has it. `due`: when a delayed one is; `locked_ms`: for how long it is
    locked, by `token`."""
    options = options_of(fields)
    extras = extras_of(options)
    created = int(fields.get("timestamp") or 0)
    run_at = due if due is not None else created + int(options.get("delay") or 0)
    if state is JobState.SCHEDULED and run_at <= now_ms():
        state = JobState.READY  # the next claim takes it
    reason = fields.get("failedReason")  # of the last attempt that failed
    made = int(fields.get("atm") or fields.get("attemptsMade") or 0)
    result = fields.get("returnvalue") if state is JobState.COMPLETED else None
    is_active = state is JobState.ACTIVE
    return Job(
        id=our_id(queue, job_id),
        seq=created << 12 if extras.seq is None else extras.seq,
        queue=queue,
        kind=fields.get("name") or "",
        state=state,
        priority=_priority(options, extras),
        attempts=_attempts(fields, made) if state is JobState.COMPLETED else made,
        crashes=int(fields.get("stc") or 0),
        runs=int(fields.get("ats") or 0),
        max_attempts=max(1, int(options.get("attempts") or 1)),
        max_crashes=extras.max_crashes,
        created_at=from_ms(created),
        run_at=from_ms(run_at),
        started_at=_time(fields.get("processedOn")),
        finished_at=_time(fields.get("finishedOn")),
        expires_at=_time(fields.get(EXPIRES)) if state.value in ("completed", "failed") else None,
        tenant=extras.tenant,
        unique=extras.unique or _deduplication(options),
        error=one_line(reason) if reason and state is not JobState.COMPLETED else None,
        worker=fields.get("pb") if is_active else None,
        lease_expires_at=from_ms(now_ms() + locked_ms) if is_active and locked_ms else None,
        lease_seconds=extras.lease,
        retention_seconds=extras.retention,
        stop_as=JobState(fields[STOP]) if is_active and fields.get(STOP) else None,
        is_cleaned=extras.is_cleaned or CLEANED in fields,
        headers=extras.headers or {},
        tags=extras.tags,
        errors=errors_of(fields),
        progress=progress_of(fields),
        payload_json=fields.get("data") or "null",
        result_json=None if result in (None, "", "null") else result,
        lease_token=token if is_active else None,
    )


def ended_run(fields: Mapping[str, str], token: str) -> str:
    """What is kept of a run that ended."""
    return f"{fields.get('ats') or 0} {token}"


def has_ended(fields: Mapping[str, str], token: str) -> bool:
    """Whether the last run of a job was this one, and it has ended."""
    return fields.get(TOKEN) == ended_run(fields, token)


def one_line(text: str) -> str:
    return " ".join(text.split())[:MAX_ERROR]


def is_own_id(job_id: str) -> bool:
    """Whether an id is one of a job of ours: a UUID, spelled as we do."""
    return is_id(job_id) and plain_id(job_id) == job_id


def our_id(queue: str, job_id: str) -> str:
    """Ids that Node made are numbers, alike in all queues: with their queue they are one job's."""
    return job_id if is_own_id(job_id) else f"{queue}:{job_id}"


def their_id(job_id: str) -> tuple[str | None, str]:
    """The queue that an id names, if it names one, and the id as BullMQ has it."""
    queue, colon, rest = job_id.partition(":")
    return (queue, rest) if colon else (None, job_id)


def dated_id(created: int, told: str) -> str:
    """An id made of a text, the same whenever it is told, and sorted among those made then."""
    digest = int.from_bytes(hashlib.sha256(told.encode()).digest()[:10], "big")
    # Version 7, variant 2; the other bits of the digest stay.
    low = digest & ~(0xF << 76) & ~(0b11 << 62) | 7 << 76 | 0b10 << 62
    return str(uuid.UUID(int=min(max(0, created), LATEST_MS) << 80 | low))


def errors_of(fields: Mapping[str, str]) -> list[JobError]:
    if kept := fields.get(ERRORS):
        return msgspec.json.decode(kept, type=list[JobError])
    if reason := fields.get("failedReason"):  # of a run in Node
        return [JobError(_time(fields.get("finishedOn")), "attempt", reason)]
    return []


def progress_of(fields: Mapping[str, str]) -> Progress | None:
    kept = fields.get("progress")
    if not kept or kept == "0":
        return None
    decoded = msgspec.json.decode(kept)
    if isinstance(decoded, int | float):  # what people in Node report
        return Progress(max(0, min(100, int(decoded))))
    try:
        return msgspec.convert(decoded, Progress)
    except msgspec.ValidationError:
        return None


def steps_of(fields: Mapping[str, str]) -> list[Step]:
    kept = [
        (name.removeprefix(STEP), *msgspec.json.decode(text, type=tuple[int, str]))
        for name, text in fields.items()
        if name.startswith(STEP)
    ]
    kept.sort(key=lambda step: (step[1], step[0]))
    return [Step(name, result, from_ms(at)) for name, at, result in kept]


def retention_ms(seconds: int | None) -> int | None:
    """How long a job is kept; None: for ever."""
    return None if seconds is None or seconds == FOREVER else seconds * 1000


def to_ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def from_ms(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


def _attempts(fields: Mapping[str, str], made: int) -> int:
    """BullMQ counts the run that completed a job as well."""
    return int(fields.get(ATTEMPTS) or made - 1)


def _time(text: str | None) -> datetime | None:
    return from_ms(int(text)) if text else None


def _priority(options: Mapping[str, Any], extras: Extras) -> int:
    if extras.priority is not None:
        return extras.priority
    return our_priority(int(options.get("priority") or 0))


def _deduplication(options: Mapping[str, Any]) -> str | None:
    found = options.get("de") or options.get("deduplication")
    return str(found["id"]) if isinstance(found, dict) and "id" in found else None
