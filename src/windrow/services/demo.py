"""A short tour of the queue: jobs are enqueued, claimed, retried and finished before one's eyes."""

from __future__ import annotations

from windrow.queue.job import Job, NewJob
from windrow.queue.lease import Lease
from windrow.queue.queue import Queue

DEMO_QUEUE = "demo"

PAGES = [
    ("https://example.org/", "Welcome"),
    ("https://example.org/docs", "Überblick: Einführung"),
    ("https://example.org/日本語", "はじめに"),
    ("https://example.org/broken", None),
]


async def demo_database(url: str) -> list[Job]:
    """Run the demo on this database, made first if it is new."""
    async with Queue.open(url, migrate=True) as queue:
        return await run_demo(queue)


async def run_demo(queue: Queue) -> list[Job]:
    """Enqueue a few pages as a group, work through them, and return every job as it ended."""
    group = await queue.create_group(then=NewJob("demo.report", queue=DEMO_QUEUE))
    enqueued = await queue.enqueue_many(
        [
            NewJob(
                "demo.fetch",
                {"url": url, "title": title},
                queue=DEMO_QUEUE,
                group=group.id,
                priority=8 if url.endswith("/") else 5,
                max_attempts=2,
            )
            for url, title in PAGES
        ]
    )
    ids = [job.id for job in enqueued]
    while lease := await queue.claim([DEMO_QUEUE], limit=3, worker="demo"):
        for job in lease.jobs:
            ids.append(job.id)
            await _work(lease, job)
    found = await queue.get_many(ids)
    return sorted(found.values(), key=lambda job: job.seq)


async def _work(lease: Lease, job: Job) -> None:
    """What a handler would do: one page has no title and fails until its attempts are used up."""
    if job.kind != "demo.fetch":
        await lease.complete(job, {"note": "the finish job of the group ran once"})
    elif job.payload["title"] is None:
        await lease.fail(job, "404 Not Found", retry_in=0)
    else:
        words = len(job.payload["title"].split())
        await lease.complete(job, {"title": job.payload["title"], "words": words})
