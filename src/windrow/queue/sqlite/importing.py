"""Taking in jobs from tables that are not Windrow's: see `queue/importing.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

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
from windrow.queue.sqlite.copying import remove_moved
from windrow.queue.sqlite.looking import get_jobs
from windrow.queue.sqlite.receiving import take_in
from windrow.queue.sqlite.rows import to_json, to_time
from windrow.queue.sqlite.work import Work, statement


def import_arrivals(work: Work, origin: str, arrivals: Sequence[Arrival]) -> Import:
    keys = set(_note_imported(work, origin, to_notes(arrivals)))
    fresh = find_fresh(arrivals, keys)
    if not fresh:
        return to_import(arrivals, keys, Receipt())
    [(last,)] = work.rows("find_last_seq", {})
    imported = to_import(arrivals, keys, take_in(work, to_parcel(origin, fresh, last)))
    if imported.refused:
        forget_imported(work, origin, list(imported.refused))
    if disowned := find_disowned(keys, imported):
        work.run("disown_imported", {"origin": origin, "keys": to_json(disowned)})
    return imported


def find_imported(work: Work, origin: str, keys: Sequence[str]) -> list[ImportNote]:
    values = {"origin": origin, "keys": to_json(list(keys))}
    return [_note(row) for row in work.rows("find_imported", values)]


def list_imported(work: Work, origin: str, after: str, limit: int) -> list[ImportNote]:
    values = {"origin": origin, "after": after, "limit": limit}
    return [_note(row) for row in work.rows("list_imported", values)]


def remove_imported(
    work: Work, origin: str, keys: Sequence[str], tables: Sequence[str], group: str | None = None
) -> Removal:
    dropped = set(tables) & set(list_dropped(work, origin))
    notes = find_imported(work, origin, keys)
    jobs = get_jobs(work, sorted({note.job_id for note in notes if note.job_id is not None}))
    kept = find_kept(notes, jobs) if group is None else _keep_group(work, group, notes, jobs)
    kept |= find_last_copies(notes, tables, dropped)
    gone = [note for note in notes if note.key not in kept]
    removed = sorted({note.job_id for note in gone if note.job_id is not None})
    remove_moved(work, removed)
    if group is not None and not kept:
        work.run("delete_groups", {"ids": to_json([group])})
    forget_imported(work, origin, [note.key for note in gone])
    return Removal(len(removed), kept)


def note_dropped(work: Work, origin: str, tables: Sequence[str]) -> list[str]:
    return _note_imported(work, dropped_from(origin), to_table_notes(tables))


def forget_dropped(work: Work, origin: str, tables: Sequence[str]) -> None:
    forget_imported(work, dropped_from(origin), tables)


def list_dropped(work: Work, origin: str) -> dict[str, datetime]:
    found = list_imported(work, dropped_from(origin), "", -1)
    return {note.key: note.imported_at for note in found}


def _note_imported(work: Work, origin: str, notes: Sequence[Mapping[str, str | None]]) -> list[str]:
    values = {"origin": origin, "rows": to_json(notes), "now": work.now}
    return [key for (key,) in work.rows("note_imported", values)]


def _keep_group(
    work: Work, group: str, notes: Sequence[ImportNote], jobs: Mapping[str, Job]
) -> dict[str, str]:
    """All of these with the reason, if the group is not to be removed."""
    ids = {"ids": to_json([group])}
    groups = work.named_rows(statement("export_groups"), ids)
    size = next((row["members"] for row in groups), None)
    kin = work.rows("find_kin", ids | {"since": work.now})
    reason = why_group_stays(size, [id for id, *_ in kin], jobs)
    return {} if reason is None else dict.fromkeys((note.key for note in notes), reason)


def forget_imported(work: Work, origin: str, keys: Sequence[str]) -> None:
    work.run("forget_imported", {"origin": origin, "keys": to_json(list(keys))})


def _note(row: tuple[Any, ...]) -> ImportNote:
    key, checksum, job_id, at = row
    return ImportNote(key, checksum, job_id, to_time(at))
