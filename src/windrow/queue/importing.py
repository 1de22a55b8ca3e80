"""Taking in jobs from tables that are not Windrow's: see `services/migration`.

An arrival is a row of such a table with the job it becomes. Arrivals are noted by the place they
came from and their key there, in the transaction that writes their jobs: one that comes again
changes nothing, also when its job has run and is pruned. The jobs go the way that copied ones go.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import msgspec

from windrow.queue.copying import CopiedGroup, CopiedJob, CopyStore, Parcel, Receipt, new_number


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    key: str  # of the row, where it comes from
    checksum: str  # of the row
    item: CopiedJob | CopiedGroup


@dataclass(frozen=True, slots=True)
class Import:
    """What became of arrivals, by their keys. The refused can be tried again."""

    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportNote:
    key: str
    checksum: str
    job_id: str | None  # None for a group
    imported_at: datetime


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

    async def forget_imported(self, origin: str, keys: Sequence[str]) -> None:
        """Let these be taken in again."""
        ...


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


def to_import(
    arrivals: Sequence[Arrival], fresh: Sequence[Arrival], receipt: Receipt | None
) -> Import:
    refused = {} if receipt is None else receipt.refused
    reasons = {one.key: refused[one.item.id] for one in fresh if one.item.id in refused}
    new = [one.key for one in fresh if one.key not in reasons]
    taken = {id(one) for one in fresh}  # not by its key, which may come twice
    known = [one.key for one in arrivals if id(one) not in taken]
    return Import(new, known, reasons)
