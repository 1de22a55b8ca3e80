"""Windrow's own pipelines as their stages, each with the queue it waits in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow.catalog import Catalog
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
    "Calls": (("all stages", calls.QUEUE), _INDEX),
    "Webhooks": (("send", webhooks.QUEUE),),
}


@dataclass(frozen=True, slots=True)
class StageCount:
    name: str
    queue: str
    counts: Sequence[tuple[str, int]]
    is_shared: bool = False  # no stage, but the queue that the others share


async def count_stages(queue: TenantQueue) -> dict[str, list[StageCount]]:
    """The stages of each pipeline, in their order, with the jobs of their queues; those of calls,
    which share a queue, with the calls that are in each."""
    counts = {info.name: info.counts for info in await queue.list_queues()}
    found = {
        pipeline: [
            StageCount(name, at, [(state, counts.get(at, {}).get(state, 0)) for state in COUNTED])
            for name, at in stages
        ]
        for pipeline, stages in _PIPELINES.items()
    }
    if queue.queue.store.capabilities.documents:
        shared, *rest = found["Calls"]
        shared = replace(shared, name="jobs of all stages", is_shared=True)
        found["Calls"] = [*await _count_calls(queue), *rest, shared]
    return found


async def _count_calls(queue: TenantQueue) -> list[StageCount]:
    under_way = await Catalog(queue.queue.database).calls.count(queue.tenant)
    return [
        StageCount(stage.replace("_", " "), calls.QUEUE, [("calls", under_way.get(stage, 0))])
        for stage in calls.STAGES
    ]
