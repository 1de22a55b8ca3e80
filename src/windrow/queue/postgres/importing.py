"""Taking in jobs from tables that are not Windrow's: see `queue/importing.py`."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.queue.importing import (
    Arrival,
    Import,
    ImportNote,
    find_fresh,
    to_import,
    to_notes,
    to_parcel,
)
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
                return to_import(arrivals, fresh, None)
            [row] = await work.run("find_last_seq")
            receipt = await take_in(work, to_parcel(origin, fresh, row["seq"]))
            imported = to_import(arrivals, fresh, receipt)
            if imported.refused:
                refused = list(imported.refused)
                await work.run("forget_imported", origin=origin, keys=refused)
            return imported

        return await self._transact(do)

    async def find_imported(self, origin: str, keys: Sequence[str]) -> list[ImportNote]:
        found = await self._run("find_imported", origin=origin, keys=list(keys))
        return [_note(row) for row in found]

    async def list_imported(self, origin: str, after: str, limit: int) -> list[ImportNote]:
        found = await self._run("list_imported", origin=origin, after=after, limit=limit)
        return [_note(row) for row in found]

    async def forget_imported(self, origin: str, keys: Sequence[str]) -> None:
        await self._run("forget_imported", origin=origin, keys=list(keys))


def _note(row: Row) -> ImportNote:
    job_id = None if row["job_id"] is None else str(row["job_id"])
    return ImportNote(row["key"], row["checksum"], job_id, row["imported_at"])
