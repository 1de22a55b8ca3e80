"""What a database takes of a parcel, and the proof that it has it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from windrow.errors import StoreError
from windrow.queue.copying import (
    CopiedGroup,
    CopiedJob,
    CopiedKeys,
    CopiedSchedule,
    Parcel,
    Receipt,
    json_text,
)
from windrow.queue.job import UNCLAIMED, Job, JobState

# A larger result becomes a blob, as when a run stores it.
LARGEST_INLINE_RESULT: Final = 1024 * 1024
_CHECKSUM_SPACE: Final = 2**128


class Admission(msgspec.Struct, frozen=True):
    """Which items of a parcel the target takes."""

    jobs: list[CopiedJob] = msgspec.field(default_factory=list)
    groups: list[CopiedGroup] = msgspec.field(default_factory=list)
    keys: list[CopiedKeys] = msgspec.field(default_factory=list)
    schedules: list[CopiedSchedule] = msgspec.field(default_factory=list)
    known: tuple[str, ...] = ()
    refused: dict[str, str] = msgspec.field(default_factory=dict)


def admit(
    parcel: Parcel,
    *,
    known: Collection[str],
    groups: Collection[str],
    schedules: Collection[str],
    holders: Mapping[tuple[str | None, str], Mapping[bool, str]],
) -> Admission:
    """Decide what a target takes that has these jobs, groups, schedules and holders of unique keys
    (of each key the first one, and its follower)."""
    taken = {key: dict(held) for key, held in holders.items()}
    reasons: dict[str, str] = {}  # by unit
    coming = {group.id for group in parcel.groups}
    for group in parcel.groups:
        if group.id in groups:
            reasons[group.unit] = f"group {group.id} is in the target already"
    for job in parcel.jobs:
        if job.group is not None and job.group not in coming and job.group not in groups:
            reasons[job.unit or job.id] = f"its group {job.group} is not there"
    chosen: list[CopiedJob] = []
    for job in sorted(parcel.jobs, key=lambda job: job.place):
        if job.id in known:
            if job.unit is not None:
                reasons[job.unit] = f"job {job.id} is in the target already"
            continue
        placed, reason = _place(job, taken)
        if reason is not None:
            reasons[job.unit or job.id] = reason
        chosen.append(placed)
    return Admission(
        jobs=[job for job in chosen if (job.unit or job.id) not in reasons],
        groups=[group for group in parcel.groups if group.unit not in reasons],
        keys=[item for item in parcel.keys if item.unit not in reasons],
        schedules=[item for item in parcel.schedules if item.name not in schedules],
        known=tuple(
            [job.id for job in parcel.jobs if job.id in known and job.unit is None]
            + [item.name for item in parcel.schedules if item.name in schedules]
        ),
        refused={
            item.id: reasons[item.unit or item.id]
            for item in parcel.items
            if not isinstance(item, CopiedSchedule) and (item.unit or item.id) in reasons
        },
    )


def _place(
    job: CopiedJob, taken: dict[tuple[str | None, str], dict[bool, str]]
) -> tuple[CopiedJob, str | None]:
    """A job as it is written. Only `promote_jobs` makes a job with limits ready, so it is held
    until then; a job whose unique key is held already follows the one that has it."""
    if job.state not in UNCLAIMED and job.state is not JobState.WAITING:
        return job, None
    state = JobState.HELD if job.state is JobState.READY and job.limits else job.state
    if job.unique is None:
        return msgspec.structs.replace(job, state=state), None
    held = taken.setdefault((job.tenant, job.unique), {})
    is_follower = False in held
    if is_follower in held or (is_follower and job.state is JobState.WAITING):
        return job, f"its unique key is held in the target by job {held[is_follower]}"
    held[is_follower] = job.id
    if is_follower and state is not JobState.PAUSED:
        state = JobState.HELD
    return msgspec.structs.replace(job, state=state, is_follower=is_follower), None


def groups_named(parcel: Parcel) -> list[str]:
    """The groups that a parcel brings, and those that its jobs are members of."""
    members = {job.group for job in parcel.jobs if job.group is not None}
    return sorted(members | {group.id for group in parcel.groups})


def blob_hash(result: str | None) -> bytes | None:
    """The name of the blob of a result that is too large for a row."""
    body = (result or "").encode()
    return hashlib.sha256(body).digest() if len(body) > LARGEST_INLINE_RESULT else None


def confirm(parcel: Parcel, admission: Admission, found: Iterable[Job]) -> Receipt:
    """The receipt, if what was read back is what was sent; else an error, so that nothing of it is
    kept."""
    jobs = list(found)
    sent, received = sent_checksum(admission.jobs), found_checksum(jobs)
    if sent != received:
        raise StoreError("jobs read back after copying differ from those sent: nothing was copied")
    return Receipt(
        items=len(parcel.items),
        refused=admission.refused,
        known=admission.known,
        checked=len(jobs),
        sent=sent,
        checksum=received,
    )


def checksum(jobs: Iterable[tuple[str, str, str, str | None]]) -> str:
    """Of ids, states, payloads and results, in whatever order."""
    total = 0
    for job in jobs:
        digest = hashlib.sha256(msgspec.json.encode(job)).digest()
        total += int.from_bytes(digest[:16], "big")
    return f"{total % _CHECKSUM_SPACE:032x}"


def add_checksums(one: str, other: str) -> str:
    """The checksum of both together."""
    return f"{(int(one or '0', 16) + int(other or '0', 16)) % _CHECKSUM_SPACE:032x}"


def sent_checksum(jobs: Iterable[CopiedJob]) -> str:
    return checksum((job.id, job.state.value, job.payload, job.result) for job in jobs)


def found_checksum(jobs: Iterable[Job]) -> str:
    return checksum(
        (job.id, job.state.value, json_text(job.payload_json) or "null", json_text(job.result_json))
        for job in jobs
    )
