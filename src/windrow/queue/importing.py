"""Taking in jobs from tables that are not Windrow's: see `services/migration`.

An arrival is a row of such a table with the job it becomes. Arrivals are noted by the place they
came from and their key there, in the transaction that writes their jobs: one that comes again
changes nothing, also when its job has run and is pruned. The jobs go the way that copied ones go.

A table that is about to be dropped there is noted first, by its name. From then on its jobs are
the only copy, and none of them is removed: whoever removes jobs writes the same note for as long as
that takes, so of a drop and a removal at the same time one waits for the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from windrow.queue.copying import CopiedGroup, CopiedJob, CopyStore, Parcel, Receipt, new_number
from windrow.queue.job import Job, JobState


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    key: str  # of the row, where it comes from
    checksum: str  # of the row
    item: CopiedJob | CopiedGroup


class Import(msgspec.Struct, frozen=True):
    """What became of arrivals, by their keys. The refused can be tried again. Known are those that
    came before, and those whose job was here already or has come by another one."""

    new: list[str] = msgspec.field(default_factory=list)
    known: list[str] = msgspec.field(default_factory=list)
    refused: dict[str, str] = msgspec.field(default_factory=dict)


class ImportNote(msgspec.Struct, frozen=True):
    key: str
    checksum: str
    job_id: str | None  # None for a group, and if the job did not come with this row
    imported_at: datetime


class Removal(msgspec.Struct, frozen=True):
    jobs: int  # so many are gone
    kept: dict[str, str]  # the keys of what stays, with the reasons


class ImportStore(CopyStore, Protocol):
    """What a store does so that work can come from elsewhere."""

    async def import_arrivals(self, origin: str, arrivals: Sequence[Arrival]) -> Import:
        """Take in those that never came before, after everything that waits here."""
        ...

    async def find_imported(self, origin: str, keys: Sequence[str]) -> list[ImportNote]:
        """Those of these keys that came before."""
        ...

    async def list_imported(self, origin: str, after: str, limit: int) -> list[ImportNote]:
        """What came from a place, by key."""
        ...

    async def remove_imported(
        self, origin: str, keys: Sequence[str], tables: Sequence[str], group: str | None = None
    ) -> Removal:
        """Remove what came under these keys from these tables and has not begun, with the notes of
        it, so that it can be taken in again; with `group` that group and all of its jobs, or none
        of them. Nothing of a table that is noted as dropped."""
        ...

    async def note_dropped(self, origin: str, tables: Sequence[str]) -> list[str]:
        """Say that tables there are dropped from now on. Returns those that were not before."""
        ...

    async def forget_dropped(self, origin: str, tables: Sequence[str]) -> None:
        """Tables that were not dropped after all."""
        ...

    async def list_dropped(self, origin: str) -> dict[str, datetime]:
        """The tables that were dropped there, and when."""
        ...


def find_kept(notes: Iterable[ImportNote], jobs: Mapping[str, Job]) -> dict[str, str]:
    """The keys of jobs by themselves that are not to be removed, and why."""
    kept: dict[str, str] = {}
    for note in notes:
        if note.job_id is None:
            continue  # its job is none of this migration: only the note goes
        job = jobs.get(note.job_id)
        if job is None:
            kept[note.key] = "it is gone: it has run, or was deleted"
        elif job.group is not None:
            kept[note.key] = f"it belongs to group {job.group}: cancel that"
        elif has_begun(job):
            kept[note.key] = f"it has begun, and is {job.state.value}"
    return kept


def why_group_stays(
    size: int | None, members: Collection[str], jobs: Mapping[str, Job]
) -> str | None:
    """Why a group is not to be removed: it had `size` jobs (None: there is none any more) and has
    these, of which `jobs` came with it."""
    if size is None:
        return "it is gone: it has ended, and was removed"
    if set(members) != set(jobs) or size != len(jobs):
        return "jobs were added to it, or deleted"
    begun = [job for job in jobs.values() if has_begun(job)]
    return f"{len(begun)} of its jobs have begun" if begun else None


def has_begun(job: Job) -> bool:
    return job.started_at is not None or job.state is JobState.ACTIVE


def dropped_from(origin: str) -> str:
    """Under which name it is noted what was dropped at a place: tables, by their names."""
    return f"dropped {origin}"


def to_table_notes(tables: Iterable[str]) -> list[dict[str, str | None]]:
    return [{"key": name, "checksum": "", "job_id": None} for name in tables]


def table_of(key: str, tables: Iterable[str]) -> str | None:
    """The one of these tables that a row with this key came from. Names of queues may have a slash
    in them, so the longest one that fits."""
    return max((name for name in tables if key.startswith(f"{name}/")), key=len, default=None)


def find_last_copies(
    notes: Iterable[ImportNote], tables: Collection[str], dropped: Collection[str]
) -> dict[str, str]:
    """The keys of what came from those of these tables that were dropped, and why it stays."""
    return {
        note.key: f"{name} was dropped there: this is the only copy"
        for note in notes
        if (name := table_of(note.key, tables)) in dropped
    }


def to_notes(arrivals: Sequence[Arrival]) -> list[dict[str, str | None]]:
    return [
        {
            "key": one.key,
            "checksum": one.checksum,
            "job_id": one.item.id if isinstance(one.item, CopiedJob) else None,
        }
        for one in arrivals
    ]


def find_fresh(arrivals: Sequence[Arrival], keys: Collection[str]) -> list[Arrival]:
    """Those with one of these keys, which are new; of the same job the first."""
    fresh: dict[str, Arrival] = {}
    for one in arrivals:
        if one.key in keys:
            fresh.setdefault(one.item.id, one)
    return list(fresh.values())


def to_parcel(origin: str, arrivals: Sequence[Arrival], last: int) -> Parcel:
    """The arrivals as a parcel, their jobs in their order after the place `last`."""
    items = [
        msgspec.structs.replace(one.item, place=last + number)
        if isinstance(one.item, CopiedJob)
        else one.item
        for number, one in enumerate(arrivals, 1)
    ]
    return Parcel(new_number(), origin, tuple(items))


def to_import(arrivals: Sequence[Arrival], keys: Collection[str], receipt: Receipt) -> Import:
    """What became of arrivals of which those with these keys are noted for the first time."""
    reasons = {
        one.key: receipt.refused[one.item.id]
        for one in arrivals
        if one.key in keys and one.item.id in receipt.refused
    }
    taken = [
        one
        for one in find_fresh(arrivals, keys)
        if one.key not in reasons and one.item.id not in receipt.known
    ]
    ours = {id(one) for one in taken}  # not by its key, which may come twice
    known = [one.key for one in arrivals if id(one) not in ours and one.key not in reasons]
    return Import([one.key for one in taken], known, reasons)


def find_disowned(keys: Collection[str], imported: Import) -> list[str]:
    """Those of the keys that are noted for the first time whose job is not theirs."""
    return sorted(set(keys) - set(imported.new) - set(imported.refused))
