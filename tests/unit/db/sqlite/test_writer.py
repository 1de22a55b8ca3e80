"""The writer thread: many callers, one commit, and each error only to the call that made it."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from windrow.db.sqlite.connection import connect
from windrow.db.sqlite.location import Location
from windrow.db.sqlite.writer import Writer
from windrow.db.transactions import run_sync
from windrow.errors import ConfigError, StoreUnavailable

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


def blocking(writer: Writer, verb: Callable[[sqlite3.Connection], Any]) -> Any:
    """Run a verb as a thread without an event loop does."""
    return run_sync(writer.run(verb))


async def from_threads(writer: Writer, *verbs: Callable[[sqlite3.Connection], Any]) -> list[Any]:
    """Run each verb from a thread of its own; they wait together behind one that runs."""
    is_running, may_end = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        is_running.set()
        may_end.wait()

    first = asyncio.create_task(writer.run(hold))
    await asyncio.to_thread(is_running.wait)
    rest = []
    for count, verb in enumerate(verbs, 1):
        rest.append(asyncio.create_task(asyncio.to_thread(blocking, writer, verb)))
        while writer._inbox.qsize() < count:
            await asyncio.sleep(0.001)
    may_end.set()
    await first
    return await asyncio.gather(*rest, return_exceptions=True)


async def test_threads_that_wait_together_are_committed_together(
    writer: Writer, location: Location
) -> None:
    commits: list[str] = []

    def trace(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)

    await writer.run(trace)
    commits.clear()
    texts = [str(n) for n in range(4)]

    assert await from_threads(writer, *map(write, texts)) == texts
    assert len(commits) == 2  # of the one that waited, and of all that waited for it
    assert notes(location) == texts


async def test_an_error_is_only_that_of_the_thread_whose_call_made_it(
    writer: Writer, location: Location
) -> None:
    first, second, third = await from_threads(writer, write("a"), write("a"), write("b"))

    assert (first, third) == ("a", "b")
    assert isinstance(second, sqlite3.IntegrityError)
    assert notes(location) == ["a", "b"]


async def test_a_commit_that_fails_is_the_error_of_all_threads(
    writer: Writer, location: Location
) -> None:
    def adopt(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO child VALUES (404)")  # seen at the commit

    results = await from_threads(writer, write("a"), adopt, write("b"))

    assert [type(result) for result in results] == [sqlite3.IntegrityError] * 3
    assert await asyncio.to_thread(blocking, writer, write("next")) == "next"
    assert notes(location) == ["next"]


async def test_all_are_committed_when_more_wait_than_one_transaction_takes(
    writer: Writer, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.db.sqlite.writer.MAX_BATCH", 2)
    texts = [str(n) for n in range(4)]

    assert await from_threads(writer, *map(write, texts)) == texts
    assert notes(location) == texts


async def test_a_caller_that_is_expected_and_does_not_come_is_not_waited_for(
    writer: Writer, location: Location
) -> None:
    await side_by_side(writer, ["a", "b", "c"], [])

    assert await asyncio.wait_for(side_by_side(writer, ["d"], []), 30) == ["D"]
    assert notes(location) == ["a", "b", "c", "d"]


async def test_close_commits_the_calls_of_threads_and_takes_no_more(
    writer: Writer, location: Location
) -> None:
    is_running, may_end = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        is_running.set()
        may_end.wait()

    first = asyncio.create_task(writer.run(hold))
    await asyncio.to_thread(is_running.wait)
    waiting = asyncio.create_task(asyncio.to_thread(blocking, writer, write("a")))
    while not writer._inbox.qsize():
        await asyncio.sleep(0.001)
    closing = asyncio.create_task(writer.close())
    while writer._end.alive:
        await asyncio.sleep(0.001)
    with pytest.raises(StoreUnavailable):
        await asyncio.to_thread(blocking, writer, write("late"))
    assert not closing.done()
    may_end.set()
    await closing

    assert await waiting == "a"
    await first
    assert notes(location) == ["a"]


async def test_loops_and_threads_write_through_one_writer(
    writer: Writer, location: Location
) -> None:
    def enqueue(thread: int) -> None:
        for n in range(50):
            blocking(writer, write(f"{thread}-{n}"))

    async def enqueue_here() -> None:
        for n in range(50):
            await writer.run(write(f"loop-{n}"))

    await asyncio.gather(
        enqueue_here(), *(asyncio.to_thread(enqueue, thread) for thread in range(4))
    )
    await writer.close()

    assert len(notes(location)) == 250
    with pytest.raises(StoreUnavailable, match="closed"):
        await asyncio.to_thread(enqueue, 9)


def test_an_interrupt_of_a_waiting_thread_ends_no_commit(location: Location) -> None:
    """What Ctrl-C does to the main thread: its wait raises, and the writer thread goes on."""
    connection = connect(location)
    connection.executescript(TABLES)
    writer = Writer(connection)
    is_running, may_end = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        write("begun")(connection)
        is_running.set()
        may_end.wait()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def ring() -> None:
        is_running.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    former = signal.signal(signal.SIGUSR1, interrupt)
    try:
        threading.Thread(target=ring).start()
        with pytest.raises(KeyboardInterrupt):
            blocking(writer, hold)
    finally:
        signal.signal(signal.SIGUSR1, former)
    may_end.set()

    assert blocking(writer, write("after")) == "after"
    asyncio.run(writer.close())
    assert notes(location) == ["begun", "after"]


def test_a_forked_child_is_told_to_open_its_own(location: Location) -> None:
    writer = Writer(connect(location))
    if (child := os.fork()) == 0:
        try:
            blocking(writer, lambda connection: None)
        except ConfigError:
            os._exit(7)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    asyncio.run(writer.close())

    assert os.waitstatus_to_exitcode(status) == 7
