"""Crawls by real worker processes that are killed: what is done stays done and is not repeated."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

import pytest

from tests.processes import ROOT, Command
from tests.web.crawling import path_of
from tests.web.site import Site
from windrow import Queue
from windrow.queue.job import JobState
from windrow.queue.opening import open_store
from windrow.services import web

PATIENCE = 120.0
CONCURRENCY = 8
HANDS = 5 * CONCURRENCY  # what runs, and what has run and is about to be written

StartWorker = Callable[[], Command]


@pytest.fixture
async def queue(store_url: str) -> AsyncIterator[Queue]:
    """By the database's own clock, as the workers are."""
    store = await open_store(store_url)
    yield Queue(store)
    await store.close()


@pytest.fixture
def start_worker(store_url: str) -> Iterator[StartWorker]:
    """Start `windrow worker`, which may fetch from this machine."""
    started: list[Command] = []
    words = ("worker", "web", "--lease", "2s", "--concurrency", str(CONCURRENCY))
    environment = {
        **os.environ,
        "WINDROW_DATABASE_URL": store_url,
        "WINDROW_ALLOW_HOSTS": "127.0.0.0/8",
    }

    def start() -> Command:
        process = Command(*words, cwd=ROOT, environment=environment)
        started.append(process)
        return process

    yield start
    for process in started:
        kill(process)


def kill(process: Command) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


async def crawl_with_kills(
    queue: Queue, site: Site, start_worker: StartWorker, *, size: int, kills: int, workers: int = 1
) -> None:
    """Crawl a generated site while workers are killed, and look into the site's own book."""
    dice = random.Random(size)
    moments = sorted(dice.sample(range(size // 10, size * 8 // 10), kills))
    start = site.generate(size, fan_out=10, seconds=0.005)
    crawl_id = await web.start_crawl(queue, start, {"crawlEntireDomain": True})
    running = [start_worker() for _ in range(workers)]
    done: dict[str, int] = {}
    for moment in moments:
        await until(partial(has_hits, site, moment))
        kill(running.pop(0))
        # What has been completed by now must not be fetched again, by nobody.
        done |= {path: site.hits[path] for path in await completed(queue, crawl_id)}
        running.append(start_worker())
    await queue.wait(crawl_id, timeout=PATIENCE)

    found = await web.get_crawl(queue, crawl_id)
    assert (found.status, found.completed, found.failed) == ("completed", size, 0)
    assert await completed(queue, crawl_id) == {f"/p/{number}": 1 for number in range(size)}
    assert {path: site.hits[path] for path in done} == done
    extra = sum(site.hits[f"/p/{number}"] for number in range(size)) - size
    assert extra <= kills * HANDS, "only what a killed worker had in its hands"


async def completed(queue: Queue, crawl_id: str) -> Counter[str]:
    """How many documents there are of each page."""
    found: Counter[str] = Counter()
    after = None
    while jobs := await queue.list(
        group=crawl_id, state=JobState.COMPLETED, after=after, limit=1000
    ):
        found.update(path_of(job.payload["url"]) for job in jobs)
        after = jobs[-1].id
    return found


def has_hits(site: Site, count: int) -> bool:
    return len(site.hits) >= count


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


async def test_killed_crawl_goes_on_and_repeats_only_what_was_in_flight(
    queue: Queue, site: Site, start_worker: StartWorker
) -> None:
    await crawl_with_kills(queue, site, start_worker, size=150, kills=1)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(3))
async def test_crawl_of_two_workers_outlasts_many_kills(
    queue: Queue, site: Site, start_worker: StartWorker, seed: int
) -> None:
    await crawl_with_kills(queue, site, start_worker, size=1000 + seed, kills=6, workers=2)
