"""The writer thread: many callers, one commit, and each error only to the call that made it."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from windrow.errors import StoreUnavailable
from windrow.queue.sqlite.connection import connect
from windrow.queue.sqlite.location import Location
from windrow.queue.sqlite.writer import Writer
from windrow.queue.transactions import run_sync

TABLES = """
    CREATE TABLE note (text TEXT UNIQUE);
    CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
"""


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return Location(str(tmp_path / "notes.db"))


@pytest.fixture
async def writer(location: Location) -> AsyncIterator[Writer]:
    connection = connect(location)
    connection.executescript(TABLES)
    connection.execute("PRAGMA foreign_keys = on")
    writer = Writer(connection)
    yield writer
    await writer.close()


def write(text: str) -> Callable[[sqlite3.Connection], str]:
    def verb(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO note VALUES (?)", (text,))
        return text

    return verb


def notes(location: Location) -> list[str]:
    with sqlite3.connect(location.path) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM note ORDER BY rowid")]


async def together(writer: Writer, *verbs: Callable[[sqlite3.Connection], Any]) -> list[Any]:
    """Run verbs in one transaction: they pile up in the inbox behind one that waits."""
    is_running, may_end = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        is_running.set()
        may_end.wait()

    first = asyncio.create_task(writer.run(hold))
    await asyncio.to_thread(is_running.wait)
    rest = [asyncio.create_task(writer.run(verb)) for verb in verbs]
    await asyncio.sleep(0)
    may_end.set()
    await first
    return await asyncio.gather(*rest, return_exceptions=True)


async def test_calls_that_wait_together_are_committed_together(
    writer: Writer, location: Location
) -> None:
    commits: list[str] = []

    def trace(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)

    await writer.run(trace)
    commits.clear()
    await together(writer, *(write(str(n)) for n in range(50)))

    assert len(commits) == 2  # of the one that waited, and of all that waited for it
    assert len(notes(location)) == 50


async def test_error_undoes_its_own_call_alone(writer: Writer, location: Location) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        write("half")(connection)
        raise LookupError("no")

    results = await together(writer, write("a"), fail, write("a"), write("b"))

    assert results[0] == "a"
    assert isinstance(results[1], LookupError)
    assert isinstance(results[2], sqlite3.IntegrityError)
    assert results[3] == "b"
    assert notes(location) == ["a", "b"]


async def test_error_of_a_call_that_is_alone_undoes_it(writer: Writer, location: Location) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        write("half")(connection)
        raise LookupError("no")

    with pytest.raises(LookupError):
        await writer.run(fail)

    assert await writer.run(write("next")) == "next"
    assert notes(location) == ["next"]


async def test_failed_commit_is_everybodys_error(writer: Writer, location: Location) -> None:
    def adopt(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO child VALUES (404)")  # seen at the commit

    results = await together(writer, write("a"), adopt, write("b"))

    assert [type(result) for result in results] == [sqlite3.IntegrityError] * 3
    assert notes(location) == []
    assert await writer.run(write("next")) == "next"


async def test_cancelled_caller_loses_nothing(writer: Writer, location: Location) -> None:
    is_running, may_end = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        write("begun")(connection)
        is_running.set()
        may_end.wait()

    begun = asyncio.create_task(writer.run(slow))
    await asyncio.to_thread(is_running.wait)
    waiting = asyncio.create_task(writer.run(write("not begun")))
    await asyncio.sleep(0)
    begun.cancel()
    waiting.cancel()
    await asyncio.gather(begun, waiting, return_exceptions=True)
    may_end.set()

    assert await writer.run(write("after")) == "after"
    assert notes(location) == ["begun", "after"]


async def test_close_finishes_what_is_waiting(writer: Writer, location: Location) -> None:
    tasks = [asyncio.create_task(writer.run(write(str(n)))) for n in range(20)]
    await asyncio.sleep(0)
    await writer.close()

    assert [await task for task in tasks] == notes(location)
    with pytest.raises(StoreUnavailable, match="closed"):
        await writer.run(write("late"))


def test_thread_survives_a_closed_loop_and_ends_when_told(location: Location) -> None:
    connection = connect(location)
    connection.executescript(TABLES)
    is_running, may_end = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        write("kept")(connection)
        is_running.set()
        may_end.wait()

    async def abandon(writer: Writer) -> None:
        task = asyncio.create_task(writer.run(slow))
        await asyncio.to_thread(is_running.wait)
        task.cancel()

    writer = Writer(connection)
    asyncio.run(abandon(writer))
    may_end.set()
    asyncio.run(writer.close())

    assert notes(location) == ["kept"]
    assert not writer._thread.is_alive()


async def side_by_side(writer: Writer, items: list[str], runs: list[list[str]]) -> list[Any]:
    """Ask for the same joint at once; `runs` becomes what it was called with."""

    def joint(
        connection: sqlite3.Connection, texts: Sequence[str]
    ) -> tuple[list[str], Callable[[], None]]:
        runs.append(list(texts))
        for text in texts:
            connection.execute("INSERT INTO note VALUES (?)", (text,))
        return [text.upper() for text in texts], lambda: runs.append(["after"])

    is_running, may_end = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        is_running.set()
        may_end.wait()

    first = asyncio.create_task(writer.run(hold))
    await asyncio.to_thread(is_running.wait)
    rest = [asyncio.create_task(writer.join(joint, item)) for item in items]
    await asyncio.sleep(0)
    may_end.set()
    await first
    answers = await asyncio.gather(*rest, return_exceptions=True)
    await writer.run(lambda connection: None)  # what comes after a commit has come
    return answers


async def test_neighbours_are_done_in_one_go_and_each_gets_its_own_answer(
    writer: Writer, location: Location
) -> None:
    runs: list[list[str]] = []
    assert await side_by_side(writer, ["a", "b", "c"], runs) == ["A", "B", "C"]
    assert runs == [["a", "b", "c"], ["after"]]
    assert notes(location) == ["a", "b", "c"]


async def test_an_error_of_one_neighbour_is_not_the_others(
    writer: Writer, location: Location
) -> None:
    runs: list[list[str]] = []
    first, second, third = await side_by_side(writer, ["a", "a", "b"], runs)
    assert (first, third) == ("A", "B")
    assert isinstance(second, sqlite3.IntegrityError)
    assert runs == [["a", "a", "b"], ["a"], ["a"], ["b"], ["after"], ["after"]]
    assert notes(location) == ["a", "b"]


async def test_a_thread_without_a_loop_waits_for_its_commit(
    writer: Writer, location: Location
) -> None:
    def block() -> str:
        return run_sync(writer.run(write("from a thread")))

    assert await asyncio.to_thread(block) == "from a thread"
    assert notes(location) == ["from a thread"]
    with pytest.raises(sqlite3.IntegrityError):
        await asyncio.to_thread(block)


async def test_thread_of_a_dropped_writer_ends(location: Location) -> None:
    writer = Writer(connect(location))
    thread = writer._thread
    del writer
    gc.collect()
    await asyncio.to_thread(thread.join, 10)

    assert not thread.is_alive()


async def test_neighbours_that_fail_undo_nothing_of_others_in_their_transaction(
    writer: Writer, location: Location
) -> None:
    def joint(connection: sqlite3.Connection, texts: Sequence[str]) -> tuple[list[str], None]:
        for text in texts:
            connection.execute("INSERT INTO note VALUES (?)", (text,))
        return list(texts), None

    is_running, may_end = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        is_running.set()
        may_end.wait()

    first = asyncio.create_task(writer.run(hold))
    await asyncio.to_thread(is_running.wait)
    rest = [
        asyncio.create_task(writer.run(write("before"))),
        *(asyncio.create_task(writer.join(joint, text)) for text in ("a", "a", "b")),
        asyncio.create_task(writer.run(write("after"))),
    ]
    await asyncio.sleep(0)
    may_end.set()
    await first
    answers = await asyncio.gather(*rest, return_exceptions=True)

    assert answers[:2] == ["before", "a"]
    assert isinstance(answers[2], sqlite3.IntegrityError)
    assert answers[3:] == ["b", "after"]
    assert notes(location) == ["before", "a", "b", "after"]
