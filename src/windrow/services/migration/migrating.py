"""Work of other queues becomes Windrow's: moving it, looking whether all of it has come, and taking
that back. Each may be killed and run again, and run twice at once: what came is noted with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

from windrow.catalog import Catalog
from windrow.db.sqlite.location import parse_url
from windrow.errors import MigrationFailed
from windrow.queue.copying import CopiedJob, json_text
from windrow.queue.importing import Arrival, ImportNote, ImportStore, table_of
from windrow.queue.opening import open_store
from windrow.queue.records import JobFilter
from windrow.redaction import redact_url
from windrow.services.migration import nuq
from windrow.services.migration.arriving import DONE
from windrow.services.migration.gathering import gather, tables_of
from windrow.services.migration.origins import Origin
from windrow.services.migration.readings import open_origin
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
    is_dry_run: bool = False,
    with_finished: bool = False,
) -> MigrationReport:
    """Move what waits, what somebody was at, and what has failed; with `with_finished` all."""
    report = MigrationReport(place_name(place), redact_url(url), is_dry_run)
    if is_dry_run:
        await _forecast(url, place, report, with_finished)
        return report
    async with _both(url, place, is_moving=True) as (store, origin):
        noted = origin.name
        async for batch in gather(origin, report, with_finished=with_finished):
            if batch.sources:
                await Catalog(store.database).sources.put(batch.sources)
            await _take_in(store, noted, batch.arrivals, report.tables[batch.table])
        if report.is_over:
            await _mark(origin, report)
        return report


async def verify(url: str, place: str, *, with_finished: bool = False) -> Verification:
    """Compare each row that should have come with what is noted of it, and with its job."""
    async with _both(url, place) as (store, origin):
        return await _verify(store, origin, url, place, with_finished)


async def drop(
    url: str,
    place: str,
    *,
    with_finished: bool = False,
    is_discarding: bool = False,
) -> Verification:
    """Drop the tables, if all of their work has come; else nothing is done. What is done there and
    did not come is dropped only if `is_discarding` says so."""
    async with _both(url, place) as (store, origin):
        names = tables_of(await origin.list_tables())
        noted = origin.name
        # Before it is held: the tables may be in the file that this is written to.
        fresh = await store.note_dropped(noted, names)
        try:
            if names:
                await origin.hold(names)  # what comes there now would be dropped unseen
            found = await _verify(store, origin, url, place, with_finished)
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


async def roll_back(url: str, place: str) -> Rollback:
    """Remove the jobs that came from there and have not begun. The tables there are as they were,
    and are no longer called deprecated. What came from a table that is gone stays."""
    async with _both(url, place) as (store, origin):
        report = Rollback(place_name(place), redact_url(url))
        noted = origin.name
        names = tables_of(await origin.list_tables())
        await origin.release()  # no row is read, and nobody need wait for this
        after = ""
        while notes := await store.list_imported(noted, after, _PAGE):
            after = notes[-1].key
            await _remove(store, noted, notes, names, report)
        if not report.kept_count:
            await origin.mark(names, is_deprecated=False)
        return report


async def count_imported(url: str, place: str) -> int:
    """How many of the jobs that came from there `roll_back` would look at."""
    async with _both(url, place) as (store, origin):
        noted = origin.name
        await origin.release()
        count, after = 0, ""
        while notes := await store.list_imported(noted, after, _PAGE):
            after = notes[-1].key
            count += sum(note.job_id is not None for note in notes)
        return count


def place_name(place: str) -> str:
    return redact_url(place) if "://" in place else place


@asynccontextmanager
async def _both(
    url: str, place: str, *, is_moving: bool = False, is_dry_run: bool = False
) -> AsyncIterator[tuple[ImportStore, Origin]]:
    async with _there(place) as origin:
        if not is_moving and _is_absent(url):
            raise MigrationFailed(f"there is no database {redact_url(url)}: nothing has come yet")
        store = cast(ImportStore, await open_store(url))
        try:
            if not store.capabilities.transfers:
                await store.import_arrivals(origin.name, [])  # which says why, and what to do
            if is_moving:
                await store.migrate()
            if not is_dry_run or await store.schema_version():
                await store.check_schema()
                await _settle_name(store, origin, is_moving=is_moving)
            yield store, origin
        finally:
            await store.close()


@asynccontextmanager
async def _there(place: str) -> AsyncIterator[Origin]:
    origin = await open_origin(place)
    try:
        yield origin
    except origin.errors as error:
        raise MigrationFailed(f"{place_name(place)} cannot be read or written: {error}") from error
    finally:
        await origin.close()


def _is_absent(url: str) -> bool:
    """Whether it is a file that is not there. Whoever opens it makes it, also to look at it."""
    return url.startswith("sqlite:") and not Path(parse_url(url).path).exists()


async def _settle_name(store: ImportStore, origin: Origin, *, is_moving: bool) -> None:
    """Call the origin as what came from it is noted: by its path, if it could not be written to
    before. What never came from it gets a name that it keeps."""
    is_known = False
    for name in dict.fromkeys([origin.name, *origin.former]):
        if await store.list_imported(name, "", 1):
            origin.name, is_known = name, True
            break
    if is_moving:
        await origin.keep_name(is_known=is_known)


async def _forecast(url: str, place: str, report: MigrationReport, with_finished: bool) -> None:
    if _is_absent(url):
        async with _there(place) as origin:
            await _count(None, origin, report, with_finished)
        return
    async with _both(url, place, is_dry_run=True) as (store, origin):
        known = store if await store.schema_version() else None  # else it has no notes either
        await _count(known, origin, report, with_finished)


async def _count(
    store: ImportStore | None,
    origin: Origin,
    report: MigrationReport,
    with_finished: bool,
) -> None:
    noted = origin.name
    seen: set[str] = set()  # the jobs that are counted
    async for batch in gather(origin, report, with_finished=with_finished):
        arrivals = batch.arrivals
        known = await _count_known(store, noted, arrivals, seen)
        counts = report.tables[batch.table]
        counts.known += known
        counts.imported += len(arrivals) - known


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
    with_finished: bool,
) -> Verification:
    found = Verification(place_name(place), redact_url(url))
    report = MigrationReport(found.origin, found.target, is_dry_run=True)
    name = origin.name
    async for batch in gather(origin, report, with_finished=with_finished):
        arrivals = batch.arrivals
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
