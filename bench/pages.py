"""The dashboard's pages on a queue with a million jobs and 100,000 documents: how long each takes
to open.

    .venv/bin/python -m bench.pages [--jobs 1000000] [--documents 100000] [--store sqlite]

A server runs as it does for people, without a worker. Each page is asked for a few times, as an
admin and some as a tenant; what counts is the median, and the first time, when nothing was looked
at before. The CPU time of the server (without Postgres) says how much of it is its own work. With
`--settled` Postgres has vacuumed before; without, its statistics and its map of what all may see
are of some moment while the jobs came in.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from bench.api import Api, read_answer, request, serve
from bench.beds import BEDS
from bench.usage import cpu_seconds
from windrow import Done, Fail, NewJob, Queue
from windrow.catalog import Catalog
from windrow.catalog.contents import ContentRow, Written, content_id
from windrow.catalog.documents import DocumentRow
from windrow.catalog.sources import SourceRow
from windrow.ids import new_id
from windrow.pipelines.web.payloads import SCRAPE
from windrow.services.web import start_crawl

GOAL_SECONDS = 0.1
TIMES = 9
CHUNK = 10_000
FAILED = 60_000
COMPLETED = 100_000
SCHEDULED = 30_000
CRAWLED = 5_000
ACTIVE = 200
SOURCES = 100
SMALL = 41  # documents of a small source
CLAIM = 1000
ERRORS = 25
KINDS = ("page", "thumbnail", "invoice", "mail", "index")
ADMIN, TENANT = "wr_bench_admin", "wr_bench_tenant"
KEYS = f"{ADMIN} {TENANT}=t7:write"
COOKIE = re.compile(rb"set-cookie: ([^;]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Filled:
    """What pages are opened of, by its ids."""

    job: str  # which failed
    crawl: str
    small: str  # a source
    large: str
    document: str

    @property
    def pages(self) -> list[str]:
        return [
            "/",
            "/ui/jobs",
            "/ui/jobs?state=failed",
            "/ui/jobs?state=active",
            "/ui/jobs?state=paused",
            "/ui/jobs?state=ready&kind=mail",
            "/ui/jobs?queue=work&state=completed",
            "/ui/jobs?tenant=t7",
            "/ui/jobs?tenant=t7&state=cancelled",
            f"/ui/jobs?group={self.crawl}",
            f"/ui/jobs?group={self.crawl}&state=failed",
            "/ui/jobs?error=the+server+said+503+%237",
            "/ui/jobs?error=nothing+says+so",
            "/ui/jobs?kind=nothing",
            "/ui/jobs?tag=nothing",
            "/ui/jobs?text=order-17",
            "/ui/jobs?text=nothing+has+this",
            f"/ui/jobs?after={self.job}",
            f"/ui/jobs/{self.job}",
            "/ui/failed",
            "/ui/runs",
            f"/ui/runs/{self.crawl}",
            "/ui/sources",
            f"/ui/sources/{self.small}",
            f"/ui/sources/{self.large}",
            f"/ui/documents/{self.document}",
            "/ui/search",
            "/ui/add",
            "/ui/pipelines",
            "/ui/schedules",
            "/ui/settings",
        ]

    @property
    def pages_of_tenant(self) -> list[str]:
        return [
            "/",
            "/ui/jobs",
            "/ui/jobs?state=failed",
            "/ui/jobs?text=nothing+has+this",
            "/ui/failed",
            "/ui/runs",
            "/ui/sources",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.pages", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--settled", action="store_true", help="after a vacuum")
    given = parser.parse_args()
    for name in given.store or ["sqlite", "postgres"]:
        with BEDS[name]() as bed, bed.fresh() as url:
            filled = asyncio.run(fill(url, given.jobs, given.documents))
            if given.settled:
                bed.settle(url)
            print(f"{name}, {given.jobs} jobs, {given.documents} documents")
            asyncio.run(measure(url, filled))


async def measure(url: str, filled: Filled) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with serve(Path(folder), url, "--no-worker", WINDROW_API_KEYS=KEYS) as (api, _):
            for key, pages in ((ADMIN, filled.pages), (TENANT, filled.pages_of_tenant)):
                cookie = await log_in(api, key)
                for page in pages:
                    tell(
                        page if key == ADMIN else f"{page} of a tenant",
                        *await open_page(api, page, cookie),
                    )


def tell(page: str, median: float, first: float, used: float) -> None:
    judged = "" if median < GOAL_SECONDS else "  (goal: 100 ms)"
    print(
        f"  {median * 1000:>7.1f} ms  first {first * 1000:>7.1f}  CPU {used * 1000:>6.1f}  "
        f"{page}{judged}",
        flush=True,
    )


async def log_in(api: Api, key: str) -> str:
    """The cookie of a session."""
    form = urlencode({"key": key}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    writer.write(request("POST", "/ui/login", form, **kind))
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    found = COOKIE.search(head)
    if found is None:
        raise RuntimeError(head.decode())
    return found[1].decode()


async def open_page(api: Api, page: str, cookie: str) -> tuple[float, float, float]:
    """Seconds: the median, the first, and of CPU each."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    seconds = []
    before = cpu_seconds(api.process.pid)
    for _ in range(TIMES):
        began = time.perf_counter()
        writer.write(request("GET", page, Cookie=cookie))
        await read_answer(reader)
        seconds.append(time.perf_counter() - began)
    writer.close()
    used = (cpu_seconds(api.process.pid) - before) / TIMES
    return statistics.median(seconds), seconds[0], used


async def fill(url: str, jobs: int, documents: int) -> Filled:
    """Jobs of all states, a crawl that goes on, and sources."""
    async with Queue.open(url, migrate=True) as queue:
        await finish(queue, COMPLETED)
        failed = await finish(queue, FAILED, fails=True)
        await enqueue(queue, SCHEDULED, delay=86_400.0)
        crawl = await begin_crawl(queue)
        await enqueue(queue, jobs - COMPLETED - FAILED - SCHEDULED - CRAWLED)
        await queue.claim(["work"], limit=ACTIVE, seconds=86_400)
        small, large, document = await put_documents(queue, documents)
    return Filled(failed, crawl, small, large, document)


async def begin_crawl(queue: Queue) -> str:
    """With pages that are done, one in fifty failed."""
    crawl = await start_crawl(queue, "https://example.org/")
    await queue.create_group(id=crawl, hold=True)
    urls = [f"https://example.org/part-{n % 40}/page-{n}" for n in range(CRAWLED)]
    pages = [NewJob(SCRAPE, {"url": url}, queue="pages", group=crawl) for url in urls]
    await queue.enqueue_many(pages)
    document = Done({"markdown": "Hay is dried in windrows. " * 400})
    while (lease := await queue.claim(["pages"], limit=CLAIM, seconds=60)).jobs:
        await lease.finish_many(
            [
                (job, document if number % 50 else Fail("404: not found"))
                for number, job in enumerate(lease.jobs)
            ]
        )
    return crawl


async def put_documents(queue: Queue, count: int) -> tuple[str, str, str]:
    """Small sources and one with all the rest; the ids of a small one, of the large one, and of a
    document."""
    large, *others = [f"source-{n:03}" for n in range(SOURCES)]
    sources = [SourceRow(None, id, "docs", "site", place(id)) for id in (large, *others)]
    places = [other for other in others for _ in range(SMALL)]
    places += [large] * (count - len(places))
    await Catalog(queue.database).sources.put(sources)
    for start in range(0, count, CHUNK):
        last = await put(queue, places[start : start + CHUNK], start)
    return others[0], large, last


async def put(queue: Queue, places: list[str], start: int) -> str:
    documents, contents = [], []
    for number, source in enumerate(places, start):
        id = new_id()
        text = ContentRow(content_id(id, "1"), None, "docs", "Hay is dried in windrows. " * 50)
        uri = f"{place(source)}page-{number}"
        row = DocumentRow(id, None, "docs", source, uri, pending=text.id, size=len(text.text))
        documents.append(row)
        contents.append(text)
    catalog = Catalog(queue.database)
    await catalog.documents.put(documents, contents)
    await catalog.contents.switch([Written(one.id, 3, "docs") for one in contents])
    return documents[-1].id


def place(source: str) -> str:
    return f"https://{source}.example.org/"


async def enqueue(queue: Queue, count: int, *, delay: float = 0.0) -> None:
    for start in range(0, count, CHUNK):
        await queue.enqueue_many(
            [
                NewJob(
                    KINDS[number % len(KINDS)],
                    {"order": number, "text": "hay " * 20},
                    queue="work",
                    tenant=f"t{number % 50}",
                    delay=delay,
                    unique=f"order-{number}" if not delay and number < CHUNK else None,
                    max_attempts=1,
                )
                for number in range(start, min(start + CHUNK, count))
            ]
        )


async def finish(queue: Queue, count: int, *, fails: bool = False) -> str:
    """Enqueue so many and bring them to their end; the id of the last."""
    last = ""
    for start in range(0, count, CHUNK):
        await enqueue(queue, min(CHUNK, count - start))
        while (lease := await queue.claim(["work"], limit=CLAIM, seconds=60)).jobs:
            last = lease.jobs[-1].id
            await lease.finish_many(
                [
                    (job, Fail(f"the server said 503 #{number % ERRORS}") if fails else Done())
                    for number, job in enumerate(lease.jobs)
                ]
            )
    return last


if __name__ == "__main__":
    main()
