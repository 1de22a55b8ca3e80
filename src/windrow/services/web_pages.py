"""The documents of a crawl or batch in the order in which they were done, part by part: what was
read stays where it was while others are added."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final

from windrow.pipelines.web.payloads import SCRAPE
from windrow.queue.job import Job, JobState
from windrow.queue.queue import Queue

HEADS: Final = 1_000  # read at once
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


async def read_pages(
    queue: Queue,
    crawl_id: str,
    *,
    skip: int = 0,
    limit: int | None = 100,
    without: Collection[str] = (),
) -> list[Job]:
    """Pages that are done, with their documents (`result`), the one that was done first first; all
    of them if `limit` is None, but none whose ids are in `without`."""
    heads = [head for head in await _heads(queue, crawl_id) if head.id not in without]
    wanted = [head.id for head in heads[skip : None if limit is None else skip + limit]]
    jobs = await queue.get_many(wanted)
    return [jobs[job_id] for job_id in wanted if job_id in jobs]


async def _heads(queue: Queue, crawl_id: str) -> list[Job]:
    """All pages that are done, without their documents."""
    heads: list[Job] = []
    after = None
    while True:
        part = await queue.list(
            group=crawl_id, kind=SCRAPE, state=JobState.COMPLETED, after=after, limit=HEADS
        )
        heads += part
        if len(part) < HEADS:
            break
        after = part[-1].id
    return sorted(heads, key=lambda job: (job.finished_at or _NEVER, job.id))
