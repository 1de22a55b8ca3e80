"""`web.batch`: pages that somebody named, scraped as one group."""

from __future__ import annotations

from typing import Final

from windrow.ingest.web.urls import place_of
from windrow.pipelines.index.sessions import open_session
from windrow.pipelines.web.context import Web
from windrow.pipelines.web.limiting import filling_group, limit_keys, set_crawl_limit
from windrow.pipelines.web.paying import open_run
from windrow.pipelines.web.payloads import (
    FOUND_PRIORITY,
    LISTED_PRIORITY,
    MANY,
    QUEUE,
    SCRAPE,
    BatchPayload,
    PagePayload,
    finish_job,
    to_json,
)
from windrow.pipelines.web.telling import announce, tells_pages
from windrow.pipelines.webhooks.deliveries import open_deliveries
from windrow.queue.job import Job, NewJob
from windrow.queue.outcome import Done

CHUNK: Final = 1000


async def start_batch(web: Web, job: Job, payload: BatchPayload) -> Done:
    if payload.webhook is not None:
        await open_deliveries(web.queue, payload.crawl_id, job.tenant)
    await open_run(web, job, payload)
    await web.queue.create_group(
        id=payload.crawl_id,
        root=job,
        hold=True,
        tenant=job.tenant,
        then=finish_job(payload, job.tenant),
    )
    if payload.feed is not None or web.indexes(payload.scrape_options):
        await open_session(web.queue, payload.crawl_id)
    hosts = {place_of(url).host for url in payload.urls}
    most = payload.max_concurrency or web.host_concurrency * len(hosts)
    await set_crawl_limit(web.queue, payload.crawl_id, None, most)
    jobs = batch_jobs(payload, job.tenant)
    async with filling_group(web.queue, payload.crawl_id):
        await announce(web, payload, job.tenant)
        for start in range(0, len(jobs), CHUNK):
            await web.queue.enqueue_many(jobs[start : start + CHUNK])
        await web.queue.close_group(payload.crawl_id)
    return Done(None)


def batch_jobs(payload: BatchPayload, tenant: str | None) -> list[NewJob]:
    """A job for each URL; one that is named twice is scraped once."""
    shared = to_json(
        PagePayload(
            url="",
            team_id=payload.team_id,
            crawl_id=payload.crawl_id,
            scrape_options=payload.scrape_options,
            feed=payload.feed,
            is_limited=True,
            is_told=tells_pages(payload),
        )
    )
    priority = LISTED_PRIORITY if len(payload.urls) > MANY else FOUND_PRIORITY
    return [
        NewJob(
            SCRAPE,
            {**shared, "url": url},
            queue=QUEUE,
            priority=priority,
            tenant=tenant,
            group=payload.crawl_id,
            group_key=url,
            limits=limit_keys(url, crawl_id=payload.crawl_id, is_limited=True, tenant=tenant),
        )
        for url in payload.urls
    ]
