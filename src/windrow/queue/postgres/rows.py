"""Between rows of the database and records of the queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from windrow.db.statements import Statement, load_statement
from windrow.ids import is_id
from windrow.queue.job import Job, JobError, JobState, Progress
from windrow.queue.records import Claim, Group, Inserted, InsertOutcome

PACKAGE: Final = "windrow.queue.postgres"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Row = Mapping[str, Any]

_LONGEST_ERROR: Final = 500  # characters of a job's short error text
_LIVE_STATES: Final = (
    *(JobState.SCHEDULED, JobState.HELD, JobState.PAUSED),
    *(JobState.READY, JobState.ACTIVE, JobState.WAITING),
)


def sql(name: str) -> Statement:
    return load_statement(PACKAGE, name)


def as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def as_text(now: datetime | None) -> str | None:
    """A time for a statement whose parameters are all text."""
    return None if now is None else now.isoformat()


def as_utc(at: datetime) -> datetime:
    """psycopg answers in the session's time zone, the others in UTC."""
    return at.astimezone(UTC)


def uuids(ids: Iterable[str]) -> list[str]:
    """Those ids that the database can look for; anything else is just not there."""
    return [job_id for job_id in ids if is_id(job_id)]


def short_error(error: JobError | None) -> str | None:
    """What the job's own row says of an error: the first line, with the type before it."""
    if error is None:
        return None
    first = error.message.partition("\n")[0]
    return (f"{error.type}: {first}" if error.type else first)[:_LONGEST_ERROR]


def to_inserted(row: Row, outcome: InsertOutcome) -> Inserted:
    return Inserted(
        id=str(row["id"]),
        outcome=outcome,
        seq=row["seq"],
        state=JobState(row["state"]),
        run_at=as_utc(row["run_at"]),
        created_at=as_utc(row["created_at"]),
    )


def to_claimed(rows: Iterable[Any], claim: Claim, token: str) -> list[Job]:
    """The jobs of a claim, best first; `token` is what the claim called its first lease. Rows are
    taken apart by position, in the order in which claim_jobs.sql gives its columns: by name it
    would take twice the time, for every job."""
    expiries: dict[int, datetime] = {}
    active = JobState.ACTIVE
    moment, started_at = -1, EPOCH
    jobs = []
    for row in rows:
        # fmt: off
        (job_id, seq, queue, kind, priority, attempts, crashes, runs, max_attempts, max_crashes,
         created_at, run_at, started, tenant, group, root_of, unique, error, lease_seconds,
         retention_seconds, is_cleaned, lease, limits, max_hold_seconds, payload, headers, tags,
         *_) = row
        # fmt: on
        if started != moment:  # which all of them have in common
            moment, started_at = started, EPOCH + timedelta(microseconds=started)
        seconds = claim.lease_length(kind, lease_seconds)
        if seconds not in expiries:
            expiries[seconds] = started_at + timedelta(seconds=seconds)
        # By position here too, in the order of Job's fields: by name it takes three times as long.
        jobs.append(
            Job(
                str(job_id),
                seq,
                queue,
                kind,
                active,
                priority,
                attempts,
                crashes,
                runs,
                max_attempts,
                max_crashes,
                created_at,
                created_at if run_at is None else run_at,
                started_at,
                None,  # finished_at
                None,  # expires_at
                tenant,
                None if group is None else str(group),
                None if root_of is None else str(root_of),
                unique,
                error,
                claim.worker,
                expiries[seconds],
                lease_seconds,
                retention_seconds,
                None,  # stop_as
                is_cleaned,
                {} if headers is None else msgspec.json.decode(headers),
                () if tags is None else tuple(tags),
                [],  # errors
                None,  # progress
                payload,
                None,  # result_json
                token if lease is None else str(lease),
                () if limits is None else tuple(limits),
                max_hold_seconds,
            )
        )
    jobs.sort(key=_place)
    return jobs


def to_job(row: Row) -> Job:
    """A job as it is read, not claimed."""
    group, root_of, lease = row["group_id"], row["root_of"], row["lease"]
    headers, body = row["headers"], row["body"]
    return Job(
        id=str(row["id"]),
        seq=row["seq"],
        queue=row["queue"],
        kind=row["kind"],
        state=JobState(row["state"]),
        priority=row["priority"],
        attempts=row["attempts"],
        crashes=row["crashes"],
        runs=row["runs"],
        max_attempts=row["max_attempts"],
        max_crashes=row["max_crashes"],
        created_at=row["created_at"],
        run_at=row["run_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        expires_at=row["expires_at"],
        tenant=row["tenant"],
        group=None if group is None else str(group),
        root_of=None if root_of is None else str(root_of),
        unique=row["unique_key"],
        error=row["error"],
        worker=row["worker"],
        lease_expires_at=row["lease_expires_at"],
        lease_seconds=row["lease_seconds"],
        retention_seconds=row["retention_seconds"],
        stop_as=None if row["stop_as"] is None else JobState(row["stop_as"]),
        is_cleaned=row["is_cleaned"],
        headers={} if headers is None else msgspec.json.decode(headers),
        tags=tuple(row["tags"] or ()),
        progress=_to_progress(row),
        payload_json=row["payload"],
        result_json=row["result"] if body is None else body,
        lease_token=None if lease is None else str(lease),
        limits=tuple(row["limit_keys"] or ()),
        max_hold_seconds=row["max_hold_seconds"],
    )


def to_error(row: Row) -> JobError:
    return JobError(row["at"], row["reason"], row["message"], row["type"], row["traceback"])


def to_group(row: Row) -> Group:
    live = msgspec.json.decode(row["live_counts"] or "{}")
    counts = {state: live[state] for state in _LIVE_STATES if state in live}
    for state in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED):
        if row[state]:
            counts[state] = row[state]
    return Group(
        id=str(row["id"]),
        state=row["state"],
        is_paused=row["is_paused"],
        is_open=row["is_open"],
        pending=row["pending"],
        counts=counts,
        root=None if row["root"] is None else str(row["root"]),
        tenant=row["tenant"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
        members=row["members"],
        max_jobs=row["max_jobs"],
        is_cancelled=row["is_cancelled"],
    )


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Rows as one list per column, which is what unnest takes; `width` for when there are none."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def _to_progress(row: Row) -> Progress | None:
    if row["percent"] is None:
        return None
    counters = msgspec.json.decode(row["counters"])
    return Progress(row["percent"], row["message"], counters, row["updated_at"])


def _place(job: Job) -> tuple[int, int]:
    return -job.priority, job.seq
