"""A worker's memory does not grow with the crawl."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from windrow import Queue
from windrow.services import web

ROOT = Path(__file__).parents[2]
MOST_MIB = 400


@pytest.mark.chaos
@pytest.mark.timeout(3600)
async def test_site_of_100_000_pages_is_crawled_in_400_mib(tmp_path: Path) -> None:
    size = int(os.environ.get("WINDROW_TEST_PAGES", "100000"))
    url = f"sqlite:///{tmp_path}/jobs.db"
    site = subprocess.Popen(
        [sys.executable, "-m", "tests.web.site", str(size)], cwd=ROOT, stdout=subprocess.PIPE
    )
    worker = None
    try:
        assert site.stdout is not None
        start = json.loads(site.stdout.readline())["url"]
        options = {"crawlEntireDomain": True, "limit": size}
        async with Queue.open(url) as queue:
            crawl_id = await web.start_crawl(queue, start, options)
            worker = subprocess.Popen(
                [sys.executable, "-m", "windrow", "worker", "web", "--concurrency", "20"],
                cwd=ROOT,
                env={
                    **os.environ,
                    "WINDROW_DATABASE_URL": url,
                    "WINDROW_ALLOW_HOSTS": "127.0.0.0/8",
                    "WINDROW_HOST_CONCURRENCY": "0",
                },
                stderr=subprocess.DEVNULL,
            )
            await queue.wait(crawl_id, timeout=3000)
            peak = peak_mib(worker.pid)
            found = await web.get_crawl(queue, crawl_id)
        assert (found.status, found.completed) == ("completed", size)
        assert peak < MOST_MIB
        print(f"\n{size} pages: {peak} MiB at the most")
    finally:
        for process in (worker, site):
            if process is not None:
                process.kill()
                process.wait()


def peak_mib(pid: int) -> int:
    """The most memory that a process ever had."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) // 1024
