"""The documents of a crawl or batch, in the order in which they were done: what was read stays
where it was while others are added."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Final

from windrow.ingest.document import Document, answer_error
from windrow.pipelines.web.answers import LEAST
from windrow.pipelines.web.payloads import SCRAPE
from windrow.queue.job import Job, JobState
from windrow.queue.queue import Queue

PAGE: Final = 100
# What was done a moment earlier may be committed a moment later.
LOOK_BACK: Final = timedelta(seconds=10)


def document_of(job: Job) -> Document:
    """The document of a page that is done."""
    return Document.from_wire(job.result)


def error_of(job: Job) -> str | None:
    """Why a page has no document to show: it failed, or its server answered with an error."""
    if job.result is None:
        return job.error or str(job.state)
    status = job.result["metadata"]["statusCode"]
    return describe_answer(status) if status >= LEAST else None


def describe_answer(status: int) -> str:
    """An error of a server in words."""
    return f"its server answered with status {status} ({answer_error(status)})"


async def list_pages(
    queue: Queue, crawl_id: str, *, after: str | None = None, skip: int = 0, limit: int = PAGE
) -> list[Job]:
    """Pages that are done, with their documents (`result`), the one that was done first first.
    `after` is the id of the last page of those before; so many after it are skipped."""
    ids = await queue.store.list_ended(
        crawl_id, SCRAPE, JobState.COMPLETED, after=after, skip=skip, limit=limit
    )
    jobs = await queue.get_many(ids)
    return [jobs[job_id] for job_id in ids if job_id in jobs]


async def iterate_pages(
    queue: Queue, crawl_id: str, *, after: str | None = None
) -> AsyncIterator[Job]:
    """All pages that are done, read part by part."""
    while pages := await list_pages(queue, crawl_id, after=after):
        for page in pages:
            yield page
        after = pages[-1].id


class NewPages:
    """The pages of a crawl that goes on, as they are done, each once."""

    def __init__(self, queue: Queue, crawl_id: str) -> None:
        self._queue = queue
        self._crawl_id = crawl_id
        self._after: str | None = None  # nothing before this one is looked at again
        self._read: dict[str, datetime | None] = {}  # those after it, and when they were done

    async def read(self) -> list[Job]:
        """Those that are new since it was asked the last time."""
        new = [
            page
            async for page in iterate_pages(self._queue, self._crawl_id, after=self._after)
            if page.id not in self._read
        ]
        self._read |= {page.id: page.finished_at for page in new}
        self._settle()
        return new

    def _settle(self) -> None:
        """Forget those that none can come before any more."""
        done = sorted((at, page_id) for page_id, at in self._read.items() if at is not None)
        settled = [one for one in done if one[0] < done[-1][0] - LOOK_BACK]
        for _, page_id in settled:
            del self._read[page_id]
        if settled:
            self._after = settled[-1][1]
