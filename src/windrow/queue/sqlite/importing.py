"""Taking in jobs from tables that are not Windrow's: see `queue/importing.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow.queue.importing import (
    Arrival,
    Import,
    ImportNote,
    find_fresh,
    to_import,
    to_notes,
    to_parcel,
)
from windrow.queue.sqlite.receiving import take_in
from windrow.queue.sqlite.rows import to_json, to_time
from windrow.queue.sqlite.work import Work


def import_arrivals(work: Work, origin: str, arrivals: Sequence[Arrival]) -> Import:
    notes = {"origin": origin, "rows": to_json(to_notes(arrivals)), "now": work.now}
    keys = {row[0] for row in work.rows("note_imported", notes)}
    fresh = find_fresh(arrivals, keys)
    if not fresh:
        return to_import(arrivals, fresh, None)
    [(last,)] = work.rows("find_last_seq", {})
    imported = to_import(arrivals, fresh, take_in(work, to_parcel(origin, fresh, last)))
    if imported.refused:
        forget_imported(work, origin, list(imported.refused))
    return imported


def find_imported(work: Work, origin: str, keys: Sequence[str]) -> list[ImportNote]:
    values = {"origin": origin, "keys": to_json(list(keys))}
    return [_note(row) for row in work.rows("find_imported", values)]


def list_imported(work: Work, origin: str, after: str, limit: int) -> list[ImportNote]:
    values = {"origin": origin, "after": after, "limit": limit}
    return [_note(row) for row in work.rows("list_imported", values)]


def forget_imported(work: Work, origin: str, keys: Sequence[str]) -> None:
    work.run("forget_imported", {"origin": origin, "keys": to_json(list(keys))})


def _note(row: tuple[Any, ...]) -> ImportNote:
    key, checksum, job_id, at = row
    return ImportNote(key, checksum, job_id, to_time(at))
