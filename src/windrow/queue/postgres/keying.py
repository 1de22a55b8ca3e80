"""Who gets into a group: jobs whose key it never had, and no more than it takes.

Both are decided under the lock of the group's row. Jobs with a group key are inserted after that
was taken, and wait for nobody, since they have no unique key. The others are inserted before it, as
ever; if the group turns out to be too full for them, it is all done again without the last ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windrow.db.transactions import Executor
from windrow.queue.postgres.inserting import Insertion, insert_rows
from windrow.queue.postgres.rows import Row, as_json, sql, to_inserted
from windrow.queue.records import Inserted, InsertOutcome, JobRow

# How many more members groups take; those that are not in it take any number.
Rooms = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of many, and what became of them."""

    rows: Sequence[JobRow]
    insertion: Insertion

    @classmethod
    def of(cls, rows: Sequence[JobRow], outcome: InsertOutcome) -> Part:
        return cls(rows, Insertion([Inserted(row.id, outcome) for row in rows]))


class Overfull(Exception):
    """Rows were inserted that their groups have no room for, and are to be left out."""

    def __init__(self, ids: frozenset[str]) -> None:
        super().__init__(ids)
        self.ids = ids


def split(rows: Sequence[JobRow]) -> tuple[list[JobRow], list[JobRow]]:
    """Rows that come before the lock on their groups, and after it: those with a group key, and
    what is to join the same groups in its turn."""
    groups = {row.group for row in rows if row.group_key is not None}
    before: list[JobRow] = []
    after: list[JobRow] = []
    for row in rows:
        is_late = row.group is not None and row.group in groups and row.unique is None
        (after if is_late else before).append(row)
    return before, after


def groups_of(rows: Iterable[JobRow]) -> set[str]:
    return {row.group for row in rows if row.group is not None}


def rooms_of(locked: Iterable[Row], joined: Mapping[str, int]) -> dict[str, int]:
    """The room in groups that so many have joined since their rows were written."""
    return {
        str(row["id"]): row["room"] - joined.get(str(row["id"]), 0)
        for row in locked
        if row["room"] is not None
    }


def find_surplus(rows: Sequence[JobRow], insertion: Insertion, rooms: Rooms) -> frozenset[str]:
    """The ids of the rows just inserted that their groups have no room for: the last ones. `rooms`
    is what is left with all of them in."""
    short = {group: -room for group, room in rooms.items() if room < 0}
    surplus = set()
    for row, outcome in zip(reversed(rows), reversed(insertion.outcomes), strict=True):
        is_new = outcome is not None and outcome.outcome == "inserted"
        if row.group is not None and is_new and short.get(row.group, 0) > 0:
            short[row.group] -= 1
            surplus.add(row.id)
    return frozenset(surplus)


async def find_repeated(executor: Executor, rows: Sequence[JobRow]) -> tuple[Part, list[JobRow]]:
    """Rows that were inserted before, whatever became of their groups since then; the others."""
    ids = [row.id for row in rows if row.may_exist]
    if not ids:
        return Part([], Insertion([])), [*rows]
    found = await executor.fetch(sql("find_known"), {"ids": as_json(ids)})
    by_id = {str(row["id"]): row for row in found}
    repeated = [row for row in rows if row.id in by_id]
    existing = [to_inserted(by_id[row.id], "existing") for row in repeated]
    return Part(repeated, Insertion([*existing])), [row for row in rows if row.id not in by_id]


async def insert_keyed(
    executor: Executor,
    rows: Sequence[JobRow],
    rooms: Rooms,
    now: datetime | None,
    *,
    is_callers: bool = False,
) -> Insertion:
    """Insert rows without a unique key; their groups are locked, and take members."""
    if not rows:
        return Insertion([])
    outcomes = await _take_keys(executor, rows, rooms)
    chosen = [row for row, outcome in zip(rows, outcomes, strict=True) if outcome is None]
    if not chosen:
        return Insertion(outcomes)
    insertion = await insert_rows(executor, chosen, now, is_callers=is_callers)
    inserted = iter(insertion.outcomes)
    insertion.outcomes = [next(inserted) if one is None else one for one in outcomes]
    return insertion


async def _take_keys(
    executor: Executor, rows: Sequence[JobRow], rooms: Rooms
) -> list[Inserted | None]:
    """Take the keys of the rows that get in; the outcome of the others. Of rows with the same key
    the first one counts."""
    firsts: dict[tuple[str | None, str], JobRow] = {}
    for row in rows:
        firsts.setdefault(_key(row), row)
    given = [_as_given(place, row, rooms) for place, row in enumerate(firsts.values())]
    found = await executor.fetch(sql("take_group_keys"), {"rows": as_json(given)})
    decisions = dict(zip(firsts, found, strict=True))
    outcomes: list[Inserted | None] = []
    for row in rows:
        first, decision = firsts[_key(row)], decisions[_key(row)]
        if not decision["is_taken"]:
            outcomes.append(Inserted(str(decision["job_id"] or row.id), "left_out"))
        else:
            outcomes.append(None if first is row else Inserted(first.id, "left_out"))
    return outcomes


def _key(row: JobRow) -> tuple[str | None, str]:
    return row.group, row.group_key or row.id


def _as_given(place: int, row: JobRow, rooms: Rooms) -> dict[str, Any]:
    return {
        "place": place,
        "id": row.id,
        "group": row.group,
        "group_key": row.group_key,
        "room": rooms.get(row.group or ""),
    }


def put_together(
    rows: Sequence[JobRow], parts: Iterable[Part], others: InsertOutcome = "left_out"
) -> Insertion:
    """The insertion of rows that were inserted in parts, and what became of those in none."""
    outcomes: dict[int, Inserted | None] = {}
    whole = Insertion([])
    for part in parts:
        given = zip(part.rows, part.insertion.outcomes, strict=True)
        outcomes |= {id(row): outcome for row, outcome in given}
        whole.joined += part.insertion.joined
        whole.ready_queues |= part.insertion.ready_queues
        whole.followed_keys |= part.insertion.followed_keys
    whole.outcomes = [outcomes.get(id(row)) or Inserted(row.id, others) for row in rows]
    return whole
