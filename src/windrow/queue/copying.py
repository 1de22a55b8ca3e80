"""Moving jobs from one database to another, in parcels.

A parcel is taken out of the source and written to its outbox in one transaction: from then on
nobody can run what is in it. The target takes it in and notes its number in one transaction: a
parcel that is handed over again changes nothing. Then the source drops it from the outbox. Whoever
is killed in between leaves a parcel that the next copy hands over again.

Jobs that belong together (a group, its root, groups of its members) are one unit: it is taken out
at once, or stays. A large one is several parcels. The first brings the groups, whose counts include
what is still on its way, so that they cannot end before all of it has come; and their keys, so that
nothing comes in that they have had.

Steps travel with their job. Notes of a group do not: they are for people who look at it where it
ran. Workers, leaders and sleepers do not move: they tell the database they are on that they are
there. Nor do events: a cursor is a place in the
stream of its own database, and what is moved is no news to those who follow either. Dialects are
installed where they are wanted; their jobs are jobs and move, without the number that one had in
its queue: the dialect that is there counts on its own. Credentials stay: they are sealed with a key
that the other side may not have. So do keys of the HTTP API: who may use the other server is said
there. So do quotas of tenants and what was used of them: a period is counted where its requests
came in. So do pages of earlier scrapes: they can be fetched again, and
changes are told from the first version that is fetched there. So do collections, sources and
documents, whose index is beside the database that they are in: they are ingested again there. So
do calls: what is kept of them is named by rows that stay here.
Nor do the notes of what was imported: whoever imports again says where. Nor those of runs whose
queue is elsewhere: they belong to the rows that are here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from windrow.ids import new_id
from windrow.queue.job import Job, JobError, JobState, Progress, Step
from windrow.queue.store import Store

PARCEL_BYTES: Final = 16 * 1024 * 1024  # a parcel is closed when it holds so much
KEYS_PER_ITEM: Final = 10_000
JOBS_AT_ONCE: Final = 100  # read so many before looking how large the parcel is


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
    max_jobs: int | None = None


class CopiedKeys(msgspec.Struct, frozen=True, kw_only=True, tag="keys"):
    """Keys of a group: of each the hash, and the id of the job that has it."""

    id: str
    unit: str
    group: str
    keys: bytes  # 16 of each hash …
    job_ids: bytes  # … and 16 of each id


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


Item = CopiedJob | CopiedGroup | CopiedKeys | CopiedSchedule


class QueueRow(msgspec.Struct, frozen=True):
    """What is set for a queue."""

    name: str
    is_paused: bool
    max_depth: int | None
    on_full: str | None
    completed_seconds: int | None
    failed_seconds: int | None
    cancelled_seconds: int | None


class Parcel(msgspec.Struct, frozen=True):
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
    def keys(self) -> list[CopiedKeys]:
        return [item for item in self.items if isinstance(item, CopiedKeys)]

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
        payload=json_text(job.payload_json) or "null",
        headers=msgspec.json.encode(job.headers).decode() if job.headers else None,
        result=json_text(job.result_json),
        unit=unit,
    )


def pack_keys(group: str, unit: str, keys: Sequence[tuple[bytes, bytes]]) -> list[CopiedKeys]:
    """Keys of a group with the ids of their jobs, as bytes."""
    return [
        CopiedKeys(
            id=new_id(),
            unit=unit,
            group=group,
            keys=b"".join(key for key, _ in keys[start : start + KEYS_PER_ITEM]),
            job_ids=b"".join(job_id for _, job_id in keys[start : start + KEYS_PER_ITEM]),
        )
        for start in range(0, len(keys), KEYS_PER_ITEM)
    ]


def unpack_keys(item: CopiedKeys) -> list[tuple[bytes, bytes]]:
    return list(zip(_sixteens(item.keys), _sixteens(item.job_ids), strict=True))


def _sixteens(packed: bytes) -> list[bytes]:
    return [packed[start : start + 16] for start in range(0, len(packed), 16)]


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


def json_text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value
