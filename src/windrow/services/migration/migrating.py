"""Work of other queues becomes Windrow's: moving it, looking whether all of it has come, and taking
that back. Each may be killed and run again, and run twice at once: what came is noted with it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, cast

from windrow.errors import MigrationFailed
from windrow.queue.copying import CopiedJob, json_text
from windrow.queue.importing import Arrival, ImportNote, ImportStore
from windrow.queue.job import JobState
from windrow.queue.store import open_store
from windrow.redaction import redact_url
from windrow.services.migration import nuq
from windrow.services.migration.arriving import Context, Left, Reading, checksum
from windrow.services.migration.origins import Origin, Row, Table
from windrow.services.migration.readings import System, choose, open_origin

MOST_NAMED: Final = 20
MESSAGES: Final = "messages"  # of the ingestion tables: what went wrong, by number
_PAGE: Final = 500


@dataclass(slots=True)
class TableReport:
    rows: int = 0
    imported: int = 0  # or would be
    known: int = 0  # had come before
    spoilt: int = 0  # of the imported: as failed jobs, because they cannot be done as they are
    left: Counter[str] = field(default_factory=Counter)  # not to be done, by reason
    refused: dict[str, str] = field(default_factory=dict)  # the first of them, by key
    refused_count: int = 0


@dataclass(slots=True)
class MigrationReport:
    origin: str
    target: str
    is_dry_run: bool
    tables: dict[str, TableReport] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left behind that should have come."""
        return not any(table.refused_count for table in self.tables.values())


@dataclass(slots=True)
class Verification:
    """What was found of the rows that should have come, by table."""

    origin: str
    target: str
    rows: Counter[str] = field(default_factory=Counter)
    matched: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)  # were not to come
    gone: Counter[str] = field(default_factory=Counter)  # of the matched: run and pruned by now
    problems: dict[str, str] = field(default_factory=dict)  # the first of them, by key
    problem_count: int = 0

    @property
    def is_good(self) -> bool:
        return self.problem_count == 0


@dataclass(slots=True)
class Rollback:
    origin: str
    target: str
    removed: int = 0
    kept: dict[str, str] = field(default_factory=dict)  # ids of jobs, and why: the first of them
    kept_count: int = 0


async def migrate(
    url: str,
    place: str,
    *,
    system: System = "legacy",
    is_dry_run: bool = False,
    with_finished: bool = False,
) -> MigrationReport:
    """Move what waits, what somebody was at, and what has failed; with `with_finished` all."""
    async with _both(url, place, is_writing=not is_dry_run) as (store, origin):
        report = MigrationReport(place_name(place), redact_url(url), is_dry_run)
        noted = _noted(system, origin)
        async for table, arrivals in _arrivals(origin, report, store, system, with_finished):
            counts = report.tables[table]
            if is_dry_run:
                await _forecast(store, noted, arrivals, counts)
            else:
                await _take_in(store, noted, arrivals, counts)
        if not is_dry_run and report.is_over:
            await origin.mark(sorted(report.tables), is_deprecated=True)
        return report


async def verify(
    url: str, place: str, *, system: System = "legacy", with_finished: bool = False
) -> Verification:
    """Compare each row that should have come with what is noted of it, and with its job."""
    async with _both(url, place, is_writing=False) as (store, origin):
        return await _verify(store, origin, url, place, system, with_finished)


async def drop(
    url: str, place: str, *, system: System = "legacy", with_finished: bool = False
) -> Verification:
    """Drop the tables, if all of their work has come; else nothing is done."""
    async with _both(url, place, is_writing=False) as (store, origin):
        found = await _verify(store, origin, url, place, system, with_finished)
        if found.is_good:
            await origin.drop(sorted(found.rows))
        return found


async def roll_back(url: str, place: str, *, system: System = "legacy") -> Rollback:
    """Remove the jobs that came from there and have not begun. The tables there are as they were,
    and are no longer called deprecated."""
    async with _both(url, place, is_writing=False) as (store, origin):
        report = Rollback(place_name(place), redact_url(url))
        after = ""
        while notes := await store.list_imported(_noted(system, origin), after, _PAGE):
            after = notes[-1].key
            await _remove(store, _noted(system, origin), notes, report)
        if not report.kept_count:
            names = [table.name for table, _ in choose(await origin.list_tables(), system)]
            await origin.mark(names, is_deprecated=False)
        return report


def _noted(system: System, origin: Origin) -> str:
    """Under which name it is noted what came from there: two systems may share a database."""
    return f"{system} {origin.name}"


def place_name(place: str) -> str:
    return redact_url(place) if "://" in place else place


@asynccontextmanager
async def _both(
    url: str, place: str, *, is_writing: bool
) -> AsyncIterator[tuple[ImportStore, Origin]]:
    origin = await open_origin(place)
    try:
        store = cast(ImportStore, await open_store(url))
        try:
            if is_writing:
                await store.migrate()
            await store.check_schema()
            yield store, origin
        finally:
            await store.close()
    finally:
        await origin.close()


async def _arrivals(
    origin: Origin,
    report: MigrationReport,
    store: ImportStore | None,
    system: System,
    with_finished: bool,
) -> AsyncIterator[tuple[str, list[Arrival]]]:
    """What is to come, table by table, in batches; the report counts what is not."""
    found = await origin.list_tables()
    chosen = choose(found, system)
    if not chosen:
        raise MigrationFailed(f"{report.origin} has none of the tables that can be moved")
    context = Context(origin.name, datetime.now(UTC), with_finished)
    context.messages = await _messages(origin, found)
    groups = await _groups(origin, found, with_finished) if system == "legacy" else {}
    for table, reading in chosen:
        counts = report.tables.setdefault(table.name, TableReport())
        context.table = table.name
        async for rows in origin.read(table, reading.order):
            alone = [row for row in rows if not nuq.is_member(row, groups.keys())]
            counts.rows += len(alone)
            arrivals = [
                one for row in alone if (one := _arrival(row, reading, context, counts)) is not None
            ]
            if context.sources and store is not None and not report.is_dry_run:
                await store.put_sources(context.sources)
            context.sources.clear()
            yield table.name, arrivals
    counts = report.tables.setdefault(nuq.GROUPS, TableReport()) if groups else TableReport()
    async for arrivals in _group_arrivals(origin, found, groups, context):
        counts.rows += 1
        yield nuq.GROUPS, arrivals


def _arrival(row: Row, reading: Reading, context: Context, counts: TableReport) -> Arrival | None:
    key = reading.key_of(row)
    made = reading.convert(row, context.id_of(key), context)
    if isinstance(made, Left):
        counts.left[made.reason] += 1
        return None
    counts.spoilt += made.queue == "migrated"
    return Arrival(key=f"{context.table}/{key}", checksum=checksum(row), item=made)


async def _messages(origin: Origin, found: Sequence[Table]) -> dict[Any, str]:
    texts: dict[Any, str] = {}
    for table in found:
        if table.name == MESSAGES and {"id", "error_message"} <= table.columns:
            async for rows in origin.read(table, ["id"]):
                texts |= {row["id"]: str(row["error_message"]) for row in rows}
    return texts


async def _groups(
    origin: Origin, found: Sequence[Table], with_finished: bool
) -> dict[str | None, Row]:
    """NuQ's groups that are to come, by id."""
    groups: dict[str | None, Row] = {}
    for table in found:
        if table.name == nuq.GROUPS:
            async for rows in origin.read(table, ["created_at", "id"]):
                groups |= {
                    str(row["id"]): row
                    for row in rows
                    if with_finished or str(row["status"]) == "active"
                }
    return groups


async def _group_arrivals(
    origin: Origin, found: Sequence[Table], groups: dict[str | None, Row], context: Context
) -> AsyncIterator[list[Arrival]]:
    """Of each group the group and all of its jobs."""
    if not groups:
        return
    members: dict[str, list[tuple[Row, CopiedJob]]] = {str(id): [] for id in groups}
    for table in found:
        if table.name not in (nuq.SCRAPE, nuq.BACKLOG):
            continue
        async for rows in origin.read(table, ["priority", "created_at", "id"]):
            for row in rows:
                group = str(row.get("group_id"))
                if group in members:
                    job = nuq.to_job(row, context.id_of(str(row["id"])), context, group)
                    members[group].append((row, job))
    for id, row in groups.items():
        own = members.pop(str(id))
        group_row = nuq.to_group(row, [job for _, job in own], context)
        yield [
            Arrival(key=f"{nuq.GROUPS}/{id}", checksum=checksum(row), item=group_row),
            *[
                Arrival(key=f"{nuq.SCRAPE}/{job.id}", checksum=checksum(said), item=job)
                for said, job in own
            ],
        ]


async def _take_in(
    store: ImportStore, origin: str, arrivals: Sequence[Arrival], counts: TableReport
) -> None:
    if not arrivals:
        return
    done = await store.import_arrivals(origin, arrivals)
    counts.imported += len(done.new)
    counts.known += len(done.known)
    counts.refused_count += len(done.refused)
    for key, reason in done.refused.items():
        if len(counts.refused) < MOST_NAMED:
            counts.refused[key] = reason


async def _forecast(
    store: ImportStore, origin: str, arrivals: Sequence[Arrival], counts: TableReport
) -> None:
    known = await store.find_imported(origin, [one.key for one in arrivals])
    counts.known += len(known)
    counts.imported += len(arrivals) - len(known)


async def _verify(
    store: ImportStore,
    origin: Origin,
    url: str,
    place: str,
    system: System,
    with_finished: bool,
) -> Verification:
    found = Verification(place_name(place), redact_url(url))
    report = MigrationReport(found.origin, found.target, is_dry_run=True)
    name = _noted(system, origin)
    async for table, arrivals in _arrivals(origin, report, None, system, with_finished):
        noted = {
            note.key: note
            for note in await store.find_imported(name, [one.key for one in arrivals])
        }
        jobs = await store.get_jobs([note.job_id for note in noted.values() if note.job_id])
        for one in arrivals:
            _compare(one, noted.get(one.key), jobs, table, found)
    for table, counts in report.tables.items():
        found.rows[table] = counts.rows
        found.left[table] = counts.left.total()
    return found


def _compare(
    one: Arrival, note: ImportNote | None, jobs: dict[str, Any], table: str, found: Verification
) -> None:
    problem = None
    job = jobs.get(note.job_id) if note and note.job_id else None
    if note is None:
        problem = "it has not come"
    elif note.checksum != one.checksum:
        problem = "it has changed there since it came"
    elif (
        job is not None
        and isinstance(one.item, CopiedJob)
        and json_text(job.payload_json) != one.item.payload
    ):
        problem = f"job {job.id} has another payload"
    if problem is None:
        found.matched[table] += 1
        found.gone[table] += job is None and isinstance(one.item, CopiedJob)
        return
    found.problem_count += 1
    if len(found.problems) < MOST_NAMED:
        found.problems[one.key] = problem


async def _remove(
    store: ImportStore, origin: str, notes: Sequence[ImportNote], report: Rollback
) -> None:
    jobs = await store.get_jobs([note.job_id for note in notes if note.job_id])
    kept: dict[str, str] = {}
    for job in jobs.values():
        if job.group is not None:
            kept[job.id] = f"it belongs to group {job.group}: cancel that"
        elif job.started_at is not None or job.state is JobState.ACTIVE:
            kept[job.id] = f"it has begun, and is {job.state.value}"
    removable = [id for id in jobs if id not in kept]
    changes = await store.delete_jobs(removable) if removable else {}
    for id in removable:
        if id in changes and changes[id].is_refused:
            kept[id] = "it has begun just now"
    report.removed += len(removable) - sum(id in kept for id in removable)
    report.kept_count += len(kept)
    for id, why in kept.items():
        if len(report.kept) < MOST_NAMED:
            report.kept[id] = why
    forgotten = [note.key for note in notes if note.job_id and note.job_id not in kept]
    await store.forget_imported(origin, forgotten)
    await asyncio.sleep(0)
