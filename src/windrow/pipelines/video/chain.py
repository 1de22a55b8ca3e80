"""The stages of a video: pending → scraping → enriching → done, or failed with the reason.

Their queues are those of PGMQ's workers before them, and so are their leases (the visibility
timeouts) and the rule that a job that was read more than three times is given up. A call that takes
longer than a lease does no harm: the worker renews it.
"""

from __future__ import annotations

from typing import Any

from windrow.ingest.enrich.analysis import Analysis, analyse
from windrow.ingest.video import Video
from windrow.pipelines.chain import Chain, StatusRow
from windrow.pipelines.index.tidying import write_job
from windrow.pipelines.sweeping import Sweeper
from windrow.pipelines.video.keeping import TABLE, keep_document, keep_row
from windrow.pipelines.video.looking import Videos, look_at
from windrow.pipelines.video.payloads import (
    ENRICH_QUEUE,
    ENRICH_SECONDS,
    MAX_READS,
    NAME,
    SCRAPE_QUEUE,
    SCRAPE_SECONDS,
    Scraped,
    VideoPayload,
)
from windrow.queue.job import Job
from windrow.queue.outcome import Done
from windrow.worker.registry import Handler


def video_chain(videos: Videos, *, backoff: Any = "processing") -> Chain:
    chain = Chain(NAME, status=StatusRow(TABLE))

    @chain.stage(
        "scrape",
        queue=SCRAPE_QUEUE,
        status="scraping",
        lease=SCRAPE_SECONDS,
        max_reads=MAX_READS,
        backoff=backoff,
    )
    async def scrape(job: Job, payload: VideoPayload) -> Scraped:
        video = await look_at(videos, payload.video_url, job)
        return Scraped(payload.id, payload.video_url, video)

    @chain.stage(
        "enrich",
        queue=ENRICH_QUEUE,
        status="enriching",
        lease=ENRICH_SECONDS,
        max_reads=MAX_READS,
        backoff=backoff,
    )
    async def enrich(job: Job, payload: Scraped) -> Done:
        video = payload.video
        analysis = await analyse(video.transcript or "", videos.model, job.step)
        await keep_row(job, payload.id, video, analysis)
        content = await keep_document(videos.queue, job, payload.video_url, video, analysis)
        then = [] if content is None else [write_job(content, job.tenant, job.priority)]
        return Done(_told(video, analysis, content), then=then)

    return chain


def video_handlers(videos: Videos) -> list[Handler]:
    chain = video_chain(videos)
    return [*chain.handlers, video_sweeper(chain, videos).handler]


def video_sweeper(chain: Chain, videos: Videos) -> Sweeper:
    return Sweeper(chain, videos.queue, columns=["video_url"])


def _told(video: Video, analysis: Analysis, content: str | None) -> dict[str, Any]:
    return {
        "title": video.title or analysis.title,
        "has_transcript": video.transcript is not None,
        "analysed_by": analysis.made_by if video.transcript else None,
        "content": content,
    }
