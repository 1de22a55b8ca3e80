"""N8: sleepers on one file, woken by other processes; and the thread that looks for them."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tests.builders import add, claim_one, complete
from windrow.clock import Clock
from windrow.queue.sqlite import watching
from windrow.queue.sqlite.store import SqliteStore
from windrow.queue.sqlite.watching import Watch

LONG = 20.0  # seconds; only a failing test waits for it


@pytest.fixture
def url(sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "jobs.db"
    path.write_bytes(sqlite_template.read_bytes())
    return f"sqlite:///{path}"


def watches() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "windrow-sqlite-watch"]


async def insert_elsewhere(url: str) -> str:
    store = await SqliteStore.open(url, clock=Clock())
    job_id = await add(store)
    await store.close()
    return job_id


async def finish_elsewhere(url: str) -> str:
    store = await SqliteStore.open(url, clock=Clock())
    job = await claim_one(store)
    await complete(store, job)
    await store.close()
    return job.id


def run_insert(url: str) -> str:
    return asyncio.run(insert_elsewhere(url))


def run_finish(url: str) -> str:
    return asyncio.run(finish_elsewhere(url))


async def test_another_process_wakes_those_who_sleep(url: str) -> None:
    loop = asyncio.get_running_loop()
    store = await SqliteStore.open(url, clock=Clock())
    # Spawned: a child must not inherit the threads and connections of this process.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        async with store.listen_for_work(["default"]) as bell:
            inserting = loop.run_in_executor(other, run_insert, url)
            assert await bell.wait(LONG)
            job_id = await inserting
        async with store.listen_for_ends([job_id]) as bell:
            finishing = loop.run_in_executor(other, run_finish, url)
            assert await bell.wait(LONG)
            assert await finishing == job_id
    await store.close()


async def test_the_stores_of_a_file_share_a_thread_that_ends_when_nobody_sleeps(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LINGER_SECONDS", 0.01)
    stores = [await SqliteStore.open(url, clock=Clock()) for _ in range(3)]
    others = set(watches())  # of other files: they may end meanwhile
    for _ in range(3):  # it comes back when it is needed again
        async with (
            stores[0].listen_for_work(None),
            stores[1].listen_for_work(["a"]),
            stores[2].listen_for_ends(["x"]),
        ):
            [thread] = set(watches()) - others
        await asyncio.to_thread(thread.join, LONG)
        assert not thread.is_alive()
    for store in stores:
        await store.close()


async def test_a_file_that_cannot_be_watched_is_told_once_and_polled(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = await SqliteStore.open(url, clock=Clock())

    def refuse(watch: Watch, connection: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Watch, "_look", refuse)
    async with store.listen_for_work(None) as bell:
        [thread] = watches()[-1:]
        await store.pause_queue("other")
        await asyncio.to_thread(thread.join, LONG)
        assert "(disk I/O error): work of other processes is now found by polling" in caplog.text
        await add(store)
        assert await bell.wait(LONG), "what this process does is known without the thread"
    await store.close()
