"""Several processes on one file: none is shut out, no job is claimed twice."""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.builders import add_many, claim, completion, counts
from windrow.clock import Clock
from windrow.db.migrations import load_migrations
from windrow.queue.job import JobState
from windrow.queue.sqlite.store import SqliteStore
from windrow.queue.sqlite.work import PACKAGE

PROCESSES = 3
JOBS = 600


async def open_store(url: str) -> SqliteStore:
    return await SqliteStore.open(url, clock=Clock())


async def migrate(url: str) -> list[str]:
    store = await open_store(url)
    applied = await store.migrate()
    await store.close()
    return applied


async def drain(url: str) -> list[str]:
    """Claim and finish until nothing is left; the ids of the jobs that were ours."""
    store = await open_store(url)
    done: list[str] = []
    while jobs := await claim(store, 7):
        finished = await store.finish_jobs([completion(job) for job in jobs])
        assert not finished.lost
        done += [job.id for job in jobs]
    await store.close()
    return done


def run_migrate(url: str) -> list[str]:
    return asyncio.run(migrate(url))


def run_drain(url: str) -> list[str]:
    return asyncio.run(drain(url))


def processes() -> ProcessPoolExecutor:
    # Spawned: a child must not inherit the threads and connections of this process.
    return ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"))


def test_tables_are_made_once_however_many_make_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with processes() as pool:
        applied = list(pool.map(run_migrate, [url] * PROCESSES * 2))

    every_one = len(load_migrations(PACKAGE))
    assert sorted(map(len, applied), reverse=True) == [every_one, *[0] * (PROCESSES * 2 - 1)]


async def test_every_job_is_finished_by_exactly_one_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    store = await open_store(url)
    await store.migrate()
    job_ids = await add_many(store, JOBS)
    with processes() as pool:
        parts = await asyncio.to_thread(lambda: list(pool.map(run_drain, [url] * PROCESSES)))

    assert sorted(job_id for part in parts for job_id in part) == sorted(job_ids)
    assert await counts(store) == {JobState.COMPLETED: JOBS}
    await store.close()
