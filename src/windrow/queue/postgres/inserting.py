"""New jobs: written once, for our own connections and for any that a caller brings.

`PostgresStore.insert_jobs` chooses the way. One row, or many that collide with nothing, are one
statement that commits by itself. The others are resolved by their modes in rounds, inside a
transaction: in each, the first row of every unique key that is not settled yet. A holder that
vanishes between two statements means that the row is inserted again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from windrow.db.transactions import Executor
from windrow.errors import InvalidJob, StoreConflict
from windrow.queue.job import UNCLAIMED, JobState
from windrow.queue.policy import following_itself, other_group
from windrow.queue.postgres.rows import Row, as_json, as_text, sql, to_inserted
from windrow.queue.records import Inserted, JobRow, are_alike

MOST_AT_ONCE: Final = 2 * 1024 * 1024  # bytes of payloads that one statement takes
_SPARE_ROUNDS: Final = 20  # for keys that others take and free meanwhile

# The fields that rows may share, and the parameter that has one for each row if they differ.
_EACH: Final = {
    "queue": "queues",
    "kind": "kinds",
    "headers": "headers_each",
    "tags": "tags_each",
    "priority": "priorities",
    "run_at": "run_ats",
    "delay": "delays",
    "tenant": "tenants",
    "max_attempts": "max_attempts_each",
    "max_crashes": "max_crashes_each",
    "lease_seconds": "leases",
    "retention_seconds": "retentions",
    "limits": "limits_each",
    "max_hold_seconds": "max_holds",
    "is_cleaned": "are_cleaned",
}


@dataclass(slots=True)
class Insertion:
    """What became of the rows, and what follows from it."""

    outcomes: list[Inserted | None]
    joined: Counter[str] = field(default_factory=Counter)  # new members by group
    ready_queues: set[str] = field(default_factory=set)  # of jobs that were replaced in place
    followed_keys: set[str] = field(default_factory=set)  # that have a new follower

    def all_outcomes(self) -> list[Inserted]:
        return [outcome for outcome in self.outcomes if outcome is not None]


async def insert_rows(
    executor: Executor,
    rows: Sequence[JobRow],
    now: datetime | None,
    *,
    is_lenient: bool = False,
    is_callers: bool = False,
    is_late: bool = False,
    is_patient: bool = False,
) -> Insertion:
    """Insert rows inside a transaction. Members are not counted to their groups yet. `is_lenient`:
    a row that may not replace or follow its holder is dropped, instead of raising InvalidJob.
    `is_callers`: the transaction is, and may last as long as the caller likes. `is_late`: it has
    locked jobs before. `is_patient`: it waits even then, because it cannot be done again."""
    inserter = _Inserter(executor, rows, now, is_lenient=is_lenient, is_callers=is_callers)
    await inserter.insert_all(is_late=is_late, is_patient=is_patient or is_callers)
    return inserter.insertion


async def insert_row(executor: Executor, row: JobRow, now: datetime | None) -> Inserted | None:
    """Insert a row outside groups by one statement; None if something is in its way, and nothing is
    written: its unique key is taken, or its queue is bounded."""
    if row.may_exist:
        known = await executor.fetch(sql("find_known"), {"ids": as_json([row.id])})
        if known:
            return to_inserted(known[0], "existing")
    found = await executor.fetch(sql("insert_job"), _to_values(row, now))
    if not found:
        return None
    [new] = found
    state = JobState(new["state"])
    return Inserted(row.id, "inserted", new["seq"], state, new["run_at"], new["created_at"])


def _to_values(row: JobRow, now: datetime | None) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(row),
        "payload": bytes(row.payload).decode(),
        "headers": _json_text(row.headers),
        "tags": row.tags or None,  # an empty array would have to be written, sent and read
        "limits": row.limits or None,
        "now": now,
    }


async def lock_ahead(
    executor: Executor, rows: Sequence[JobRow], *, leaving: Container[str]
) -> set[str]:
    """For who locks jobs before he inserts rows: the ids of jobs that these will want to replace,
    to be locked with them. What else they will want to lock first is locked now. `leaving`: jobs
    that end meanwhile."""
    keyed = [row for row in rows if row.unique and row.on_conflict in ("replace", "follow")]
    if not keyed:
        return set()
    found = await executor.fetch(sql("find_holders"), {"rows": as_json(keyed)})
    in_groups = {row.id for row in keyed if row.group is not None and row.on_conflict == "follow"}
    running = [row for row in found if JobState(row["state"]) not in UNCLAIMED]
    if any(str(r["wanted_by"]) in in_groups and str(r["id"]) not in leaving for r in running):
        await executor.fetch(sql("lock_following"), {})
    return {str(row["id"]) for row in found if JobState(row["state"]) in UNCLAIMED}


class _Inserter:
    def __init__(
        self,
        executor: Executor,
        rows: Sequence[JobRow],
        now: datetime | None,
        *,
        is_lenient: bool = False,
        is_callers: bool = False,
    ) -> None:
        self.insertion = Insertion([None] * len(rows))
        self._executor = executor
        self._rows = rows
        self._now = as_text(now)
        self._is_lenient = is_lenient
        self._is_callers = is_callers
        self._is_late = False
        self._is_patient = True

    @property
    def _unsettled(self) -> list[int]:
        """Places of the rows without an outcome, in order."""
        outcomes = self.insertion.outcomes
        return [place for place, outcome in enumerate(outcomes) if outcome is None]

    async def insert_all(self, *, is_late: bool, is_patient: bool) -> None:
        self._is_late = is_late
        self._is_patient = is_patient
        await self._settle_repeated()
        plain = [place for place in self._unsettled if not self._rows[place].unique]
        await self._settle_keys(plain)
        keys = Counter(_key(row) for row in self._rows)
        self._is_late = True
        for _ in range(max(keys.values(), default=0) + _SPARE_ROUNDS):
            if not self._unsettled:
                return
            await self._settle_known()
            await self._settle_keys()
        if self._unsettled:
            raise StoreConflict("unique keys are taken and freed faster than they can be looked at")

    async def _insert(self, places: Iterable[int], followers: Iterable[int] = ()) -> None:
        """Insert rows by one statement, some of them as followers of their keys."""
        following = set(followers)
        chosen = sorted({*places, *following})
        if not chosen:
            return
        found = await self._run(
            "insert_jobs",
            chosen,
            following,
            are_drafted="true" if self._is_callers else "false",
        )
        by_id = {str(row["id"]): row for row in found}
        for place in chosen:
            given = self._rows[place]
            if row := by_id.pop(given.id, None):
                self.insertion.outcomes[place] = to_inserted(row, "inserted")
                if given.group is not None:
                    self.insertion.joined[given.group] += 1
                if place in following and given.unique is not None:
                    self.insertion.followed_keys.add(given.unique)

    @property
    def _has_keys(self) -> bool:
        """Whether a row with a key was inserted."""
        outcomes = zip(self._rows, self.insertion.outcomes, strict=True)
        return any(row.unique and one and one.outcome == "inserted" for row, one in outcomes)

    async def _settle_known(self) -> None:
        """Rows whose id is already there were inserted before: by an earlier try, or twice."""
        places = [p for p in self._unsettled if self._rows[p].may_exist or not self._rows[p].unique]
        if not places:
            return
        known = await self._find_known(places)
        await self._insert([p for p in places if p not in known and not self._rows[p].unique])

    async def _settle_repeated(self) -> None:
        """Rows that may have been inserted before, and even have ended since, are looked for first:
        an insert collides with live jobs only, and has no need to look into every leaf of the
        finished ones for rows that are new."""
        places = [place for place, row in enumerate(self._rows) if row.may_exist]
        if places:
            await self._find_known(places)

    async def _find_known(self, places: Sequence[int]) -> set[int]:
        """Those rows that are there already, with their outcome."""
        ids = as_json([self._rows[place].id for place in places])
        found = await self._executor.fetch(sql("find_known"), {"ids": ids})
        by_id = {str(row["id"]): row for row in found}
        known = {place for place in places if self._rows[place].id in by_id}
        for place in known:
            row = by_id[self._rows[place].id]
            self.insertion.outcomes[place] = to_inserted(row, "existing")
        return known

    async def _settle_keys(self, plain: Sequence[int] = ()) -> None:
        """One round: every key's holder is looked at once, and changed at most once. Rows without a
        key come in with those whose key is free, in the order given.

        An insert waits for whoever is just freeing its key, and if that one waits for a key of ours
        neither gets on. So a holder that is seen is dealt with as it is; rows are locked, to be
        replaced, before the first key is taken, as everywhere; and all keys are taken by one
        statement, in their order. Where another would be needed, all is done again."""
        by_key: defaultdict[tuple[str | None, str], list[int]] = defaultdict(list)
        for place in self._unsettled:
            if self._rows[place].unique is not None:
                by_key[_key(self._rows[place])].append(place)
        holders = await self._find_holders([places[0] for places in by_key.values()])
        steps: defaultdict[str, list[int]] = defaultdict(list)
        firsts: dict[int, Row | None] = {}
        for places in by_key.values():
            first, follower = holders.get(self._rows[places[0]].id, (None, None))
            for place in places:
                step = self._step(place, first, follower)
                if step is not None:
                    steps[step].append(place)
                    firsts[place] = first
                    break
        followers = steps["insert follower"]
        if steps["follow in group"]:
            await self._lock_following()
            holders_of = {place: firsts[place] for place in steps["follow in group"]}
            followers += await self._choose_followers(holders_of)
        if (followers or steps["insert first"]) and self._has_keys and not self._is_patient:
            raise StoreConflict("a key was taken and freed while others were taken")
        await self._replace(steps["replace first"], steps["replace follower"])
        await self._insert([*plain, *steps["insert first"]], followers)

    async def _lock_following(self) -> None:
        """The lock comes before those on jobs. Who comes late gets it at once or not at all."""
        if not self._is_late or self._is_patient:
            await self._executor.fetch(sql("lock_following"), {})
            return
        [found] = await self._executor.fetch(sql("seize_following"), {})
        if not found["is_alone"]:
            raise StoreConflict("somebody else makes members of groups followers just now")

    def _step(self, place: int, first: Row | None, follower: Row | None) -> str | None:
        """What is to be written for a row, or None: it has its outcome."""
        row = self._rows[place]
        if first is None:
            return "insert first"
        is_unclaimed = JobState(first["state"]) in UNCLAIMED
        if row.on_conflict == "reject":
            self.insertion.outcomes[place] = to_inserted(first, "rejected")
            return None
        if row.on_conflict == "return" or (row.on_conflict == "replace" and not is_unclaimed):
            self.insertion.outcomes[place] = to_inserted(first, "existing")
            return None
        if not is_unclaimed and follower is None:
            return "insert follower" if row.group is None else "follow in group"
        target = first if is_unclaimed or follower is None else follower
        if _text(target["group_id"]) != row.group:
            self._refuse(place, other_group(row.unique, target["id"]))
            return None
        return "replace first" if is_unclaimed else "replace follower"

    def _refuse(self, place: int, reason: str) -> None:
        if not self._is_lenient:
            raise InvalidJob(reason)
        self.insertion.outcomes[place] = Inserted(self._rows[place].id, "dropped")

    async def _choose_followers(self, holders: Mapping[int, Row | None]) -> list[int]:
        """Those rows that may follow their holders as members of a group: not one that would wait
        for itself, also by way of those chosen before it, which are not written yet."""
        roots: dict[str, set[str]] = {}  # by group: who cannot end before a new member of it has
        chosen: list[int] = []
        edges: list[tuple[str, str]] = []  # who is followed, and in which group
        for place, holder in holders.items():
            group = self._rows[place].group
            if holder is None or group is None:
                continue
            if group not in roots:
                roots[group] = await self._find_dependents(group)
            holder_id = str(holder["id"])
            if holder_id in _all_roots(group, roots, edges):
                self._refuse(place, following_itself(self._rows[place].unique, holder_id, group))
            else:
                chosen.append(place)
                edges.append((holder_id, group))
        return chosen

    async def _find_dependents(self, group: str) -> set[str]:
        found = await self._executor.fetch(sql("find_dependents"), {"ids": as_json([group])})
        return {str(row["root"]) for row in found}

    async def _find_holders(self, places: list[int]) -> dict[str, tuple[Row | None, Row | None]]:
        """The first one and the follower of the rows' keys, by the rows' ids."""
        if not places:
            return {}
        found = await self._executor.fetch(sql("find_holders"), {"rows": self._as_json(places)})
        holders: dict[str, tuple[Row | None, Row | None]] = {}
        for row in found:
            wanted_by = str(row["wanted_by"])
            first, follower = holders.get(wanted_by, (None, None))
            holders[wanted_by] = (first, row) if row["is_follower"] else (row, follower)
        return holders

    async def _replace(self, firsts: list[int], followers: list[int]) -> None:
        places = [*firsts, *followers]
        if not places:
            return
        found = await self._run("replace_jobs", places, followers)
        by_id = {str(row["wanted_by"]): row for row in found}
        for place in places:
            if row := by_id.get(self._rows[place].id):
                self.insertion.outcomes[place] = to_inserted(row, "replaced")
                self.insertion.ready_queues.add(row["queue"])

    async def _run(
        self, name: str, places: list[int], followers: Iterable[int], **given: str
    ) -> Sequence[Row]:
        values = {
            **given,
            "rows": self._as_json(places),
            "followers": as_json([self._rows[place].id for place in followers]),
            "now": self._now,
        }
        return await self._executor.fetch(sql(name), values)

    def _as_json(self, places: list[int]) -> str:
        return as_json([self._rows[place] for place in places])


def in_parts(rows: Sequence[JobRow]) -> list[Sequence[JobRow]]:
    """Rows in their order, in parts that are each not too much for one statement."""
    sizes = [len(bytes(row.payload)) for row in rows]
    if sum(sizes) <= MOST_AT_ONCE:
        return [rows]
    starts, size = [0], 0
    for place, length in enumerate(sizes):
        size += length
        if size > MOST_AT_ONCE and place > starts[-1]:
            starts.append(place)
            size = length
    return [rows[start:end] for start, end in zip(starts, [*starts[1:], len(rows)], strict=True)]


async def insert_many(
    executor: Executor, rows: Sequence[JobRow], now: datetime | None
) -> list[Inserted] | None:
    """Insert plain rows by one statement; None if a queue among theirs is bounded."""
    found = await executor.fetch(sql("insert_many"), _to_columns(rows, now))
    if not found:
        return None
    [new] = found
    created_at, due_ats = new["created_at"], new["due_ats"]
    if len(due_ats) < len(rows):
        due_ats *= len(rows)
    ready, held, scheduled = JobState.READY, JobState.HELD, JobState.SCHEDULED
    return [
        Inserted(
            row.id,
            "inserted",
            seq,
            scheduled if due_at > created_at else held if row.limits else ready,
            due_at,
            created_at,
        )
        for row, seq, due_at in zip(rows, new["seqs"], due_ats, strict=True)
    ]


def _to_columns(rows: Sequence[JobRow], now: datetime | None) -> dict[str, Any]:
    """What all rows share once, the rest as arrays."""
    values = {
        **_to_values(rows[0], now),
        **dict.fromkeys(_EACH.values()),
        "ids": [row.id for row in rows],
        "payloads": [bytes(row.payload).decode() for row in rows],
    }
    if are_alike(rows):
        return values
    for name, each in _EACH.items():
        column = [getattr(row, name) for row in rows]
        if column.count(column[0]) < len(column):
            values[name] = None
            values[each] = [_TEXTS[name](value) for value in column] if name in _TEXTS else column
    return values


def _json_text(value: msgspec.Raw | None) -> str | None:
    return None if value is None else bytes(value).decode()


def _array_text(texts: Sequence[str]) -> str | None:
    """An array as one text: Postgres has no arrays of arrays of different lengths."""
    quoted = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}" if quoted else None


# Fields that are texts where there is one for each row.
_TEXTS: Final[Mapping[str, Callable[[Any], str | None]]] = {
    "headers": _json_text,
    "tags": _array_text,
    "limits": _array_text,
}


def _all_roots(
    group: str, roots: Mapping[str, set[str]], edges: Sequence[tuple[str, str]]
) -> set[str]:
    """The roots that wait for a group, and by way of `edges` for the groups of their followers."""
    found: set[str] = set()
    groups, looked_at = [group], set[str]()
    while groups:
        one = groups.pop()
        if one not in looked_at:
            looked_at.add(one)
            found |= roots[one]
            groups += [of for followed, of in edges if followed in roots[one]]
    return found


def _key(row: JobRow) -> tuple[str | None, str]:
    return row.tenant, row.unique or ""


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
