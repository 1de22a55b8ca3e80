"""Inserting jobs: decided in memory, row by row, then written in a few statements.

All reading and refusing comes before the first write. It needs the write lock from the start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

import msgspec

from windrow.errors import GroupEnded, GroupNotFound, InvalidJob
from windrow.queue.job import UNCLAIMED
from windrow.queue.policy import following_itself, other_group
from windrow.queue.records import Inserted, InsertOutcome, JobRow, are_alike, are_plain
from windrow.queue.sqlite.alike import alike_steps
from windrow.queue.sqlite.keys import key_values, pack_keys, unpack_id
from windrow.queue.sqlite.rows import raw_text, to_json, to_state, to_time
from windrow.queue.sqlite.steps import (
    Step,
    Steps,
    Values,
    due_at,
    due_state,
    keep_bounds,
    run_steps,
)
from windrow.queue.sqlite.work import Work, event_rows

Key = tuple[str | None, str]


class _Place(msgspec.Struct, eq=False):
    """A job that holds, or is about to hold, an id and perhaps a key."""

    id: str
    state: str
    run_at: int
    created_at: int
    seq: int = 0
    group: str | None = None
    former: tuple[str, str] | None = None  # queue and state in the tally, of a job already there
    row: JobRow | None = None  # contents to be written
    is_follower: bool = False
    root_of: str | None = None


_KEY: Final = attrgetter("row.queue", "row.kind", "row.tenant", "group")
_ID: Final = attrgetter("id")


def insert_now(work: Work, rows: Sequence[JobRow], *, drops: bool = False) -> list[Inserted]:
    """Insert in the writer's transaction. `drops`: what a group does not take is left out, instead
    of refusing it all."""
    return run_steps(work, insert_steps(rows, work.now, drops=drops))


def insert_steps(
    rows: Sequence[JobRow], now: int, *, drops: bool = False, keeps_bounds: bool = False
) -> Steps:
    """The whole insertion, one outcome per row. `keeps_bounds`: refuse what a queue has no room
    for; else that is seen to by the caller."""
    if rows and are_plain(rows) and are_alike(rows):
        if keeps_bounds:
            yield from keep_bounds(Counter({rows[0].queue: len(rows)}))
        return (yield from alike_steps(rows, now))
    plan = _Plan(now, drops)
    if any(row.may_exist for row in rows):
        plan.add_known((yield _find_known(rows)))
    wanted = [row for row in rows if row.id not in plan.known]
    if any(row.group is not None for row in wanted):
        plan.add_groups((yield _find_groups(wanted)))
    if any(row.group_key is not None for row in wanted):
        plan.add_group_keys((yield _find_group_keys(wanted)))
    if any(row.unique is not None for row in wanted):
        plan.add_holders((yield _find_holders(wanted)))
    if joining := plan.groups_to_follow_in(wanted):
        plan.add_dependents((yield "find_dependents", {"ids": to_json(sorted(joining))}))
    decided = [plan.decide(row) for row in rows]
    if keeps_bounds:
        yield from keep_bounds(plan.added())
    yield from plan.write()
    moments = {now: to_time(now)}  # most rows are due, and all new ones made, at the same moment
    return [_to_inserted(outcome, place, moments) for outcome, place in decided]


class _Plan:
    """What is there, and what becomes of each row."""

    def __init__(self, now: int, drops: bool) -> None:
        self.now = now
        self.drops = drops
        self.known: dict[str, _Place] = {}
        self._open_groups: dict[str, bool] = {}
        self._rooms: dict[str, int] = {}  # of groups that take so many more members
        self._group_keys: dict[tuple[str, str], str] = {}  # and the jobs that have them
        self._new_keys: list[Values] = []
        self._holders: dict[Key, _Place] = {}
        self._followers: dict[Key, _Place] = {}
        self._dependents: dict[str, Any] = {}
        self._new: list[_Place] = []
        self._replaced: dict[str, _Place] = {}

    def add_known(self, found: Sequence[Any]) -> None:
        for one in found:
            self.known[one["id"]] = _existing(one)

    def add_groups(self, found: Sequence[Any]) -> None:
        for one in found:
            self._open_groups[one["id"]] = bool(one["takes_members"])
            if one["room"] is not None:
                self._rooms[one["id"]] = one["room"]

    def add_group_keys(self, found: Sequence[Any]) -> None:
        for one in found:
            key = unpack_id(one["group_id"]), one["key"].hex()
            self._group_keys[key] = unpack_id(one["job_id"])

    def add_holders(self, found: Sequence[Any]) -> None:
        for one in found:
            place = _existing(one)
            place.group = one["group_id"]
            place.former = (one["queue"], one["state"])
            place.is_follower = bool(one["is_follower"])
            place.root_of = one["root_of"]
            places = self._followers if place.is_follower else self._holders
            places[one["tenant"], one["unique_key"]] = place

    def groups_to_follow_in(self, rows: Sequence[JobRow]) -> set[str]:
        """Groups of rows that may become followers, if the root of some group is to be followed."""
        if not any(holder.root_of is not None for holder in self._holders.values()):
            return set()
        return {row.group for row in rows if row.group and row.on_conflict == "follow"}

    def add_dependents(self, found: Sequence[Any]) -> None:
        for one in found:
            self._dependents[one["id"]] = one

    def decide(self, row: JobRow) -> tuple[InsertOutcome, _Place]:
        if place := self.known.get(row.id):
            return "existing", place
        if row.group is not None and not self._takes(row.group):
            return "dropped", self._nowhere(row)
        if holder := self._group_keys.get((row.group or "", row.group_key or "")):
            return "left_out", self._nowhere(row, holder)
        if row.unique is None:
            return self._insert(row)
        return self._decide_by_key(row, (row.tenant, row.unique))

    def _takes(self, group: str) -> bool:
        if self._open_groups.get(group):
            return True
        if self.drops:
            return False
        raise GroupEnded(group) if group in self._open_groups else GroupNotFound(group)

    def _decide_by_key(self, row: JobRow, key: Key) -> tuple[InsertOutcome, _Place]:
        holder = self._holders.get(key)
        if holder is None:
            outcome, place = self._insert(row)
            if outcome == "inserted":
                self._holders[key] = place
            return outcome, place
        match row.on_conflict:
            case "return":
                return "existing", holder
            case "reject":
                return "rejected", holder
            case "replace":
                if holder.state in UNCLAIMED:
                    return self._replace(holder, row)
                return "existing", holder
            case "follow":
                if holder.state in UNCLAIMED:
                    return self._replace(holder, row)
                if follower := self._followers.get(key):
                    return self._replace(follower, row)
                if row.group is not None and self._waits_for(holder, row.group):
                    return self._refuse(row, following_itself(row.unique, holder.id, row.group))
                outcome, place = self._insert(row, is_follower=True)
                if outcome == "inserted":
                    self._followers[key] = place
                return outcome, place

    def _insert(self, row: JobRow, *, is_follower: bool = False) -> tuple[InsertOutcome, _Place]:
        if row.group is not None and not self._joins(row, row.group):
            return "left_out", self._nowhere(row)
        run_at = due_at(row, self.now)
        state = "held" if is_follower else due_state(row, run_at, self.now)
        place = _Place(row.id, state, run_at, self.now, 0, row.group, None, row, is_follower)
        self._new.append(place)
        if row.may_exist:
            self.known[row.id] = place
        return "inserted", place

    def _joins(self, row: JobRow, group: str) -> bool:
        """Whether the group has room for it; then it takes its key too."""
        if group in self._rooms:
            if self._rooms[group] <= 0:
                return False
            self._rooms[group] -= 1
        if row.group_key is not None:
            self._group_keys[group, row.group_key] = row.id
            self._new_keys.append(key_values(group, row.group_key, row.id))
        return True

    def _replace(self, place: _Place, row: JobRow) -> tuple[InsertOutcome, _Place]:
        if place.group != row.group:
            return self._refuse(row, other_group(row.unique, place.id))
        place.row = row
        place.run_at = due_at(row, self.now)
        place.state = "held" if place.is_follower else due_state(row, place.run_at, self.now)
        if place.former is not None:
            self._replaced[place.id] = place
        return "replaced", place

    def _waits_for(self, holder: _Place, group: str) -> bool:
        """Whether a job can only end when a new member of a group has. Followers that are about to
        be written count as those that are there."""
        looked_at: set[str] = set()
        groups = [group] if holder.root_of is not None else []
        while groups:
            dependent = self._dependents.get(groups.pop())
            if dependent is None or dependent["id"] in looked_at:
                continue
            if dependent["root"] == holder.id:
                return True
            looked_at.add(dependent["id"])
            new = self._followers.get((dependent["tenant"], dependent["unique_key"]))
            above = (
                dependent["root_group"],
                dependent["follower_group"],
                new.group if new else None,
            )
            groups += [one for one in above if one is not None]
        return False

    def _refuse(self, row: JobRow, reason: str) -> tuple[InsertOutcome, _Place]:
        if not self.drops:
            raise InvalidJob(reason)
        return "dropped", self._nowhere(row)

    def _nowhere(self, row: JobRow, holder: str | None = None) -> _Place:
        run_at = due_at(row, self.now)
        return _Place(holder or row.id, due_state(row, run_at, self.now), run_at, self.now)

    def added(self) -> Counter[str]:
        """New jobs by queue."""
        return Counter(place.row.queue for place in self._new if place.row is not None)

    def write(self) -> Generator[Step, Sequence[Any], None]:
        if self._new:
            [last] = yield "find_last_seq", {}
            for seq, place in enumerate(self._new, last["seq"] + 1):
                place.seq = seq
            yield "insert_jobs", [_job_values(place) for place in self._new]
            yield "insert_payloads", [_payload_values(place) for place in self._new]
        if self._replaced:
            yield "replace_jobs", [_job_values(place) for place in self._replaced.values()]
            yield "replace_payloads", [_payload_values(place) for place in self._replaced.values()]
            # They were made from the former payload.
            seqs = to_json([place.seq for place in self._replaced.values()])
            yield "delete_steps", [{"seqs": seqs}]
        if members := Counter(place.group for place in self._new if place.group is not None):
            yield "add_to_groups", [{"id": id, "count": members[id]} for id in sorted(members)]
        if self._new_keys:
            yield "add_group_keys", self._new_keys
        if counts := self._count():
            yield "add_counts", counts
        if self._new:
            yield "add_events", self._events()

    def _events(self) -> list[Values]:
        by_state: defaultdict[str, list[_Place]] = defaultdict(list)
        for place in self._new:
            by_state[place.state].append(place)
        return [
            event
            for state, places in by_state.items()
            for event in event_rows(self.now, "job.created", state, places, _KEY, _ID)
        ]

    def _count(self) -> list[Values]:
        counts: Counter[tuple[str, str]] = Counter()
        for place in (*self._new, *self._replaced.values()):
            if place.row is not None:
                counts[place.row.queue, place.state] += 1
            if place.former is not None:
                counts[place.former] -= 1
        return [
            {"queue": queue, "state": state, "count": count}
            for (queue, state), count in counts.items()
            if count
        ]


def _find_known(rows: Sequence[JobRow]) -> Step:
    return "find_known", {"ids": to_json([row.id for row in rows if row.may_exist])}


def _find_groups(rows: Sequence[JobRow]) -> Step:
    ids = {row.group for row in rows if row.group is not None}
    return "find_groups", {"ids": to_json(sorted(ids))}


def _find_group_keys(rows: Sequence[JobRow]) -> Step:
    keys = {(row.group, row.group_key): None for row in rows if row.group and row.group_key}
    return "find_group_keys", {"keys": pack_keys(keys)}


def _find_holders(rows: Sequence[JobRow]) -> Step:
    keys = {(row.tenant, row.unique): None for row in rows if row.unique is not None}
    return "find_holders", {"keys": to_json(list(keys))}


def _existing(found: Any) -> _Place:
    return _Place(found["id"], found["state"], found["run_at"], found["created_at"], found["seq"])


def _row_of(place: _Place) -> JobRow:
    if place.row is None:
        raise RuntimeError(f"nothing is to be written for the job {place.id}")
    return place.row


def _job_values(place: _Place) -> Values:
    row = _row_of(place)
    return {
        "seq": place.seq,
        "id": place.id,
        "queue": row.queue,
        "kind": row.kind,
        "state": place.state,
        "priority": row.priority,
        "run_at": place.run_at,
        "created_at": place.created_at,
        "max_attempts": row.max_attempts,
        "max_crashes": row.max_crashes,
        "lease_seconds": row.lease_seconds,
        "retention_seconds": row.retention_seconds,
        "tenant": row.tenant,
        "group_id": row.group,
        "unique_key": row.unique,
        "is_follower": place.is_follower,
        "limit_keys": to_json(row.limits) if row.limits else None,
        "fair_key": row.limits[0] if row.limits else None,
        "max_hold_seconds": row.max_hold_seconds,
    }


def _payload_values(place: _Place) -> Values:
    row = _row_of(place)
    return {
        "seq": place.seq,
        "payload": raw_text(row.payload),
        "headers": "" if row.headers is None else raw_text(row.headers),
        "tags": to_json(row.tags) if row.tags else "",
        "is_cleaned": int(row.is_cleaned),
    }


def _to_inserted(outcome: InsertOutcome, place: _Place, moments: dict[int, datetime]) -> Inserted:
    run_at = moments.get(place.run_at) or to_time(place.run_at)
    created_at = moments.get(place.created_at) or to_time(place.created_at)
    return Inserted(place.id, outcome, place.seq, to_state(place.state), run_at, created_at)
