"""A crawl: one job becomes many, and a last one runs when all of them have ended.

The job that begins it is the root of a group. It waits for the group and carries its progress.
Every page is a member, however late it is found. When the last one has ended, the group's finish
job is enqueued, once. The pages have ids made from their addresses: one that is found again is the
same job, so a site of circles comes to an end.

    python examples/fan_out.py [URL of a database]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID, uuid5

from windrow import Done, Fail, Job, NewJob, Queue, Worker, handler
from windrow.queue.job import JobState

# A site, by the links of its pages. One page is gone.
SITE = {
    "/": ["/docs", "/blog", "/about"],
    "/docs": ["/", "/docs/start", "/docs/reference"],
    "/docs/start": ["/docs"],
    "/docs/reference": ["/docs", "/docs/start"],
    "/blog": ["/", "/blog/one", "/blog/two"],
    "/blog/one": ["/blog", "/gone"],
    "/blog/two": ["/blog", "/blog/one"],
    "/about": ["/"],
}


def pages(group: str, paths: Iterable[str]) -> list[NewJob]:
    return [
        NewJob("page", {"path": path}, group=group, id=str(uuid5(UUID(group), path)))
        for path in paths
    ]


@handler("crawl")
async def crawl(job: Job, payload: dict[str, Any]) -> Done:
    # Asked for twice, as it is after a crash, it is the same group.
    group = await QUEUE.create_group(root=job, then=NewJob("report", {"crawl": job.id}))
    return Done(then=pages(group.id, [payload["start"]]))


@handler("page")
async def page(job: Job, payload: dict[str, Any]) -> Done | Fail:
    links = SITE.get(payload["path"])
    if links is None:
        return Fail("404 Not Found")
    return Done({"links": len(links)}, then=pages(job.group or "", links))


@handler("report")
async def report(job: Job, payload: dict[str, Any]) -> None:
    root = await QUEUE.get(payload["crawl"])
    for one in sorted(await QUEUE.list(group=root.root_of), key=lambda one: str(one.payload)):
        print(f"{one.state:<9} {one.payload['path']}{'  ' + one.error if one.error else ''}")


async def main(url: str) -> None:
    global QUEUE
    async with Queue.open(url) as QUEUE:
        started = await QUEUE.enqueue("crawl", {"start": "/"})
        await Worker(QUEUE, [crawl, page, report], concurrency=4).run(until_idle=True)
        root = await QUEUE.get(started.id)
        if root.state != JobState.COMPLETED or root.progress is None:
            raise SystemExit(f"the crawl ended as {root.state}")
        print(f"{root.progress.percent} %:", dict(sorted(root.progress.counters.items())))


QUEUE: Queue

if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/jobs.db"))
