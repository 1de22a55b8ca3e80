"""Documents that wait for the index although nothing is to write them: their job failed, was
cancelled, or was never enqueued. They are given to it again; what it has refused is not."""

from __future__ import annotations

from typing import Final

import msgspec

from windrow.pipelines.index.tidying import write_job
from windrow.queue.documents import Awaited, SourceRow
from windrow.queue.job import NewJob
from windrow.queue.queue import Queue

PAGE: Final = 1000


async def write_awaited(queue: Queue, source: SourceRow | None = None) -> int:
    """Enqueue what documents wait for, of a source or of all, and nobody is to write; how much."""
    count, after = 0, ""
    place = (
        (None, None, None)
        if source is None
        else (source.tenant or "", source.collection, source.id)
    )
    while page := await queue.store.list_awaited(*place, after=after, limit=PAGE):
        after = page[-1].id
        jobs = [_write_once(one) for one in page]
        inserted = await queue.enqueue_many(jobs)
        count += sum(one.outcome == "inserted" for one in inserted)
    return count


def _write_once(awaited: Awaited) -> NewJob:
    """Beside one that is to write it, or does, there need be no other."""
    return msgspec.structs.replace(write_job(awaited.id, awaited.tenant), on_conflict="return")
