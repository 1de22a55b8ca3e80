"""Windrow's own pipelines as their stages, each with the queue it waits in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow.pipelines.calls import payloads as calls
from windrow.pipelines.index import payloads as index
from windrow.pipelines.knowledge import items as knowledge
from windrow.pipelines.video import payloads as video
from windrow.pipelines.web import payloads as web
from windrow.pipelines.webhooks import deliveries as webhooks
from windrow.queue.job import JobState
from windrow.services.tenant_queue import TenantQueue

COUNTED: Final = (JobState.READY, JobState.ACTIVE, JobState.SCHEDULED, JobState.FAILED)
_INDEX: Final = ("index", index.QUEUE)
_PIPELINES: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "Pages": (("crawl and scrape", web.QUEUE), _INDEX),
    "Files and notes": (("scan and read", knowledge.QUEUE), _INDEX),
    "Videos": (("scrape", video.SCRAPE_QUEUE), ("enrich", video.ENRICH_QUEUE), _INDEX),
    "Calls": (("extract, transcribe, analyse", calls.QUEUE), _INDEX),
    "Webhooks": (("send", webhooks.QUEUE),),
}


@dataclass(frozen=True, slots=True)
class StageCount:
    name: str
    queue: str
    counts: Sequence[tuple[JobState, int]]


async def count_stages(queue: TenantQueue) -> dict[str, list[StageCount]]:
    """The stages of each pipeline, in their order, with the jobs of their queues."""
    counts = {info.name: info.counts for info in await queue.list_queues()}
    return {
        pipeline: [
            StageCount(name, at, [(state, counts.get(at, {}).get(state, 0)) for state in COUNTED])
            for name, at in stages
        ]
        for pipeline, stages in _PIPELINES.items()
    }
