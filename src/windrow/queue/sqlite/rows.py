"""Rows into records: times as microseconds, jobs from their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from windrow.db.codec import is_storable
from windrow.queue.job import Job, JobError, JobState, Progress
from windrow.queue.records import Group, GroupState

MICROSECONDS: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_END_OF_TIME: Final = 253_402_300_799_999_999  # the last moment a datetime can hold
_STATES: Final = {state.value: state for state in JobState}

_decode = msgspec.json.decode


class LiveJob(NamedTuple):
    """What the verbs must know of a live job: the columns of `find_live` and its kin."""

    seq: int
    id: str
    queue: str
    state: str
    run_at: int
    crashes: int
    max_crashes: int
    lease: str | None
    tenant: str | None
    group_id: str | None
    root_of: str | None
    unique_key: str | None
    is_follower: int
    stop_as: str | None
    error: str | None
    limit_keys: str | None
    kind: str


class GroupRecord(NamedTuple):
    """A row of job_group: the columns of `find_group` and its kin."""

    id: str
    state: GroupState
    is_paused: int
    is_open: int
    is_cancelled: int
    reason: str | None
    added: int
    pending: int
    completed: int
    failed: int
    cancelled: int
    root: str | None
    tenant: str | None
    finish_job: str | None
    created_at: int
    ended_at: int | None
    max_jobs: int | None


def to_micros(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * MICROSECONDS + since.microseconds


def after(now: int, seconds: float) -> int:
    """The moment so many seconds later; a time too far off to be written is the last there is."""
    return min(now + round(seconds * MICROSECONDS), _END_OF_TIME)


def to_time(micros: int) -> datetime:
    return _EPOCH + timedelta(0, 0, micros)


def to_optional_time(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(0, 0, micros)


def to_state(text: str) -> JobState:
    return _STATES[text]


def to_optional_state(text: str | None) -> JobState | None:
    return None if text is None else _STATES[text]


def to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def raw_text(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()


def id_list(ids: Iterable[str]) -> str:
    """Ids from outside as JSON; what cannot be written cannot be found either."""
    return to_json([job_id for job_id in ids if is_storable(job_id)])


def to_headers(text: str | None) -> dict[str, Any]:
    return {} if text is None else _decode(text)


def to_tags(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(_decode(text))


def claimed_jobs(
    rows: Sequence[tuple[Any, ...]], token: str, worker: str, now: int, expires_at: int
) -> list[Job]:
    """Jobs from the rows of `claim_jobs`, as they are once the claim is written."""
    started, expires = to_time(now), to_time(expires_at)
    active = JobState.ACTIVE
    jobs = []
    created_at, created = -1, started
    for row in rows:
        if row[10] != created_at:  # jobs enqueued together have the same time
            created_at, created = row[10], to_time(row[10])
        run = created if row[11] == created_at else to_time(row[11])
        jobs.append(
            Job(
                row[0],
                row[1],
                row[2],
                row[3],
                active,
                row[4],
                row[5],
                row[6],
                row[7] + 1,
                row[8],
                row[9],
                created,
                run,
                started,
                None,
                None,
                row[12],
                row[13],
                row[14],
                row[15],
                row[16],
                worker,
                expires,
                row[17],
                row[18],
                None,
                row[22] == 1,
                {} if row[20] is None else _decode(row[20]),
                () if row[21] is None else tuple(_decode(row[21])),
                [],
                None,
                row[19],
                None,
                token,
                () if row[23] is None else tuple(_decode(row[23])),
                row[24],
            )
        )
    return jobs


def read_job(row: Any) -> Job:
    """A job from a row of `list_live` or `list_finished`."""
    is_active = row["state"] == "active"
    return Job(
        id=row["id"],
        seq=row["seq"],
        queue=row["queue"],
        kind=row["kind"],
        state=to_state(row["state"]),
        priority=row["priority"],
        attempts=row["attempts"],
        crashes=row["crashes"],
        runs=row["runs"],
        max_attempts=row["max_attempts"],
        max_crashes=row["max_crashes"],
        created_at=to_time(row["created_at"]),
        run_at=to_time(row["run_at"]),
        started_at=to_optional_time(row["started_at"]),
        finished_at=to_optional_time(row["finished_at"]),
        expires_at=to_optional_time(row["expires_at"] or row["group_expires_at"]),
        tenant=row["tenant"],
        group=row["group_id"],
        root_of=row["root_of"],
        unique=row["unique_key"],
        error=row["error"],
        worker=row["worker"] if is_active else None,
        lease_expires_at=to_optional_time(row["lease_expires_at"]) if is_active else None,
        lease_seconds=row["lease_seconds"],
        retention_seconds=row["retention_seconds"],
        stop_as=to_optional_state(row["stop_as"]),
        is_cleaned=bool(row["is_cleaned"]),
        headers=to_headers(row["headers"]),
        tags=to_tags(row["tags"]),
        progress=_read_progress(row),
        payload_json=row["payload"],
        lease_token=row["lease"] if is_active else None,
        limits=to_tags(row["limit_keys"]),
        max_hold_seconds=row["max_hold_seconds"],
    )


def _read_progress(row: Any) -> Progress | None:
    if row["percent"] is None:
        return None
    return Progress(
        row["percent"],
        row["progress_message"],
        _decode(row["counters"]),
        to_time(row["progress_at"]),
    )


def read_error(row: Any) -> JobError:
    return JobError(
        to_time(row["at"]), row["reason"], row["message"], row["type"], row["traceback"]
    )


def read_group(record: GroupRecord, live: dict[JobState, int]) -> Group:
    """A group; members that have ended are counted on its row, the others were counted now."""
    ended = {
        JobState.COMPLETED: record.completed,
        JobState.FAILED: record.failed,
        JobState.CANCELLED: record.cancelled,
    }
    return Group(
        id=record.id,
        state=record.state,
        is_paused=bool(record.is_paused),
        is_open=bool(record.is_open),
        pending=record.pending,
        counts=live | {state: count for state, count in ended.items() if count},
        root=record.root,
        tenant=record.tenant,
        created_at=to_time(record.created_at),
        ended_at=to_optional_time(record.ended_at),
        members=record.added,
        max_jobs=record.max_jobs,
        is_cancelled=bool(record.is_cancelled),
    )
