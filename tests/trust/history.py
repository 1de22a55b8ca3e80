"""What happened, written down by those it happened to: an append-only history that `checker.py`
judges.

    history = History(path, by="worker-3")
    history.of(job, "claimed")  # its token, run, queue, limits …
    history.of(job, "finished", outcome="done", accepted=True)
    history.write("offered", job_id, key="customer-7")
    entries = read(path)  # of all writers; `entries.torn` lines were dropped

One file for many processes: an entry is one `os.write` in append mode, on lines of its own, so that
a writer killed in the middle of it tears nothing but this entry. The order of the file is the order
in which entries were written, and the checker concludes nothing from more than that: what an entry
tells has happened before it, what it announces (`offered`, `asked`, `holds`, `ended`) after it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec

from windrow.queue.job import Job

What = Literal[
    "offered",  # a job is about to be enqueued: without `enqueued` it may exist or not
    "enqueued",  # … and that was acknowledged; `outcome` as of the insert, None: inserted
    "asked",  # a claim is about to be made
    "claimed",  # … and gave this job, under `token`, as its run number `attempt`
    "started",  # the run entered the handler
    "effect",  # a side effect outside the store
    "written",  # a row through `job.tx`
    "holds",  # the run is about to extend its lease, or to keep a step
    "renewed",  # … and the lease was extended
    "kept",  # … and the step was taken
    "ended",  # the run left the handler: before the finish is sent
    "finished",  # the reply: `outcome` (done, retry, snooze, fail, cancel), whether `accepted`
    "retried",  # somebody gave an ended job another life
    "removed",  # somebody deleted or pruned it: it need not be there at the end
    "due",  # `slot` of schedule `key` must have been fired by the end
    "fired",  # `slot` of schedule `key` became this job
    "group_finished",  # this job is the finish job of `group`
    "final",  # what the store says at the end, of a job or (without one) of a group
]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line. `by` is one sequential writer: a producer, or one loop that claims and runs."""

    at: float  # seconds, of a clock that all writers share
    by: str
    what: What
    job: str = ""
    token: str | None = None
    attempt: int | None = None  # the number of the run, `job.runs`: claims are counted in the store
    outcome: str | None = None
    accepted: bool | None = None
    key: str | None = None  # unique key of a job, name of a schedule
    group: str | None = None
    queue: str | None = None
    priority: int | None = (
        None  # of `enqueued`, where the order is promised: due at once, no limits
    )
    limits: tuple[str, ...] = ()
    slot: str | None = None
    note: str | None = None  # of `offered` and `enqueued`: what a taken unique key means
    # Of `final` alone.
    state: str | None = None
    attempts: int | None = None
    crashes: int | None = None
    max_attempts: int | None = None
    max_crashes: int | None = None
    results: int | None = None  # how many results there are of the job
    rows: int | None = None  # how many rows its runs have left through `job.tx`


class Entries(list[Entry]):
    """Entries in the order of the file. `torn`: lines of killed writers that were left out."""

    torn: int = 0


class History:
    """Where one writer writes: a file that it shares with others, or a list."""

    def __init__(
        self, to: Path | list[Entry], by: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.by = by
        self._to = to
        self._clock = clock
        self._file = -1 if isinstance(to, list) else _open(to)

    def write(self, what: What, job: str = "", **fields: Any) -> None:
        entry = Entry(self._clock(), self.by, what, job, **fields)
        if isinstance(self._to, list):
            self._to.append(entry)
        else:
            _append(self._file, entry)

    def of(self, job: Job, what: What, **fields: Any) -> None:
        """An entry about a run of a claimed job."""
        known = {
            "token": job.lease_token,
            "attempt": job.runs,
            "key": job.unique,
            "group": job.group,
            "queue": job.queue,
            "limits": tuple(job.limits),
        }
        self.write(what, job.id, **(known | fields))

    def final(self, job: Job, **fields: Any) -> None:
        """What became of a job, as `Queue.get` tells at the end."""
        known = {
            "state": job.state.value,
            "attempts": job.attempts,
            "crashes": job.crashes,
            "max_attempts": job.max_attempts,
            "max_crashes": job.max_crashes,
            "results": int(job.result is not None),
            "key": job.unique,
            "group": job.group,
            "queue": job.queue,
        }
        self.write("final", job.id, **(known | fields))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def slots(first: datetime, last: datetime | None, every: float) -> Iterator[str]:
    """Those of a schedule from one to another, both of them too."""
    while last is not None and first <= last:
        yield first.isoformat()
        first += timedelta(seconds=every)


def read(path: Path) -> Entries:
    """All entries of a file; one that a killed writer left unfinished is dropped, and counted."""
    return read_lines(path.read_bytes().split(b"\n"))


def read_lines(lines: Iterable[bytes]) -> Entries:
    decoder = msgspec.json.Decoder(Entry)
    entries = Entries()
    for line in lines:
        if not line:
            continue
        try:
            entries.append(decoder.decode(line))
        except msgspec.DecodeError:
            entries.torn += 1
    return entries


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _append(file: int, entry: Entry) -> None:
    # A newline on both sides: what another writer left unfinished must not take this line with it.
    line = b"\n" + msgspec.json.encode(entry) + b"\n"
    written = os.write(file, line)
    if written != len(line):
        raise OSError(f"only {written} of {len(line)} bytes of an entry were written")
