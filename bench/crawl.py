"""A crawl: pages per second and CPU per page, beside Scrapy with JOBDIR.

    .venv/bin/python -m bench.crawl [--pages 5000] [--rounds 3] [--json results.json]

Both crawl the same generated site with one process and the same number of requests at once, obey
robots.txt, keep their frontier on disk, turn every page into a document by the same call, and keep
the documents: Windrow as results of its jobs in SQLite, Scrapy as lines of a feed. They take turns.
CPU is that of the crawling process, from its start to its end; the ratio is what counts.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

ROOT = Path(__file__).parent.parent
CONCURRENCY = 20
GOAL_SPEED = 1.0  # times Scrapy's pages per second, at the least
GOAL_CPU = 1.2  # times its CPU per page, at the most


@dataclass(frozen=True)
class Crawled:
    pages_per_second: float
    cpu_ms: float  # per page
    peak_mib: float


def main() -> None:
    given = _arguments()
    if given.part:
        {"windrow": crawl_with_windrow, "scrapy": crawl_with_scrapy}[given.part](given.url)
        return
    names = ["windrow"]
    if importlib.util.find_spec("scrapy"):
        names.append("scrapy")
    else:
        print("Scrapy is not installed: pip install 'windrow[bench]'")
    figures: dict[str, list[Crawled]] = {name: [] for name in names}
    for turn in range(given.rounds):
        # Whoever comes first has the quieter machine: they take turns in that too.
        for name in names if turn % 2 == 0 else reversed(names):
            figures[name].append(measure(name, given.pages))
            print(f"{name}: {figures[name][-1]}", file=sys.stderr, flush=True)
    print(as_table(figures))
    if given.json:
        kept = {name: [vars(one) for one in of] for name, of in figures.items()}
        Path(given.json).write_text(json.dumps(kept, indent=1), "utf-8")


def measure(name: str, pages: int) -> Crawled:
    """One crawl of a site that nobody has asked anything yet."""
    with serve(pages) as url, tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.crawl", "--part", name, "--url", url],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{name} ended with {process.returncode}")
        check(name, url, pages)
    cpu = used.ru_utime + used.ru_stime
    return Crawled(pages / seconds, cpu / pages * 1000, used.ru_maxrss / 1024)


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
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.kill()
        process.wait()


def crawl_with_windrow(url: str) -> None:
    from windrow import Queue, Worker
    from windrow.ingest.fetch.guard import Guard
    from windrow.pipelines.web.handlers import web_handlers
    from windrow.services import web

    options = {"crawlEntireDomain": True, "sitemap": "skip", "llmsTxt": False, "limit": 10_000_000}

    async def crawl() -> None:
        async with Queue.open("sqlite:///jobs.db") as queue:
            crawl_id = await web.start_crawl(queue, url, options)
            guard = Guard(allow=["127.0.0.0/8"])
            async with web_handlers(queue, guard=guard) as handlers:
                worker = Worker(queue, handlers, concurrency=CONCURRENCY)
                running = asyncio.create_task(worker.run())
                await queue.wait(crawl_id)
                worker.stop()
                await running

    asyncio.run(crawl())


def crawl_with_scrapy(url: str) -> None:
    import scrapy
    from scrapy.crawler import CrawlerProcess

    from windrow.ingest.convert import convert
    from windrow.ingest.document import Resource
    from windrow.ingest.options import ScrapeOptions

    options = ScrapeOptions.parse({"formats": ["markdown", "links"]})

    class Pages(scrapy.Spider):  # type: ignore[misc]
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


def as_table(figures: dict[str, list[Crawled]]) -> str:
    lines = ["| | pages/s | CPU, ms per page | peak MiB |", "|---|---|---|---|"]
    for name, of in figures.items():
        cells = [
            f"{statistics.median(one.pages_per_second for one in of):.0f}",
            f"{statistics.median(one.cpu_ms for one in of):.2f}",
            f"{statistics.median(one.peak_mib for one in of):.0f}",
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if "scrapy" in figures:
        lines.append(_compare(figures["windrow"], figures["scrapy"]))
    return "\n".join(lines)


def _compare(own: Sequence[Crawled], theirs: Sequence[Crawled]) -> str:
    """Round by round, since each has its own neighbours on the machine."""
    pairs = list(zip(own, theirs, strict=True))
    speed = statistics.median(a.pages_per_second / b.pages_per_second for a, b in pairs)
    cpu = statistics.median(a.cpu_ms / b.cpu_ms for a, b in pairs)
    return (
        f"\nwindrow beside Scrapy: {speed:.2f} × its pages/s (goal ≥ {GOAL_SPEED}), "
        f"{cpu:.2f} × its CPU per page (goal ≤ {GOAL_CPU})"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.crawl", description=__doc__)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="keep the figures here")
    parser.add_argument("--part", choices=("windrow", "scrapy"), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
