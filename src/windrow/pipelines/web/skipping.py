"""The URLs that a crawl passed over because robots.txt forbids them."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.pipelines.web.context import Web
from windrow.queue.job import Job
from windrow.queue.queue import Queue


async def note_blocked(web: Web, job: Job, crawl_id: str | None, urls: Sequence[str]) -> None:
    """Keep these with the crawl, in the transaction that completes the job which found them."""


async def list_blocked(queue: Queue, crawl_id: str, *, limit: int = 1000) -> list[str]:
    """The URLs that were passed over, in the order in which they were found."""
    return []
