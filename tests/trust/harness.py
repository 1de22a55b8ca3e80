"""Real processes on one database, the faults done to them, and the verdict on what they saw.

with Crew(url, folder) as crew:
    await crew.enqueue(1000)
    workers = [crew.start("work") for _ in range(3)]
    await crew.until(lambda: crew.done >= 300)
    crew.kill(workers[0])
    await crew.until(lambda: crew.done == 1000)
    verdict = await crew.conclude()
verdict.hold()
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

import psycopg

from tests.processes import PROCESSES, fork
from tests.trust.checker import Violation, check
from tests.trust.history import Entry, History, read_lines, slots
from tests.trust.programs import ROWS, live
from tests.trust.scorecard import record
from windrow import Job, NewJob, Queue
from windrow.db.sqlite.location import parse_url
from windrow.ids import new_id
from windrow.queue.job import LIVE

PATIENCE = 120.0  # seconds; only a failing test waits for it
LOOK_SECONDS = 0.01
DRAIN_SECONDS = 0.05
PAGE = 1000
LOSSES = {"nothing_lost", "one_final_state", "runs_at_least_once"}
DOUBLES = {"effects_once", "one_accepted_completion"}


@dataclass(eq=False)
class Member:
    """One process."""

    by: str
    process: BaseProcess
    mouth: Connection
    killed_at: float | None = None
    is_buried: bool = False  # its end was seen

    def signal(self, which: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, which)

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive()


class Crew:
    """Processes on one database."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.path = folder / "history.jsonl"
        self.log = folder / "log"
        self.history = History(self.path, "crew")
        self.entries: list[Entry] = []
        self.finished: dict[str, float] = {}  # jobs whose completion was accepted, and when
        self.members: list[Member] = []
        self._groups: list[str] = []
        self._schedules: dict[str, tuple[datetime, float]] = {}  # first slot, seconds between two
        self._acknowledged = 0
        self._effects = 0
        self._read_up_to = 0
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.process.kill()
            member.process.join()
            member.mouth.close()
        self.history.close()

    def start(self, program: str = "work", *, url: str | None = None, **options: Any) -> Member:
        ears, mouth = PROCESSES.Pipe(duplex=False)
        by = f"{program.rpartition(':')[2]}-{len(self.members)}"
        given = {"url": url or self.url, "history": str(self.path), **options}
        process = fork(live, program, given, by, ears, str(self.log))
        ears.close()
        self.members.append(Member(by, process, mouth))
        return self.members[-1]

    def kill(self, member: Member) -> float:
        """`kill -9`; when it was."""
        member.process.kill()
        member.process.join()
        member.killed_at = time.monotonic()
        member.is_buried = True
        return member.killed_at

    def replace_the_dead(self, program: str = "work", **options: Any) -> int:
        """Start a worker for each that has ended by itself; how many there were."""
        dead = [one for one in self.members if not one.is_alive and not one.is_buried]
        for one in dead:
            one.process.join()
            one.is_buried = True
            self.start(program, **options)
        return len(dead)

    async def dismiss(self, member: Member) -> None:
        """Tell one to stop, and wait for it."""
        member.mouth.send_bytes(b"stop")
        await self.until(lambda: not member.is_alive)
        member.is_buried = True

    async def stop(self) -> None:
        """Tell all that live to stop, and wait for it."""
        for member in self.members:
            if member.is_alive:
                member.mouth.send_bytes(b"stop")
        await self.until(lambda: not any(member.is_alive for member in self.members))

    async def enqueue(
        self, jobs: int, kinds: Sequence[str] = ("work",), payload: Any = None, **options: Any
    ) -> None:
        """Enqueue so many jobs, of these kinds in turn."""
        given = {"max_crashes": 20, **options}
        async with Queue.open(self.url) as queue:
            while jobs:
                size = min(jobs, PAGE)
                turns = [kinds[n % len(kinds)] for n in range(size)]
                new = [NewJob(kind, payload, id=new_id(), **given) for kind in turns]
                await self.offer(queue, new)
                jobs -= size

    async def enqueue_groups(self, groups: int, members: int) -> None:
        """Enqueue groups, each with a finish job that says whose it is."""
        async with Queue.open(self.url) as queue:
            for group_id in [new_id() for _ in range(groups)]:
                then = NewJob("finish", group_id, max_crashes=20)
                await queue.create_group(id=group_id, then=then, hold=True)
                new = [
                    NewJob("work", id=new_id(), group=group_id, max_crashes=20)
                    for _ in range(members)
                ]
                await self.offer(queue, new)
                await queue.close_group(group_id)
                self._groups.append(group_id)

    async def offer(self, queue: Queue, new: Sequence[NewJob]) -> None:
        for one in new:
            self.history.write("offered", str(one.id), group=one.group)
        for made in await queue.enqueue_many(new):
            self.history.write("enqueued", made.id, outcome=made.outcome)

    async def schedule(self, name: str, every: float) -> None:
        """A job every so many seconds; each of its slots has to be fired."""
        async with Queue.open(self.url) as queue:
            made = await queue.schedule(name, "work", every=every, catch_up="all", max_crashes=20)
        self._schedules[name] = (made.next_at, every)

    async def pause_schedules(self) -> None:
        async with Queue.open(self.url) as queue:
            for name in self._schedules:
                await queue.pause_schedule(name)

    def make_rows(self) -> None:
        """The table that handlers write to in their jobs' transactions."""
        with closing(connect(self.url)) as connection:
            connection.execute(ROWS)
            connection.commit()

    @property
    def done(self) -> int:
        self.look()
        return len(self.finished)

    @property
    def effects(self) -> int:
        """How many handlers have come to their ends."""
        self.look()
        return self._effects

    @property
    def acknowledged(self) -> int:
        self.look()
        return self._acknowledged

    def look(self) -> None:
        """Read what was written since the last look."""
        with self.path.open("rb") as file:
            file.seek(self._read_up_to)
            text = self._rest + file.read()
            self._read_up_to = file.tell()
        *lines, self._rest = text.split(b"\n")
        for entry in read_lines(lines):
            self.entries.append(entry)
            self._acknowledged += entry.what == "enqueued"
            self._effects += entry.what == "effect"
            if entry.what == "finished" and entry.outcome == "done" and entry.accepted:
                self.finished.setdefault(entry.job, entry.at)

    async def until(self, condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.done} done; the log ends:\n{self._said()}")
            await asyncio.sleep(LOOK_SECONDS)

    async def until_drained(
        self, seconds: float = PATIENCE, meanwhile: Callable[[], Any] = lambda: None
    ) -> None:
        """Wait until the database has no job left that could run. What was killed between a commit
        and its entry is not in the history, so the history cannot tell."""
        deadline = time.monotonic() + seconds
        async with Queue.open(self.url) as queue:
            while True:
                meanwhile()
                counts = await queue.counts()
                if not sum(counts[state] for state in LIVE):
                    return
                if time.monotonic() > deadline:
                    raise TimeoutError(f"left: {dict(counts)}; the log ends:\n{self._said()}")
                await asyncio.sleep(DRAIN_SECONDS)

    def _said(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    async def next_done(self, since: float) -> float:
        """Seconds from `since` to the next completion that was accepted."""
        found: list[float] = []

        def is_there() -> bool:
            self.look()
            found.extend(at for at in self.finished.values() if at > since)
            return bool(found)

        await self.until(is_there)
        return min(found) - since

    async def conclude(
        self, *, promises: Collection[str] | None = None, limits: Mapping[str, int] | None = None
    ) -> Verdict:
        """Write down what the database says now, and have all of it checked."""
        self.look()
        last = {"final", "fired", "due"}  # of a last time
        self.entries = [entry for entry in self.entries if entry.what not in last]
        rows = self._rows()
        async with Queue.open(self.url) as queue:
            jobs = [job async for job in all_jobs(queue)]
            finishes = Counter(job.payload for job in jobs if job.kind == "finish")
            for job in jobs:
                self.history.final(job, rows=rows[job.id])
                if "slot" in job.headers:
                    name, slot = job.headers["schedule"], job.headers["slot"]
                    self.history.write("fired", job.id, key=name, slot=slot)
            for schedule in await queue.schedules():
                first, every = self._schedules[schedule.name]
                for slot in slots(first, schedule.last_at, every):
                    self.history.write("due", key=schedule.name, slot=slot)
            for group_id in self._groups:
                state = str((await queue.group(group_id)).state)
                self.history.write("final", group=group_id, state=state, results=finishes[group_id])
        self.look()
        found = check(self.entries, promises=promises, limits=limits)
        return Verdict(found, self.entries)

    def _rows(self) -> Counter[str]:
        with closing(connect(self.url)) as connection:
            try:
                found = connection.execute("SELECT job, count(*) FROM trust_rows GROUP BY job")
                return Counter(dict(found.fetchall()))
            except (sqlite3.OperationalError, psycopg.errors.UndefinedTable):
                return Counter()

    def returns(self) -> list[float]:
        """For each kill of a worker that had jobs: seconds until others had them all."""
        killed = [one for one in self.members if one.killed_at is not None]
        found = [self.took_over(one.by, one.killed_at or 0.0) for one in killed]
        return [seconds for seconds in found if seconds is not None]

    def took_over(self, by: str, since: float) -> float | None:
        """Seconds until others had claimed all that one had at a time; None: it had nothing."""
        self.look()
        return _back(self.entries, by, since)


async def all_jobs(queue: Queue) -> AsyncIterator[Job]:
    after = None
    while page := await queue.list(after=after, limit=PAGE):
        for job in page:
            yield job
        after = page[-1].id


def _unfinished(entries: Sequence[Entry], by: str, at: float) -> dict[str, int]:
    """The jobs that somebody had claimed and not finished at that time, with their runs. Those with
    limits are left out: they wait for room as well."""
    had: dict[str, int] = {}
    for entry in entries:
        if entry.by == by and entry.at <= at:
            if entry.what == "claimed" and not entry.limits:
                had[entry.job] = entry.attempt or 0
            elif entry.what == "finished":
                had.pop(entry.job, None)
    return had


def _back(entries: Sequence[Entry], by: str, at: float) -> float | None:
    """Seconds until the last of the jobs that somebody had then was claimed for its next run. Those
    that were not had ended, or whoever claimed them died before the entry: neither is known."""
    had = _unfinished(entries, by, at)
    again = [
        entry.at
        for entry in entries
        if entry.what == "claimed"
        and entry.job in had
        and entry.at > at
        and entry.attempt == had[entry.job] + 1
    ]
    return max(again) - at if again else None


def connect(url: str) -> Any:
    if url.startswith("sqlite"):
        return sqlite3.connect(parse_url(url).path, timeout=30)
    return psycopg.connect(url)


@dataclass(frozen=True)
class Verdict:
    violations: Sequence[Violation]
    entries: Sequence[Entry] = field(repr=False)

    @property
    def jobs(self) -> int:
        return len({one.job for one in self.entries if one.what == "enqueued"})

    def states(self) -> Counter[str | None]:
        return Counter(one.state for one in self.entries if one.what == "final" and one.job)

    def crashes(self) -> int:
        return sum(one.crashes or 0 for one in self.entries if one.what == "final")

    def count(self, promises: Collection[str]) -> int:
        return len({one.job for one in self.violations if one.promise in promises})

    def keep(
        self,
        promise: str,
        fault: str,
        *,
        store: str,
        faults: int,
        recovery: Sequence[float] = (),
        note: str = "",
    ) -> None:
        """Record what the checker counted. Nothing may have been violated."""
        record(
            promise,
            fault,
            store=store,
            jobs=self.jobs,
            faults=faults,
            lost=self.count(LOSSES),
            doubled=self.count(DOUBLES),
            recovery=recovery,
            note=note,
        )
        assert not self.violations, "\n".join(map(str, self.violations[:20]))
