"""Documents that wait for the index although nothing is to write them: their job failed, was
cancelled, or was never enqueued. They are given to it again; what it has refused is not."""

from __future__ import annotations

from typing import Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.contents import Awaited
from windrow.catalog.sources import SourceRow
from windrow.pipelines.index.payloads import QUEUE
from windrow.pipelines.index.tidying import write_job
from windrow.queue.job import LIVE, JobState, NewJob
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
    while page := await Catalog(queue.database).contents.list_awaited(
        *place, after=after, limit=PAGE
    ):
        after = page[-1].id
        jobs = [_write_once(one) for one in page]
        inserted = await queue.enqueue_many(jobs)
        count += sum(one.outcome == "inserted" for one in inserted)
    return count


class Overlooked:
    """Finds what waits and was never enqueued: whoever put it died before that. Looked for while
    the index has nothing to do, as what waits then is little, a page at a time. What failed or was
    cancelled stays so until somebody asks for it again."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._after = ""
        self._given_up: set[str] = set()

    async def write_some(self) -> int:
        """Enqueue what the next page has of it; how much."""
        counts = await self._queue.counts(QUEUE)
        if any(counts[state] for state in LIVE):
            return 0
        page = await Catalog(self._queue.database).contents.list_awaited(
            after=self._after, limit=PAGE
        )
        self._after = page[-1].id if len(page) == PAGE else ""
        jobs = [_write_once(one) for one in page if not await self._is_given_up(one)]
        inserted = await self._queue.enqueue_many(jobs)
        return sum(one.outcome == "inserted" for one in inserted)

    async def _is_given_up(self, awaited: Awaited) -> bool:
        if awaited.id not in self._given_up:
            key = _write_once(awaited).unique
            ended_badly = [JobState.FAILED, JobState.CANCELLED]
            if await self._queue.list(unique=key, state=ended_badly, limit=1):
                self._given_up.add(awaited.id)
        return awaited.id in self._given_up


def _write_once(awaited: Awaited) -> NewJob:
    """Beside one that is to write it, or does, there need be no other."""
    return msgspec.structs.replace(write_job(awaited.id, awaited.tenant), on_conflict="return")
