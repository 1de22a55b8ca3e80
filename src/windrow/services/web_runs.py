"""Pages, crawls, batches and maps from their beginning to their end, for somebody who waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from windrow.errors import IllegalTransition
from windrow.ingest.document import Document
from windrow.ingest.options import ScrapeOptions
from windrow.queue.job import Job
from windrow.queue.queue import Queue
from windrow.services.attending import TAKEN, Attendance, Interrupted, attend
from windrow.services.jobs import find_job
from windrow.services.saving import Folder
from windrow.services.sessions import is_indexing
from windrow.services.web import (
    Crawl,
    CrawlErrors,
    count_raced,
    document_of,
    error_of,
    get_crawl,
    get_errors,
    iterate_pages,
    list_error_answers,
    retry_failed,
    start_batch,
    start_crawl,
    start_map,
    start_scrape,
)
from windrow.settings import Settings

# Begins something, or finds what was begun before; its id.
Begin = Callable[[Queue], Awaitable[str]]
Report = Callable[[Crawl], None]


@dataclass(frozen=True, slots=True)
class CrawlRun:
    """How a crawl or batch stands at the end, or where it was left."""

    crawl: Crawl
    errors: CrawlErrors  # error answers (404, 500) too
    error_answers: int = 0
    raced: int = 0  # failed pages that turned out to be other pages
    is_interrupted: bool = False
    documents: list[Document] = field(default_factory=list)  # unless they went to a folder
    saved: int = 0  # files that were written

    @property
    def pages(self) -> int:
        """The pages that there are, without those whose servers answered with an error."""
        return self.crawl.completed - self.error_answers

    @property
    def failed(self) -> int:
        return self.crawl.failed - self.raced + self.error_answers


async def run_scrapes(
    settings: Settings,
    urls: Sequence[str],
    options: Mapping[str, Any],
    *,
    out: Path | None = None,
    concurrency: int = 10,
) -> list[Job]:
    """The jobs of these pages, ended. Those that are interrupted are cancelled: nobody waits for
    them any longer. Raises Interrupted."""
    async with attend(settings, concurrency=concurrency, own=_own(settings, options)) as attendance:
        folder = None if out is None else Folder(out)
        started = [await start_scrape(attendance.queue, url, options) for url in urls]
        jobs = await _wait(attendance, started)
        for job in jobs:
            await _until_indexed(attendance, job)
        if folder is not None:
            for job in jobs:
                if error_of(job) is None:
                    folder.save(job.payload["url"], document_of(job))
            folder.close()
        return jobs


async def run_map(
    settings: Settings, url: str, options: Mapping[str, Any], *, concurrency: int = 10
) -> Job:
    """The job of a map, ended. Raises Interrupted."""
    async with attend(settings, concurrency=concurrency) as attendance:
        started = await start_map(attendance.queue, url, options)
        return (await _wait(attendance, [started]))[0]


async def run_crawl(
    settings: Settings,
    begin: Begin,
    report: Report,
    *,
    out: Path | None = None,
    with_documents: bool = False,
    scrape_options: Mapping[str, Any] | None = None,
    concurrency: int = 10,
) -> CrawlRun:
    """See a crawl or batch through, and write its pages to a folder. An interrupted one is left as
    it is, with what it has so far."""
    own = _own(settings, scrape_options or {})
    async with attend(settings, concurrency=concurrency, own=own) as attendance:
        queue = attendance.queue
        folder = None if out is None else Folder(out)
        crawl_id = await begin(queue)
        is_interrupted = False
        try:
            async for crawl in attendance.watch(crawl_id):
                report(crawl)
            await _until_indexed(attendance, await queue.get(crawl_id))
        except Interrupted:
            is_interrupted = True
        documents: list[Document] = []
        saved = 0
        if folder is not None:
            saved = await _save_pages(queue, crawl_id, folder)
        elif with_documents:
            documents = [document_of(page) async for page in _good_pages(queue, crawl_id)]
        crawl = await get_crawl(queue, crawl_id)
        errors = await get_errors(queue, crawl_id)
        bad = await list_error_answers(queue, crawl)
        return CrawlRun(
            crawl,
            replace(errors, errors=[*errors.errors, *bad]),
            len(bad),
            await count_raced(queue, crawl_id) if crawl.failed else 0,
            is_interrupted,
            documents,
            saved,
        )


def new_crawl(url: str, options: Mapping[str, Any], scrape_options: Mapping[str, Any]) -> Begin:
    return lambda queue: start_crawl(queue, url, options, scrape_options)


def new_batch(
    urls: Sequence[str],
    scrape_options: Mapping[str, Any],
    *,
    max_concurrency: int | None = None,
    ignore_invalid: bool = False,
) -> Begin:
    async def begin(queue: Queue) -> str:
        started = await start_batch(
            queue,
            urls,
            scrape_options,
            max_concurrency=max_concurrency,
            ignore_invalid=ignore_invalid,
        )
        return started.id

    return begin


def former_crawl(crawl_id: str, *, retries_failed: bool = False) -> Begin:
    """One that was begun before, by its id or the beginning of that. Raises JobNotFound."""

    async def begin(queue: Queue) -> str:
        found = await find_job(queue, crawl_id)
        await get_crawl(queue, found)  # which must be one
        if retries_failed:
            await retry_failed(queue, found)
        return found

    return begin


def _own(settings: Settings, scrape_options: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of jobs that are needed: those of the index only if pages become searchable."""
    if settings.index_pages and ScrapeOptions.parse(scrape_options).is_indexed:
        return ("web", "index")
    return ("web",)


async def _until_indexed(attendance: Attendance, job: Job) -> None:
    """Wait until pages can be found, if anybody writes the index. Raises Interrupted."""
    while await is_indexing(attendance.queue, job):
        if not any(one.takes(*TAKEN["index"]) for one in await attendance.queue.workers()):
            return
        await attendance.pause()


async def _wait(attendance: Attendance, started: Sequence[Job]) -> list[Job]:
    try:
        return [await attendance.wait(job.id) for job in started]
    except Interrupted:
        for job in started:
            with suppress(IllegalTransition):
                await attendance.queue.cancel(job.id, reason="interrupted")
        raise


async def _good_pages(queue: Queue, crawl_id: str) -> AsyncIterator[Job]:
    """The pages that are done, without those whose servers answered with an error."""
    async for page in iterate_pages(queue, crawl_id):
        if error_of(page) is None:
            yield page


async def _save_pages(queue: Queue, crawl_id: str, folder: Folder) -> int:
    saved = 0
    async for page in _good_pages(queue, crawl_id):
        await asyncio.to_thread(folder.save, page.payload["url"], document_of(page))
        saved += 1
    folder.close()
    return saved
