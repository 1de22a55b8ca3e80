"""A short tour: jobs are enqueued, run by a worker, retried and finished before one's eyes."""

from __future__ import annotations

from typing import Any

from windrow.queue.ids import new_id
from windrow.queue.job import Job, NewJob
from windrow.queue.queue import Queue
from windrow.worker.registry import handler
from windrow.worker.worker import Worker

DEMO_QUEUE = "demo"

PAGES = [
    ("https://example.org/", "Welcome"),
    ("https://example.org/docs", "Überblick: Einführung"),
    ("https://example.org/日本語", "はじめに"),
    ("https://example.org/broken", None),
]


@handler("demo.fetch", queue=DEMO_QUEUE, max_attempts=2, backoff="none")
async def fetch(job: Job, payload: dict[str, Any]) -> dict[str, Any]:
    """One page has no title: it fails until its attempts are used up."""
    if payload["title"] is None:
        raise LookupError("404 Not Found")
    return {"title": payload["title"], "words": len(payload["title"].split())}


@handler("demo.report", queue=DEMO_QUEUE)
def report(job: Job) -> dict[str, str]:
    return {"note": "the finish job of the group ran once"}


async def demo_database(url: str) -> list[Job]:
    """Run the demo on this database, made first if it is new."""
    async with Queue.open(url, migrate=True) as queue:
        return await run_demo(queue)


async def run_demo(queue: Queue) -> list[Job]:
    """Enqueue a few pages as a group, let a worker run them, and return every job as it ended."""
    end = NewJob("demo.report", id=new_id())
    group = await queue.create_group(then=end)
    pages = [
        NewJob(
            "demo.fetch",
            {"url": url, "title": title},
            group=group.id,
            priority=8 if url.endswith("/") else 5,
        )
        for url, title in PAGES
    ]
    enqueued = await queue.enqueue_many(pages)
    worker = Worker(queue, [fetch, report], queues=[DEMO_QUEUE], name="demo", maintain=False)
    await worker.run(until_idle=True)
    found = await queue.get_many([*(job.id for job in enqueued), str(end.id)])
    return sorted(found.values(), key=lambda job: job.seq)
