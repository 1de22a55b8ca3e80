"""One verb's share of a transaction: its statements, its time, and what it owes at the end.

Verbs note what follows from their changes (counts, groups, freed keys, roots that ended badly)
while they go; `settling.settle` does it, once per group and queue, before the transaction ends.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, Final

from windrow.db.statements import load_statement
from windrow.queue.job import JobError
from windrow.queue.sqlite.rows import GroupRecord, LiveJob, to_json, to_micros

PACKAGE: Final = "windrow.queue.sqlite"
_LONGEST_ERROR: Final = 500  # characters of a job's short error text

# What an event tells of a job, and where it is in a row: queue, kind, tenant, group; and the id.
Key = tuple[str | None, str | None, str | None, str | None]
Find = Callable[[Any], Any]
_KEY: Final = attrgetter("queue", "kind", "tenant", "group_id")
_ID: Final = attrgetter("id")


def statement(name: str) -> str:
    return load_statement(PACKAGE, name).text


@cache
def by_place(name: str) -> tuple[str, Callable[[Mapping[str, Any]], tuple[Any, ...]]]:
    """A statement whose parameters are numbered, and what puts values in that order. To look up a
    value by its name takes the driver longer than to bind it."""
    found = load_statement(PACKAGE, name)
    names = found.parameters
    text = found.written(**{one: f"?{place}" for place, one in enumerate(names, 1)})
    if len(names) > 1:
        return text, itemgetter(*names)
    return text, lambda values: tuple(values[one] for one in names)


class Work:
    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self.now = now
        self._connection = connection
        self.counts: Counter[tuple[str, str]] = Counter()
        self.groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.freed: list[tuple[str | None, str]] = []
        self.orphaned: dict[str, str] = {}
        self.ready_queues: set[str] = set()  # where there is more to claim, or to let go
        self.ended: set[str] = set()
        self.events: list[Mapping[str, Any]] = []
        self.has_events = False

    def run(self, name: str, values: Mapping[str, Any]) -> int:
        """Run a statement; returns how many rows it changed."""
        text, in_order = by_place(name)
        return self._connection.execute(text, in_order(values)).rowcount

    def run_many(self, name: str, values: Sequence[Mapping[str, Any]]) -> None:
        if not values:
            return
        text, in_order = by_place(name)
        self._connection.executemany(text, map(in_order, values))
        if name == "add_counts":
            self.ready_queues.update(
                one["queue"]
                for one in values
                if one["state"] in ("ready", "held") and one["count"] > 0
            )

    def rows(self, name: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        text, in_order = by_place(name)
        return self._connection.execute(text, in_order(values)).fetchall()

    def named_rows(self, text: str, values: Mapping[str, Any] | Sequence[Any]) -> list[sqlite3.Row]:
        """Rows whose columns are read by name; takes the statement's text."""
        cursor = self._connection.cursor()
        cursor.row_factory = sqlite3.Row
        return cursor.execute(text, values).fetchall()

    def live_jobs(self, name: str, values: Mapping[str, Any]) -> list[LiveJob]:
        return list(map(LiveJob._make, self.rows(name, values)))

    def group_record(self, name: str, values: Mapping[str, Any]) -> GroupRecord | None:
        found = self.rows(name, values)
        return GroupRecord._make(found[0]) if found else None

    def run_given(self, text: str, args: Sequence[Any] | Mapping[str, Any]) -> None:
        """Run a statement that has no file of its own."""
        self._connection.execute(text, args)

    def moved(self, job: LiveJob, state: str | None, queue: str | None = None) -> None:
        """Count a job that left its state for another (None: for nowhere)."""
        self.counts[job.queue, job.state] -= 1
        if state is not None:
            self.counts[queue or job.queue, state] += 1

    def record(self, type: str, state: str, jobs: Sequence[LiveJob], details: Any = None) -> None:
        """Note what happened to jobs; it is written when all is settled."""
        self.events += event_rows(self.now, type, state, jobs, _KEY, _ID, details)

    def record_group(self, type: str, state: str, group: GroupRecord, details: Any) -> None:
        key = (None, None, group.tenant, group.id)
        self.events.append(event_row(self.now, type, state, key, None, details))

    def write_events(self) -> None:
        self.has_events |= bool(self.events)
        self.run_many("add_events", self.events)
        self.events = []

    def write_counts(self) -> None:
        changed = [
            {"queue": queue, "state": state, "count": count}
            for (queue, state), count in self.counts.items()
            if count
        ]
        self.run_many("add_counts", changed)
        self.counts.clear()

    def add_errors(self, jobs: Iterable[LiveJob], error: JobError) -> None:
        """Append the same line to the history of each job."""
        self.run_many("add_errors", [self.error_line(job.seq, error) for job in jobs])

    def error_line(self, seq: int, error: JobError) -> dict[str, Any]:
        return {
            "seq": seq,
            "at": self.now if error.at is None else to_micros(error.at),
            "reason": error.reason,
            "type": error.type,
            "message": error.message,
            "traceback": error.traceback,
        }


def event_rows(
    at: int, type: str, state: str, jobs: Sequence[Any], key: Find, id: Find, details: Any = None
) -> list[Mapping[str, Any]]:
    """An event for each queue, kind, tenant and group among the jobs, which are rows of some kind:
    `key` and `id` find in them what is needed. Most often all are alike."""
    keys = list(map(key, jobs))
    alike: defaultdict[Key, list[str]] = defaultdict(list)
    if len(set(keys)) == 1:
        alike[keys[0]] = list(map(id, jobs))
    else:
        for one, job in zip(keys, jobs, strict=True):
            alike[one].append(id(job))
    return [
        event_row(at, type, state, key, pack_ids(job_ids), details)
        for key, job_ids in alike.items()
    ]


def event_row(
    at: int, type: str, state: str, key: Key, job_ids: bytes | None, details: Any
) -> Mapping[str, Any]:
    queue, kind, tenant, group_id = key
    return {
        "at": at,
        "type": type,
        "state": state,
        "queue": queue,
        "kind": kind,
        "tenant": tenant,
        "group_id": group_id,
        "job_ids": job_ids,
        "details": None if details is None else to_json(details),
    }


def pack_ids(job_ids: Iterable[str]) -> bytes:
    """16 bytes for each id."""
    return bytes.fromhex("".join(job_ids).replace("-", ""))


def seqs(jobs: Iterable[LiveJob]) -> str:
    return to_json([job.seq for job in jobs])


def short_text(error: JobError) -> str:
    """The one line a job shows of an error."""
    text = f"{error.type}: {error.message}" if error.type else error.message
    return (text.splitlines() or [""])[0][:_LONGEST_ERROR]


def cancel_error(reason: str) -> JobError:
    return JobError(None, "cancel", reason)
