"""Threads that write for each other: one commit for all who wait, and nobody is left waiting."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from windrow.errors import ConfigError, StoreUnavailable
from windrow.queue.sqlite.committing import Call
from windrow.queue.sqlite.connection import connect
from windrow.queue.sqlite.crew import Crew
from windrow.queue.sqlite.location import Location
from windrow.queue.sqlite.writer import Writer
from windrow.queue.transactions import run_sync

THREADS = 8
SECONDS = 30.0  # nobody waits for so long

Verb = Callable[[sqlite3.Connection], Any]


class Desk:
    """A crew, and threads that ask it for something."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection = connect(Location(path))
        self.connection.execute("CREATE TABLE note (text TEXT UNIQUE)")
        self.connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        self.connection.execute(
            "CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"
        )
        self.connection.execute("PRAGMA foreign_keys = on")
        self.turn = threading.Lock()
        self.crew = Crew(self.connection, self.turn)
        self.commits: list[str] = []
        self.connection.set_trace_callback(self._count)
        self._threads = ThreadPoolExecutor(THREADS)

    def _count(self, sql: str) -> None:
        if sql == "COMMIT":
            self.commits.append(sql)

    def ask(self, verb: Verb) -> Future[Any]:
        return self._threads.submit(self._ask, Call(verb))

    def _ask(self, call: Call) -> Any:
        self.crew.ask(call)
        return call.answer()

    def ask_behind(self, *verbs: Verb) -> list[Future[Any]]:
        """All of them wait for the turn of somebody else, in this order."""
        with self.turn:
            asked = []
            for verb in verbs:
                asked.append(self.ask(verb))
                self.wait_for(len(asked))
        return asked

    def wait_for(self, count: int) -> None:
        while len(self.crew._waiting) < count:
            threading.Event().wait(0.001)

    def notes(self) -> list[str]:
        with sqlite3.connect(self.path) as connection:
            return [text for (text,) in connection.execute("SELECT text FROM note ORDER BY text")]

    def close(self) -> None:
        self._threads.shutdown()
        self.connection.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(str(tmp_path / "notes.db"))
    yield desk
    desk.close()


def write(text: str) -> Verb:
    def verb(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO note VALUES (?)", (text,))
        return text

    return verb


def test_threads_that_wait_together_are_committed_together(desk: Desk) -> None:
    asked = desk.ask_behind(*(write(str(n)) for n in range(THREADS)))

    assert [one.result(SECONDS) for one in asked] == [str(n) for n in range(THREADS)]
    assert len(desk.commits) == 1
    assert desk.notes() == [str(n) for n in range(THREADS)]


def test_an_error_is_only_that_of_the_thread_whose_call_made_it(desk: Desk) -> None:
    first, second, third = desk.ask_behind(write("a"), write("a"), write("b"))

    assert (first.result(SECONDS), third.result(SECONDS)) == ("a", "b")
    assert isinstance(second.exception(SECONDS), sqlite3.IntegrityError)
    assert desk.notes() == ["a", "b"]


def test_a_commit_that_fails_is_the_error_of_all(desk: Desk) -> None:
    def adopt(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO child VALUES (404)")  # seen at the commit

    asked = desk.ask_behind(write("a"), adopt, write("b"))

    assert [type(one.exception(SECONDS)) for one in asked] == [sqlite3.IntegrityError] * 3
    assert desk.ask(write("next")).result(SECONDS) == "next"
    assert desk.notes() == ["next"]


def test_those_who_come_while_one_writes_are_written_by_one_of_them(desk: Desk) -> None:
    is_writing, may_end = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        is_writing.set()
        may_end.wait(SECONDS)

    first = desk.ask(slow)
    is_writing.wait(SECONDS)
    late = [desk.ask(write(str(n))) for n in range(3)]
    desk.wait_for(3)
    may_end.set()

    assert [one.result(SECONDS) for one in (first, *late)] == [None, "0", "1", "2"]
    assert len(desk.commits) == 2


def test_nobody_is_answered_before_the_commit_when_more_wait_than_one_takes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.queue.sqlite.crew.MOST_CALLS", 2)
    desk.crew._expected = THREADS  # so that the last to come leads, who is not among the first two
    asked = [desk.ask(write(str(n))) for n in range(THREADS)]

    assert sorted(one.result(SECONDS) or "" for one in asked) == [str(n) for n in range(THREADS)]
    assert len(desk.commits) >= THREADS // 2
    assert desk.notes() == [str(n) for n in range(THREADS)]


def test_one_who_is_expected_and_does_not_come_is_not_waited_for(desk: Desk) -> None:
    for one in desk.ask_behind(write("a"), write("b"), write("c")):
        one.result(SECONDS)
    alone = desk.ask(write("d"))

    assert alone.result(SECONDS) == "d"
    assert desk.crew._expected == 1


def test_a_thread_that_is_stopped_while_it_writes_keeps_nobody_waiting(desk: Desk) -> None:
    def stop(connection: sqlite3.Connection) -> None:
        raise SystemExit

    leader, other = desk.ask_behind(stop, write("a"))

    assert isinstance(leader.exception(SECONDS), SystemExit)
    assert isinstance(other.exception(SECONDS), StoreUnavailable)  # so it is asked for again
    assert desk.ask(write("a")).result(SECONDS) == "a"
    assert desk.notes() == ["a"]


def test_a_thread_that_is_stopped_while_it_counts_the_time_leaves_that_to_the_next(
    desk: Desk,
) -> None:
    class Stopping:
        def acquire(self, timeout: float) -> bool:
            desk.wait_for(2)
            raise SystemExit

    class Stopped(Call, eq=False):
        def new_waiter(self) -> Any:
            self.waiter = Stopping()  # type: ignore[assignment]

    desk.crew._expected = 3
    stopped = desk._threads.submit(desk._ask, Stopped(write("a")))
    desk.wait_for(1)
    other = desk.ask(write("b"))

    assert isinstance(stopped.exception(SECONDS), SystemExit)
    assert other.result(SECONDS) == "b"
    assert desk.notes() == ["b"]


def test_close_waits_for_those_inside_and_lets_nobody_in(desk: Desk) -> None:
    with desk.turn:
        asked = [desk.ask(write("a")), desk.ask(write("b"))]
        desk.wait_for(2)
        closing = desk._threads.submit(desk.crew.close)
        while not desk.crew._is_closed:
            threading.Event().wait(0.001)
        late = desk.ask(write("late"))
        assert isinstance(late.exception(SECONDS), StoreUnavailable)
        assert not closing.done()
    closing.result(SECONDS)

    assert [one.result(SECONDS) for one in asked] == ["a", "b"]
    assert desk.notes() == ["a", "b"]
    desk.crew.close()  # again: there is nobody left to wait for


async def test_loops_and_threads_write_through_one_writer(tmp_path: Path) -> None:
    connection = connect(Location(str(tmp_path / "notes.db")))
    connection.execute("CREATE TABLE note (text TEXT UNIQUE)")
    writer = Writer(connection)

    def enqueue(thread: int) -> None:
        for n in range(50):
            run_sync(writer.run(write(f"{thread}-{n}")))

    async def enqueue_here() -> None:
        for n in range(50):
            await writer.run(write(f"loop-{n}"))

    await asyncio.gather(
        enqueue_here(), *(asyncio.to_thread(enqueue, thread) for thread in range(4))
    )
    found = await writer.run(lambda it: it.execute("SELECT count(*) FROM note").fetchone())
    await writer.close()

    assert found == (250,)
    with pytest.raises(StoreUnavailable, match="closed"):
        await asyncio.to_thread(enqueue, 9)


def test_the_first_goes_on_counting_when_another_leaves(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.queue.sqlite.crew.GATHER_SECONDS", 3600)
    monkeypatch.setattr("windrow.queue.sqlite.crew.MOST_GATHER_SECONDS", 3600)
    desk.crew._expected = THREADS
    asked = desk.ask(write("a"))
    desk.wait_for(1)
    other = Call(write("b"))
    with desk.crew._guard:
        desk.crew._waiting.append(other)
    monkeypatch.undo()  # so that what it counts from now on is soon over
    desk.crew._leave(other)

    assert asked.result(SECONDS) == "a"
    assert desk.notes() == ["a"]


def test_a_forked_child_is_told_to_open_its_own(tmp_path: Path) -> None:
    writer = Writer(connect(Location(str(tmp_path / "notes.db"))))
    if (child := os.fork()) == 0:
        try:
            run_sync(writer.run(lambda connection: None))
        except ConfigError:
            os._exit(7)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    asyncio.run(writer.close())

    assert os.waitstatus_to_exitcode(status) == 7
