"""A prune that is killed between the archive and the removal: lines twice, never a job lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.builders import accept, add_many, claim, completion
from tests.conformance.test_retention import prune
from windrow.clock import FakeClock
from windrow.queue.archive import JsonlArchive
from windrow.queue.job import JobState
from windrow.queue.store import Store

# Dies, as by kill -9, right after the archive of the second step is on the disk.
CRASHING = """
import asyncio, os, sys
from datetime import datetime
from windrow.clock import FakeClock
from windrow.queue.archive import JsonlArchive
from windrow.queue.opening import open_store

url, folder, now = sys.argv[1:]
write, steps = JsonlArchive(folder), []

def archive(jobs):
    write(jobs)
    steps.append(jobs)
    if len(steps) == 2:
        os._exit(9)

async def main():
    store = await open_store(url, clock=FakeClock(datetime.fromisoformat(now)))
    while True:
        await store.prune_jobs(10, archive=archive)

asyncio.run(main())
"""


async def test_killed_between_archive_and_removal_no_job_is_lost(
    store: Store, store_url: str, clock: FakeClock, tmp_path: Path
) -> None:
    job_ids = await add_many(store, 40, retention_seconds=2 * 86_400)
    await accept(store, *(completion(job) for job in await claim(store, 40)))
    clock.advance(2 * 86_400)
    crashed = subprocess.run(
        [sys.executable, "-c", CRASHING, store_url, str(tmp_path), clock.now().isoformat()],
        timeout=60,
        check=False,
    )
    assert crashed.returncode == 9
    left = await store.get_jobs(job_ids)
    assert 0 < len(left) < 40

    await prune(store, limit=10, archive=JsonlArchive(tmp_path))
    text = "".join(path.read_text("utf-8") for path in tmp_path.glob("*.jsonl"))
    times = Counter(json.loads(line)["id"] for line in text.splitlines())

    assert set(times) == set(job_ids)
    assert sorted(times.values()) == [*[1] * 30, *[2] * 10]
    assert await store.get_jobs(job_ids) == {}
    assert not [info for info in await store.list_queues() if info.counts.get(JobState.COMPLETED)]
