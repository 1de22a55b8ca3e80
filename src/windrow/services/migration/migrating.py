"""Work of other queues becomes Windrow's: moving it, looking whether all of it has come, and taking
that back. Each may be killed and run again, and run twice at once: what came is noted with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import msgspec

from windrow.errors import MigrationFailed
from windrow.queue.copying import CopiedJob, json_text
from windrow.queue.importing import Arrival, ImportNote, ImportStore, table_of
from windrow.queue.records import JobFilter
from windrow.queue.store import open_store
from windrow.redaction import redact_url
from windrow.services.migration import nuq
from windrow.services.migration.arriving import DONE
from windrow.services.migration.gathering import Batch, gather, tables_of
from windrow.services.migration.origins import Origin
from windrow.services.migration.readings import System, open_origin
from windrow.services.migration.reports import (
    MOST_NAMED,
    MigrationReport,
    Rollback,
    TableReport,
    Verification,
)

_PAGE: Final = 500


async def migrate(
    url: str,
    place: str,
    *,
    system: System = "legacy",
    is_dry_run: bool = False,
    with_finished: bool = False,
) -> MigrationReport:
    """Move what waits, what somebody was at, and what has failed; with `with_finished` all."""
    async with _both(url, place, is_moving=True, is_dry_run=is_dry_run) as (store, origin):
        report = MigrationReport(place_name(place), redact_url(url), is_dry_run)
        noted = _noted(system, origin)
        has_tables = bool(await store.schema_version())
        seen: set[str] = set()  # the jobs that a dry run has counted
        async for batch in gather(origin, report, system, with_finished=with_finished):
            counts = report.tables[batch.table]
            arrivals = await _as_noted(store, noted, batch) if has_tables else batch.arrivals
            if is_dry_run:
                known = await _count_known(store if has_tables else None, noted, arrivals, seen)
                counts.known += known
                counts.imported += len(arrivals) - known
                continue
            if batch.sources:
                await store.put_sources(batch.sources)
            await _take_in(store, noted, arrivals, counts)
        if not is_dry_run and report.is_over:
            await _mark(origin, report)
        return report


async def verify(
    url: str, place: str, *, system: System = "legacy", with_finished: bool = False
) -> Verification:
    """Compare each row that should have come with what is noted of it, and with its job."""
    async with _both(url, place) as (store, origin):
        return await _verify(store, origin, url, place, system, with_finished)


async def drop(
    url: str,
    place: str,
    *,
    system: System = "legacy",
    with_finished: bool = False,
    is_discarding: bool = False,
) -> Verification:
    """Drop the tables, if all of their work has come; else nothing is done. What is done there and
    did not come is dropped only if `is_discarding` says so."""
    async with _both(url, place) as (store, origin):
        names = tables_of(await origin.list_tables(), system)
        noted = _noted(system, origin)
        # Before it is held: the tables may be in the file that this is written to.
        fresh = await store.note_dropped(noted, names)
        try:
            if names:
                await origin.hold(names)  # what comes there now would be dropped unseen
            found = await _verify(store, origin, url, place, system, with_finished)
        except BaseException:
            await _undo_drop(store, origin, noted, fresh)
            raise
        if not found.is_good or (found.done.total() and not is_discarding):
            await _undo_drop(store, origin, noted, fresh)
            return found
        try:
            await origin.drop(names)
        except MigrationFailed:  # after any other error they may be gone
            await _undo_drop(store, origin, noted, fresh)
            raise
        found.is_dropped = True
        return found


async def roll_back(url: str, place: str, *, system: System = "legacy") -> Rollback:
    """Remove the jobs that came from there and have not begun. The tables there are as they were,
    and are no longer called deprecated. What came from a table that is gone stays."""
    async with _both(url, place) as (store, origin):
        report = Rollback(place_name(place), redact_url(url))
        noted = _noted(system, origin)
        names = tables_of(await origin.list_tables(), system)
        await origin.release()  # no row is read, and nobody need wait for this
        after = ""
        while notes := await store.list_imported(noted, after, _PAGE):
            after = notes[-1].key
            await _remove(store, noted, notes, names, report)
        if not report.kept_count:
            await origin.mark(names, is_deprecated=False)
        return report


def _noted(system: System, origin: Origin) -> str:
    """Under which name it is noted what came from there: two systems may share a database."""
    return f"{system} {origin.name}"


def place_name(place: str) -> str:
    return redact_url(place) if "://" in place else place


@asynccontextmanager
async def _both(
    url: str, place: str, *, is_moving: bool = False, is_dry_run: bool = False
) -> AsyncIterator[tuple[ImportStore, Origin]]:
    origin = await open_origin(place)
    try:
        store = cast(ImportStore, await open_store(url))
        try:
            if not store.capabilities.imports:
                await store.import_arrivals(origin.name, [])  # which says why, and what to do
            if is_moving and not is_dry_run:
                await store.migrate()
            if not is_dry_run or await store.schema_version():
                await store.check_schema()
            yield store, origin
        finally:
            await store.close()
    except origin.errors as error:
        raise MigrationFailed(f"{place_name(place)} cannot be read or written: {error}") from error
    finally:
        await origin.close()


async def _mark(origin: Origin, report: MigrationReport) -> None:
    """All has come by now, also if this cannot be done: whoever only reads there may not."""
    expected: tuple[type[Exception], ...] = (MigrationFailed, *origin.errors)
    try:
        await origin.mark(sorted(report.tables), is_deprecated=True)
    except expected as error:
        report.unmarked = str(error)


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


async def _as_noted(store: ImportStore, origin: str, batch: Batch) -> list[Arrival]:
    """The arrivals, under their former keys where an earlier version took in just these rows."""
    if not batch.former:
        return batch.arrivals
    notes = await store.find_imported(origin, sorted(set(batch.former.values())))
    noted = {(note.key, note.checksum) for note in notes}
    return [
        msgspec.structs.replace(one, key=former)
        if (former := batch.former.get(one.key)) and (former, one.checksum) in noted
        else one
        for one in batch.arrivals
    ]


async def _count_known(
    store: ImportStore | None, origin: str, arrivals: Sequence[Arrival], seen: set[str]
) -> int:
    """How many came before, or are here already or counted already under the ids of their jobs."""
    noted: set[str] = set()
    ids = {one.item.id for one in arrivals if isinstance(one.item, CopiedJob)}
    here: set[str] = set()
    if store is not None:
        noted = {
            note.key for note in await store.find_imported(origin, [one.key for one in arrivals])
        }
        here = set(await store.get_jobs(sorted(ids)))
    known = 0
    for one in arrivals:
        known += one.key in noted or one.item.id in here or one.item.id in seen
        seen.add(one.item.id)
    return known


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
    async for batch in gather(origin, report, system, with_finished=with_finished):
        arrivals = await _as_noted(store, name, batch)
        keys = [one.key for one in arrivals]
        noted = {note.key: note for note in await store.find_imported(name, keys)}
        ids = {one.key: _job_id(one, noted.get(one.key)) for one in arrivals}
        jobs = await store.get_jobs([id for id in ids.values() if id])
        for one in arrivals:
            job = jobs.get(ids[one.key] or "")
            _compare(one, noted.get(one.key), job, batch.table, found)
    for table, counts in report.tables.items():
        found.rows[table] = counts.rows
        found.left[table] = counts.left.total()
        found.done[table] = counts.left[DONE]
    return found


def _job_id(one: Arrival, note: ImportNote | None) -> str | None:
    """Under which id its job is here: what was here already is not noted with one."""
    if note is None or not isinstance(one.item, CopiedJob):
        return None
    return note.job_id or one.item.id


def _compare(
    one: Arrival, note: ImportNote | None, job: Any, table: str, found: Verification
) -> None:
    problem = None
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


async def _undo_drop(store: ImportStore, origin: Origin, noted: str, tables: Sequence[str]) -> None:
    try:
        await origin.release()
    finally:
        await store.forget_dropped(noted, tables)


async def _remove(
    store: ImportStore,
    origin: str,
    notes: Sequence[ImportNote],
    tables: Sequence[str],
    report: Rollback,
) -> None:
    """Of a page of notes, groups with all that came with them, then the jobs that are left."""
    there = await _only_there(store, origin, notes, tables, report)
    for note in there:
        if nuq.is_group(note.key):
            await _remove_group(store, origin, note.key, tables, report)
    jobs = {note.key: note.job_id or "" for note in there if not nuq.is_group(note.key)}
    removal = await store.remove_imported(origin, list(jobs), tables)
    report.removed += removal.jobs
    for key, why in removal.kept.items():
        report.keep(jobs[key], why)


async def _only_there(
    store: ImportStore,
    origin: str,
    notes: Sequence[ImportNote],
    tables: Sequence[str],
    report: Rollback,
) -> list[ImportNote]:
    """Those whose table is there still. Of what came from the others the jobs are the only copy."""
    dropped = await store.list_dropped(origin)
    there = []
    for note in notes:
        name = table_of(note.key, [*tables, *dropped])
        if note.job_id is None and not nuq.is_group(note.key):
            if name in tables:
                there.append(note)
            continue  # its job is none of ours, wherever the row is
        if name in dropped:
            day = dropped[name].date().isoformat()
            why = f"{name} was dropped there on {day}: this is the only copy"
        elif name is None:
            why = "its table is not there any more: this is the only copy"
        else:
            there.append(note)
            continue
        report.keep(note.job_id or nuq.group_of(note.key), why)
    return there


async def _remove_group(
    store: ImportStore, origin: str, key: str, tables: Sequence[str], report: Rollback
) -> None:
    group = nuq.group_of(key)
    keys = [key]
    after: str | None = None
    while page := await store.list_jobs(JobFilter(group=group), after=after, limit=_PAGE):
        after = page[-1].id
        keys += [nuq.member_key(job.id) for job in page]
    removal = await store.remove_imported(origin, keys, tables, group)
    report.removed += removal.jobs
    if removal.kept:  # its jobs are named one by one
        report.keep(group, f"{removal.kept[key]}: `windrow groups cancel` ends it")
