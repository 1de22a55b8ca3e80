"""Taking in jobs from tables that are not Windrow's: see `queue/importing.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from windrow.queue.copying import Receipt
from windrow.queue.importing import (
    Arrival,
    Import,
    ImportNote,
    Removal,
    dropped_from,
    find_disowned,
    find_fresh,
    find_kept,
    find_last_copies,
    to_import,
    to_notes,
    to_parcel,
    to_table_notes,
    why_group_stays,
)
from windrow.queue.job import Job
from windrow.queue.postgres.copying import remove_moved
from windrow.queue.postgres.looking import read_jobs
from windrow.queue.postgres.receiving import take_in
from windrow.queue.postgres.rows import Row, as_json
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import Work


class Importing(Verbs):
    async def import_arrivals(self, origin: str, arrivals: Sequence[Arrival]) -> Import:
        notes = as_json(to_notes(arrivals))

        async def do(work: Work) -> Import:
            found = await work.run("note_imported", origin=origin, rows=notes)
            keys = {row["key"] for row in found}
            fresh = find_fresh(arrivals, keys)
            if not fresh:
                return to_import(arrivals, keys, Receipt())
            [row] = await work.run("find_last_seq")
            receipt = await take_in(work, to_parcel(origin, fresh, row["seq"]))
            imported = to_import(arrivals, keys, receipt)
            if imported.refused:
                refused = list(imported.refused)
                await work.run("forget_imported", origin=origin, keys=refused)
            if disowned := find_disowned(keys, imported):
                await work.run("disown_imported", origin=origin, keys=disowned)
            return imported

        return await self._transact(do)

    async def find_imported(self, origin: str, keys: Sequence[str]) -> list[ImportNote]:
        found = await self._run("find_imported", origin=origin, keys=list(keys))
        return [_note(row) for row in found]

    async def list_imported(self, origin: str, after: str, limit: int) -> list[ImportNote]:
        found = await self._run("list_imported", origin=origin, after=after, limit=limit)
        return [_note(row) for row in found]

    async def remove_imported(
        self, origin: str, keys: Sequence[str], tables: Sequence[str], group: str | None = None
    ) -> Removal:
        async def do(work: Work) -> Removal:
            # Until this ends, who wants to drop one of these tables waits at this note.
            free = await _note_tables(work, origin, tables)
            found = await work.run("find_imported", origin=origin, keys=list(keys))
            notes = [_note(row) for row in found]
            ids = sorted({note.job_id for note in notes if note.job_id is not None})
            await work.run("lock_jobs", ids=ids)
            await work.run("lock_finished", ids=ids)
            jobs = await read_jobs(work.run, ids)
            if group is None:
                kept = find_kept(notes, jobs)
            else:
                kept = await _keep_group(work, group, notes, jobs)
            kept |= find_last_copies(notes, tables, set(tables) - set(free))
            gone = [note for note in notes if note.key not in kept]
            removed = sorted({note.job_id for note in gone if note.job_id is not None})
            await remove_moved(work, removed)
            if group is not None and not kept:
                await work.run("remove_groups", ids=[group])
            await work.run("forget_imported", origin=origin, keys=[note.key for note in gone])
            await work.run("forget_imported", origin=dropped_from(origin), keys=free)
            return Removal(len(removed), kept)

        return await self._transact(do)

    async def note_dropped(self, origin: str, tables: Sequence[str]) -> list[str]:
        return await self._transact(lambda work: _note_tables(work, origin, tables))

    async def forget_dropped(self, origin: str, tables: Sequence[str]) -> None:
        await self._run("forget_imported", origin=dropped_from(origin), keys=list(tables))

    async def list_dropped(self, origin: str) -> dict[str, datetime]:
        found = await self._run("list_imported", origin=dropped_from(origin), after="", limit=None)
        return {row["key"]: row["imported_at"] for row in found}


async def _note_tables(work: Work, origin: str, tables: Sequence[str]) -> list[str]:
    rows = as_json(to_table_notes(tables))
    found = await work.run("note_imported", origin=dropped_from(origin), rows=rows)
    return [row["key"] for row in found]


async def _keep_group(
    work: Work, group: str, notes: Sequence[ImportNote], jobs: Mapping[str, Job]
) -> dict[str, str]:
    """All of these with the reason, if the group is not to be removed; nothing can come to it any
    more when its members are looked at."""
    await work.lock_groups([group])
    size = next((row["members"] for row in await work.run("export_groups", ids=[group])), None)
    members = [str(row["id"]) for row in await work.run("find_kin", ids=[group], seconds=0)]
    reason = why_group_stays(size, members, jobs)
    return {} if reason is None else dict.fromkeys((note.key for note in notes), reason)


def _note(row: Row) -> ImportNote:
    job_id = None if row["job_id"] is None else str(row["job_id"])
    return ImportNote(row["key"], row["checksum"], job_id, row["imported_at"])
