"""Finding the jobs of the web by id."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.errors import JobNotFound
from windrow.pipelines.web.payloads import BATCH, CRAWL, SCRAPE
from windrow.queue.job import Job
from windrow.queue.queue import Queue


async def get_scrape(queue: Queue, scrape_id: str, *, tenant: str | None = None) -> Job:
    """A page that was asked for, alone or as one of many. Raises JobNotFound."""
    return await find(queue, scrape_id, (SCRAPE,), tenant)


async def find_root(queue: Queue, crawl_id: str, tenant: str | None = None) -> Job:
    """The first job of a crawl or batch. Raises JobNotFound."""
    return await find(queue, crawl_id, (CRAWL, BATCH), tenant)


async def find(queue: Queue, job_id: str, kinds: Sequence[str], tenant: str | None) -> Job:
    """A job of these kinds. What another tenant has is not there."""
    return check_found(await queue.get(job_id), job_id, kinds, tenant)


def check_found(job: Job | None, job_id: str, kinds: Sequence[str], tenant: str | None) -> Job:
    """The job, if it is of these kinds and of this tenant. Raises JobNotFound."""
    if job is None or job.kind not in kinds or (tenant is not None and job.tenant != tenant):
        raise JobNotFound(job_id)
    return job
