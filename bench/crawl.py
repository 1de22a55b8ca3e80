"""A crawl: pages per second and CPU per page, beside Scrapy with JOBDIR.

    .venv/bin/python -m bench.crawl [--pages 5000] [--rounds 3]

All crawl the same generated site with one process and the same number of requests at once, obey
robots.txt, keep their frontier on disk, turn every page into a document by the same call, and keep
the documents: Windrow as results of its jobs in SQLite or Postgres, Scrapy as lines of a feed. They
take turns. CPU is that of the crawling process, from its start to its end, and apart from it that
of the database's server; the ratio is what counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from bench.beds import BEDS, Bed
from bench.contestant import package_version
from bench.results import Measured

ROOT = Path(__file__).parent.parent
CONCURRENCY = 20
SQLITE, POSTGRES, SCRAPY = "windrow, SQLite", "windrow, Postgres", "Scrapy"
STORES = {SQLITE: "sqlite", POSTGRES: "postgres", SCRAPY: ""}
SETTINGS = {
    SQLITE: "one process, 20 pages at once; documents are results of jobs",
    POSTGRES: "one process, 20 pages at once; documents are results of jobs",
    SCRAPY: "one process, 20 requests at once, JOBDIR; documents are lines of a feed",
}


def main() -> None:
    given = _arguments()
    if given.part == SCRAPY:
        crawl_with_scrapy(given.url)
    elif given.part:
        crawl_with_windrow(given.url, given.database)
    else:
        from bench.report import aligned, pages_table

        print(aligned(pages_table(run(given.pages, given.rounds))))


def run(pages: int, rounds: int) -> list[Measured]:
    """Everybody crawls, then everybody again."""
    measured = [_describe(name, pages) for name in STORES]
    with ExitStack() as stack:
        beds = _open_beds(stack, measured)
        for turn in range(rounds):
            # Whoever comes first has the quieter machine: they take turns in that too.
            for one in measured if turn % 2 == 0 else reversed(measured):
                if one.absent is None:
                    figures = measure(one.name, pages, beds.get(one.store))
                    for name, value in figures.items():
                        one.figures.setdefault(name, []).append(value)
                    print(f"{one.name}: {figures}", file=sys.stderr, flush=True)
    return measured


def measure(name: str, pages: int, bed: Bed | None) -> dict[str, float]:
    """One crawl of a site that nobody has asked anything yet."""
    with ExitStack() as stack:
        url = stack.enter_context(serve(pages))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        database = "" if bed is None else stack.enter_context(bed.fresh())
        if database:
            asyncio.run(make_tables(database))
        before = None if bed is None else bed.count(database).cpu
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.crawl", "--part", name, "--url", url]
            + (["--database", database] if database else []),
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{name} ended with {process.returncode}")
        check(name, url, pages)
        after = None if bed is None else bed.count(database).cpu
    figures = {
        "pages_per_second": pages / seconds,
        "page_cpu_ms": (used.ru_utime + used.ru_stime) / pages * 1000,
        "page_peak_mib": used.ru_maxrss / 1024,
    }
    if before is not None and after is not None:
        figures["page_server_cpu_ms"] = (after - before) / pages * 1000
    return figures


def _describe(name: str, pages: int) -> Measured:
    versions = {"scrapy": package_version("scrapy") or ""} if name == SCRAPY else {}
    is_there = name != SCRAPY or versions["scrapy"]
    return Measured(
        name=name,
        store=STORES[name],
        settings=SETTINGS[name],
        versions=versions,
        jobs=pages,
        absent=None if is_there else "not installed: scrapy",
    )


def _open_beds(stack: ExitStack, measured: list[Measured]) -> dict[str, Bed]:
    beds: dict[str, Bed] = {}
    for one in measured:
        if one.store:
            try:
                beds[one.store] = stack.enter_context(BEDS[one.store]())
            except FileNotFoundError as error:
                one.absent = str(error)
    return beds


def check(name: str, url: str, pages: int) -> None:
    """The site's own book must say that every page was fetched, and once."""
    with urlopen(url.replace("/p/0", "/_log")) as answer:
        hits = json.load(answer)["hits"]
    wrong = [number for number in range(pages) if hits.get(f"/p/{number}") != 1]
    if wrong:
        raise SystemExit(f"{name} did not fetch {len(wrong)} pages once, such as /p/{wrong[0]}")


@contextmanager
def serve(pages: int) -> Iterator[str]:
    """A site in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.web.site", str(pages)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if process.stdout is None:
            raise RuntimeError("the process was started without a pipe")
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.kill()
        process.wait()


async def make_tables(database: str) -> None:
    from windrow import Queue

    async with Queue.open(database, migrate=True):
        pass


def crawl_with_windrow(url: str, database: str) -> None:
    from windrow import Queue, Worker
    from windrow.ingest.fetch.guard import Guard
    from windrow.pipelines.web.handlers import web_handlers
    from windrow.services import web

    options = {"crawlEntireDomain": True, "sitemap": "skip", "llmsTxt": False, "limit": 10_000_000}

    async def crawl() -> None:
        async with Queue.open(database) as queue:
            crawl_id = await web.start_crawl(queue, url, options)
            guard = Guard(allow=["127.0.0.0/8"])
            async with web_handlers(queue, guard=guard, host_concurrency=0) as handlers:
                worker = Worker(queue, handlers, concurrency=CONCURRENCY)
                running = asyncio.create_task(worker.run())
                await queue.wait(crawl_id)
                worker.stop()
                await running

    asyncio.run(crawl())


def crawl_with_scrapy(url: str) -> None:
    import scrapy  # type: ignore[import-not-found, unused-ignore]
    from scrapy.crawler import (  # type: ignore[import-not-found, unused-ignore]
        CrawlerProcess,
    )

    from windrow.ingest.convert import convert
    from windrow.ingest.document import Resource
    from windrow.ingest.options import ScrapeOptions

    options = ScrapeOptions.parse({"formats": ["markdown", "links"]})

    class Pages(scrapy.Spider):  # type: ignore[misc, unused-ignore]
        name = "pages"
        allowed_domains = ("127.0.0.1",)

        async def start(self) -> Any:
            # Its own way lets the first page pass the filter of what was seen, and come twice.
            yield scrapy.Request(url)

        def parse(self, response: Any) -> Any:
            resource = Resource(
                url=response.request.url,
                final_url=response.url,
                status=response.status,
                body=response.body,
                content_type="text/html",
                charset="utf-8",
            )
            document = convert(resource, options)
            links, document.links = document.links or [], None
            yield document.to_wire()
            for link in links:
                yield scrapy.Request(link)

    process = CrawlerProcess(
        {
            "JOBDIR": "jobs",
            "FEEDS": {"pages.jsonl": {"format": "jsonlines"}},
            "ROBOTSTXT_OBEY": True,
            "CONCURRENT_REQUESTS": CONCURRENCY,
            "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
            "DOWNLOAD_DELAY": 0,
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            "COOKIES_ENABLED": False,
        }
    )
    process.crawl(Pages)
    process.start()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.crawl", description=__doc__)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=tuple(STORES), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--database", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
