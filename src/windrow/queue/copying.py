"""Moving jobs from one database to another, in parcels.

A parcel is taken out of the source and written to its outbox in one transaction: from then on
nobody can run what is in it. The target takes it in and notes its number in one transaction: a
parcel that is handed over again changes nothing. Then the source drops it from the outbox. Whoever
is killed in between leaves a parcel that the next copy hands over again.

Jobs that belong together (a group, its root, groups of its members) are one unit: they travel in
the same parcel, or stay. Steps travel with their job. Workers, leaders and sleepers do not move:
they tell the database they are on that they are there. Nor do events: a cursor is a place in the
stream of its own database, and what is moved is no news to those who follow either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from windrow.errors import StoreError
from windrow.queue.ids import new_id
from windrow.queue.job import UNCLAIMED, Job, JobError, JobState, Progress, Step
from windrow.queue.store import Store

PARCEL_BYTES: Final = 16 * 1024 * 1024  # a parcel is closed when it holds so much
JOBS_AT_ONCE: Final = 100  # read so many before looking how large the parcel is
# A larger result becomes a blob, as when a run stores it.
LARGEST_INLINE_RESULT: Final = 1024 * 1024
_CHECKSUM_SPACE: Final = 2**128


class CopiedJob(msgspec.Struct, frozen=True, kw_only=True, tag="job"):
    """A job with everything that is kept of it, but for the lease of its last run."""

    id: str
    queue: str
    kind: str
    state: JobState
    priority: int
    attempts: int
    crashes: int
    runs: int
    max_attempts: int
    max_crashes: int
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    tenant: str | None
    group: str | None
    root_of: str | None
    unique: str | None
    error: str | None
    lease_seconds: int | None
    retention_seconds: int | None
    is_cleaned: bool
    tags: tuple[str, ...]
    errors: tuple[JobError, ...]
    progress: Progress | None
    limits: tuple[str, ...]
    max_hold_seconds: int | None
    place: int  # in the line
    payload: str
    headers: str | None
    result: str | None
    unit: str | None  # what it must stay together with
    is_follower: bool = False
    steps: tuple[Step, ...] = ()


class CopiedGroup(msgspec.Struct, frozen=True, kw_only=True, tag="group"):
    id: str
    unit: str
    state: str
    is_paused: bool
    is_open: bool
    is_cancelled: bool
    reason: str | None
    members: int
    pending: int
    completed: int
    failed: int
    cancelled: int
    root: str | None
    tenant: str | None
    finish_job: str | None
    retention_seconds: int | None
    created_at: datetime
    ended_at: datetime | None
    expires_at: datetime | None


class CopiedSchedule(msgspec.Struct, frozen=True, kw_only=True, tag="schedule"):
    name: str
    cron: str | None
    timezone: str
    every_seconds: float | None
    jitter_seconds: float
    catch_up: str
    is_paused: bool
    next_at: datetime | None
    last_at: datetime | None
    created_at: datetime
    job: str


Item = CopiedJob | CopiedGroup | CopiedSchedule


@dataclass(frozen=True, slots=True)
class QueueRow:
    """What is set for a queue."""

    name: str
    is_paused: bool
    max_depth: int | None
    on_full: str | None
    completed_seconds: int | None
    failed_seconds: int | None
    cancelled_seconds: int | None


@dataclass(frozen=True, slots=True)
class Parcel:
    id: str
    target: str
    items: tuple[Item, ...]

    @property
    def unit(self) -> str | None:
        """The one unit that all of it belongs to, if there is one."""
        units = {None if isinstance(item, CopiedSchedule) else item.unit for item in self.items}
        return units.pop() if len(units) == 1 else None

    @property
    def ids(self) -> list[str]:
        return [item_id(item) for item in self.items]

    @property
    def jobs(self) -> list[CopiedJob]:
        return [item for item in self.items if isinstance(item, CopiedJob)]

    @property
    def groups(self) -> list[CopiedGroup]:
        return [item for item in self.items if isinstance(item, CopiedGroup)]

    @property
    def schedules(self) -> list[CopiedSchedule]:
        return [item for item in self.items if isinstance(item, CopiedSchedule)]


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a parcel in the target. `refused`: ids of jobs and groups that could not be
    taken, with the reason; `known`: jobs that were there before, and schedules, by name. A receipt
    for no items is that of a number whose parcel was taken back."""

    items: int = 0
    refused: dict[str, str] = {}
    known: tuple[str, ...] = ()
    checked: int = 0  # jobs read back after they were written, and found to be the same
    sent: str = ""  # checksum of what was to be written …
    checksum: str = ""  # … and of what was read back


@dataclass(frozen=True, slots=True)
class Admission:
    """Which items of a parcel the target takes."""

    jobs: list[CopiedJob] = field(default_factory=list)
    groups: list[CopiedGroup] = field(default_factory=list)
    schedules: list[CopiedSchedule] = field(default_factory=list)
    known: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)


class CopyStore(Store, Protocol):
    """What a store does beyond the queue's own verbs so that its jobs can be moved."""

    async def take_jobs(self, target: str, limit: int) -> str | None:
        """Put unclaimed and finished jobs that belong to no group, and all schedules, into a parcel
        in the outbox; its number, or None if there was nothing."""
        ...

    async def take_groups(
        self, target: str, limit: int, after: str | None, settle: float
    ) -> tuple[list[str], str | None]:
        """Put whole groups into parcels of about so many jobs: those of which nothing runs, and
        that nothing came to for `settle` seconds. Their numbers, and where to go on (None: every
        group was looked at)."""
        ...

    async def list_remaining(self, limit: int) -> list[str]:
        """The ids of groups that are here, so many at most."""
        ...

    async def list_parcels(self) -> dict[str, str]:
        """Numbers of the parcels in the outbox, oldest first, and their targets."""
        ...

    async def read_parcel(self, number: str) -> Parcel | None: ...

    async def receive_parcel(self, parcel: Parcel) -> Receipt:
        """Take in what is in a parcel, once: for one that was received before, the receipt is
        given again and nothing is changed."""
        ...

    async def drop_parcel(self, number: str, kept: Collection[str]) -> None:
        """Remove a parcel from the outbox; the items of these ids stay there in a new one."""
        ...

    async def take_back(self, number: str) -> Receipt:
        """Make live here again what is in a parcel of the outbox, and drop it. What cannot be
        taken (a unique key is held by now) stays in a new one."""
        ...

    async def has_received(self, number: str) -> bool: ...

    async def add_queues(self, rows: Sequence[QueueRow]) -> None:
        """Settings of queues for which nothing was set before."""
        ...


_OWN: Final = {"errors", "steps", "place", "payload", "headers", "result", "unit", "is_follower"}
_SAME: Final = [name for name in CopiedJob.__struct_fields__ if name not in _OWN]


def pack_job(job: Job, steps: Sequence[Step], place: int, unit: str | None) -> CopiedJob:
    values = {name: getattr(job, name) for name in _SAME}
    return CopiedJob(
        **values,
        errors=tuple(job.errors),
        steps=tuple(steps),
        place=place,
        payload=_text(job.payload_json) or "null",
        headers=msgspec.json.encode(job.headers).decode() if job.headers else None,
        result=_text(job.result_json),
        unit=unit,
    )


def size_of(job: CopiedJob) -> int:
    """About how much room a job takes in a parcel."""
    return len(job.payload) + len(job.result or "") + sum(len(s.result_json) for s in job.steps)


def encode_item(item: Item) -> str:
    return msgspec.json.encode(item).decode()


def decode_item(text: str) -> Item:
    item: Item = msgspec.json.decode(text, type=Item)
    return item


def item_id(item: Item) -> str:
    return item.name if isinstance(item, CopiedSchedule) else item.id


def new_number() -> str:
    """The number of a new parcel; numbers sort in the order they were made."""
    return new_id()


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


def groups_named(parcel: Parcel) -> list[str]:
    """The groups that a parcel brings, and those that its jobs are members of."""
    members = {job.group for job in parcel.jobs if job.group is not None}
    return sorted(members | {group.id for group in parcel.groups})


def roots_first(
    kin: Iterable[tuple[str, int]], groups: Sequence[CopiedGroup]
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The jobs of a unit: roots, which travel with their groups, because a group that ends must
    find its root; and the others."""
    ids = {group.root for group in groups}
    roots: list[tuple[str, int]] = []
    others: list[tuple[str, int]] = []
    for job in kin:
        (roots if job[0] in ids else others).append(job)
    return roots, others


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
        (job.id, job.state.value, _text(job.payload_json) or "null", _text(job.result_json))
        for job in jobs
    )


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value
