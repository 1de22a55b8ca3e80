"""The threads that read: one snapshot for each caller, nobody behind somebody slow, and an end."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from windrow.clock import Clock
from windrow.db.sqlite import readers as reading
from windrow.db.sqlite.location import Location
from windrow.db.sqlite.readers import READERS, Readers
from windrow.db.transactions import run_sync
from windrow.errors import StoreUnavailable
from windrow.queue.sqlite.store import SqliteStore


@pytest.fixture
def location(tmp_path: Path) -> Location:
    location = Location(str(tmp_path / "notes.db"))
    with sqlite3.connect(location.path) as connection:
        connection.execute("CREATE TABLE note (text TEXT)")
    return location


@pytest.fixture
async def readers(location: Location) -> AsyncIterator[Readers]:
    readers = Readers(location)
    yield readers
    await readers.close()


def count(connection: sqlite3.Connection) -> int:
    [(number,)] = connection.execute("SELECT count(*) FROM note")
    return int(number)


async def test_readers_cannot_write(readers: Readers) -> None:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO note VALUES ('no')")

    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await readers.run(write)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await asyncio.to_thread(lambda: run_sync(readers.run(write)))

    assert await readers.run(lambda connection: connection.in_transaction)
    assert await readers.run(count) == 0


async def test_what_was_written_before_a_read_is_seen_by_it(
    readers: Readers, location: Location
) -> None:
    with sqlite3.connect(location.path) as connection:
        for number in range(20):
            assert await readers.run(count) == number
            connection.execute("INSERT INTO note VALUES ('hay')")
            connection.commit()


async def test_somebody_slow_keeps_nobody_waiting(readers: Readers) -> None:
    is_running, may_end = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> str:
        is_running.set()
        may_end.wait(60)
        return "slow"

    first = asyncio.create_task(readers.run(slow))
    await asyncio.to_thread(is_running.wait)
    others = await asyncio.gather(*(readers.run(count) for _ in range(50)))
    may_end.set()

    assert others == [0] * 50
    assert await first == "slow"


async def test_one_who_left_is_not_read_for(readers: Readers) -> None:
    held = threading.Event()
    ran: list[str] = []
    busy = [
        asyncio.create_task(readers.run(lambda connection: held.wait(60))) for _ in range(READERS)
    ]
    left = asyncio.create_task(readers.run(lambda connection: ran.append("left")))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    held.set()

    assert await asyncio.gather(*busy) == [True] * READERS
    await readers.close()
    assert left.cancelled()
    assert ran == []


async def test_what_waits_is_read_before_the_end_and_nothing_after_it(readers: Readers) -> None:
    asked = [asyncio.create_task(readers.run(count)) for _ in range(10)]
    await asyncio.sleep(0)
    await readers.close()

    assert await asyncio.gather(*asked) == [0] * 10
    with pytest.raises(StoreUnavailable):
        await readers.run(count)
    with pytest.raises(StoreUnavailable):
        await asyncio.to_thread(lambda: run_sync(readers.run(count)))


async def test_a_file_that_cannot_be_opened_is_told_and_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    readers = Readers(Location(str(folder / "notes.db")))
    with pytest.raises(sqlite3.OperationalError):
        await readers.run(lambda connection: None)
    folder.mkdir()

    assert await readers.run(lambda connection: connection.in_transaction)
    await readers.close()


async def test_threads_of_a_store_that_is_dropped_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SLOW_SECONDS", 3600)  # so that no helper starts
    store = await SqliteStore.open(f"sqlite:///{tmp_path / 'jobs.db'}", clock=Clock())
    await store.migrate()
    await store.list_queues()
    threads = [store._writer._thread, *store._readers._threads]
    del store
    gc.collect()
    for thread in threads:
        await asyncio.to_thread(thread.join, 10)

    assert len(threads) == 2
    assert not any(thread.is_alive() for thread in threads)


async def test_helpers_of_somebody_slow_go_again(readers: Readers) -> None:
    held = threading.Event()

    def wait(_: Any) -> threading.Thread:
        held.wait(60)
        return threading.current_thread()

    slow = asyncio.create_task(readers.run(wait))
    await asyncio.sleep(0)
    helper = await readers.run(lambda _: threading.current_thread())
    held.set()
    first = await slow

    assert helper is not first
    await asyncio.to_thread(helper.join, 30)
    assert not helper.is_alive()
    assert first.is_alive()
    assert await readers.run(count) == 0
