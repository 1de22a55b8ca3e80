"""Stages: each one hands on to the next with `Done(then=[…])`.

Completion and hand-off are one transaction, so whatever is killed in between, no document is lost
between two stages and none is handed on twice. One stage fails at first, and is tried again.

    python examples/pipeline.py [URL of a database]
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from windrow import Done, Job, NewJob, Queue, Worker, handler

PAGES = {
    "https://example.org/hay": "<h1>Hay</h1> <p>Grass that was cut and dried.</p>",
    "https://example.org/baler": "<h1>Baler</h1> <p>It picks the windrow up.</p>",
}


@dataclass
class Page:
    """What the stages hand on. A payload that does not fit fails at once, with the field named."""

    url: str
    text: str = ""


@handler("fetch", backoff=0)  # at once, so that the example is quick; the default is 2, 4, 8 … s
async def fetch(job: Job, page: Page) -> Done:
    if page.url.endswith("baler") and job.attempts == 0:
        raise ConnectionError("the server did not answer")
    print(f"fetched {page.url} (attempt {job.attempts + 1})")
    return Done(then=[NewJob("convert", {"url": page.url, "text": PAGES[page.url]})])


@handler("convert")
def convert(job: Job, page: Page) -> Done:
    """A plain function: it runs in a thread."""
    words = page.text
    for tag in ("<h1>", "</h1>", "<p>", "</p>"):
        words = words.replace(tag, "")
    return Done(then=[NewJob("index", {"url": page.url, "text": words.strip()})])


@handler("index")
async def index(job: Job, page: Page) -> dict[str, int]:
    print(f"indexed {page.url}: {page.text}")
    return {"words": len(page.text.split())}


async def main(url: str) -> None:
    async with Queue.open(url) as queue:
        await queue.enqueue_many([NewJob("fetch", {"url": page}) for page in PAGES])
        await Worker(queue, [fetch, convert, index]).run(until_idle=True)
        indexed = await queue.list(kind="index", state="completed")
        results = await queue.get_many([job.id for job in indexed])
        print("words in the index:", sum(job.result["words"] for job in results.values()))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/jobs.db"))
