"""What the jobs of a crawl or batch have to tell its webhook, and when."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from windrow.errors import GroupEnded, GroupNotFound
from windrow.pipelines.web.context import Web
from windrow.pipelines.web.failures import split_code
from windrow.pipelines.web.payloads import (
    RACED,
    SCRAPE,
    BatchPayload,
    CrawlPayload,
    PagePayload,
)
from windrow.pipelines.webhooks.deliveries import (
    deliveries_id,
    tell_end,
    tell_lost_page,
    tell_page,
    tell_start,
)
from windrow.queue.job import Job, JobState, NewJob

PAGE: Final = 500
# Failed by nobody's word: their workers died, or they waited too long for room.
_UNSAID: Final = ("crash", "hold")


def tells_pages(payload: CrawlPayload | BatchPayload) -> bool:
    return payload.webhook is not None and payload.webhook.wants("page")


async def announce(web: Web, payload: CrawlPayload | BatchPayload, tenant: str | None) -> None:
    """Tell that it begins, before any page does; a job that runs again tells it once."""
    if payload.webhook is not None and payload.webhook.wants("started"):
        await web.queue.enqueue_many([tell_start(payload.crawl_id, tenant)])


def tell_of(job: Job, payload: PagePayload) -> list[NewJob]:
    """What follows from the end of a page, whatever that is."""
    if not payload.is_told or payload.crawl_id is None:
        return []
    return [tell_page(payload.crawl_id, job.id, job.tenant)]


def tell_failed_page(job: Job, why: str) -> list[NewJob]:
    if split_code(why)[0] == RACED:
        return []
    return tell_of(job, msgspec.json.decode(job.payload_json, type=PagePayload))


def tell_failed_start(job: Job, why: str) -> list[NewJob]:
    """If there is a group by now, its end is told, too: that is the same job."""
    return [tell_end(job.id, job.tenant)] if job.payload.get("webhook") else []


async def tell_rest(web: Web, crawl_id: str, tenant: str | None) -> None:
    """A crawl has ended: tell of the pages nobody could tell of, and then of the end."""
    try:
        async for jobs in _unsaid(web, crawl_id, tenant):
            await web.queue.enqueue_many(jobs)
        await web.queue.close_group(deliveries_id(crawl_id))
    except (GroupEnded, GroupNotFound):
        return  # a run before this one had come so far


async def _unsaid(web: Web, crawl_id: str, tenant: str | None) -> AsyncIterator[list[NewJob]]:
    after = None
    while failed := await web.queue.list(
        group=crawl_id, kind=SCRAPE, state=JobState.FAILED, after=after, limit=PAGE
    ):
        after = failed[-1].id
        jobs = await web.queue.get_many([job.id for job in failed if job.payload.get("is_told")])
        yield [
            tell_lost_page(crawl_id, job.id, tenant)
            for job in jobs.values()
            if job.errors and job.errors[-1].reason in _UNSAID
        ]
