"""The URLs that a crawl passed over because robots.txt forbids them, noted of its group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windrow.pipelines.web.context import Web
from windrow.queue.job import Job
from windrow.queue.queue import Queue

SUBJECT: Final = "robots"


async def note_blocked(web: Web, job: Job, crawl_id: str | None, urls: Sequence[str]) -> None:
    """Note these before the job which found them is completed; one that runs again notes the same.

    Not in the transaction that completes it, which would be one for each such job alone: 1,500 jobs
    with ten notes each took four times the CPU and five times as long on Postgres (without a
    deadlock, in the order of locks of 0012), for notes that are right either way.
    """
    if crawl_id is None:
        return
    new = web.not_noted(crawl_id, job.id, urls)
    if new:
        await web.queue.add_group_notes(crawl_id, SUBJECT, new)


async def list_blocked(
    queue: Queue, crawl_id: str, *, after: str = "", limit: int = 1000
) -> list[str]:
    """The URLs that were passed over, in the order of their letters."""
    return await queue.group_notes(crawl_id, SUBJECT, after=after, limit=limit)
