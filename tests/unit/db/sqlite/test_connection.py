"""Beginning to write while others do."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from windrow.db.sqlite import connection as module
from windrow.db.sqlite.connection import BUSY_PAUSE, begin, connect_to_write
from windrow.db.sqlite.location import Location

SECONDS = 120.0  # nobody waits for so long
HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO note VALUES ('lost')")
print("held", flush=True)
sys.stdin.read()
"""
WRITE = """
import sys
from windrow.db.sqlite.connection import begin, connect_to_write
from windrow.db.sqlite.location import Location
connection = connect_to_write(Location(sys.argv[1]))
for n in range(200):
    begin(connection)
    connection.execute("INSERT INTO note VALUES (?)", (sys.argv[2],))
    connection.execute("COMMIT")
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "notes.db")
    with closing(connect_to_write(Location(path))) as connection:
        connection.execute("CREATE TABLE note (text TEXT)")
    return path


@pytest.fixture
def writer(path: str) -> Iterator[sqlite3.Connection]:
    with closing(connect_to_write(Location(path))) as connection:
        yield connection


@pytest.fixture
def other(path: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def count(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT text, count(*) FROM note GROUP BY text").fetchall())


def test_who_waits_asks_again_after_pauses_that_do_not_grow(
    writer: sqlite3.Connection, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 50:
            other.execute("COMMIT")

    monkeypatch.setattr("windrow.db.sqlite.connection.time.sleep", sleep)
    other.execute("BEGIN IMMEDIATE")
    begin(writer)

    assert writer.in_transaction
    assert pauses == [BUSY_PAUSE] * 50


def test_who_has_waited_for_long_enough_gives_up(
    writer: sqlite3.Connection, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.01)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        begin(writer)

    assert not writer.in_transaction
    other.execute("COMMIT")
    begin(writer)


def test_an_error_that_waiting_does_not_help_is_raised_at_once(writer: sqlite3.Connection) -> None:
    begin(writer)
    with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
        begin(writer)


def test_where_there_is_no_log_a_commit_still_waits_for_readers(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(location: Location) -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, timeout=7)
        connection.execute("PRAGMA journal_mode = delete")
        return connection

    monkeypatch.setattr(module, "connect", connect)
    with closing(connect_to_write(Location(path))) as connection:
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (7000,)


def test_a_process_that_dies_in_the_middle_of_its_turn_keeps_nobody_waiting(
    path: str, writer: sqlite3.Connection
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        waiting = threading.Thread(target=begin, args=(writer,))
        waiting.start()
        holder.kill()
        waiting.join(SECONDS)

    assert writer.in_transaction
    assert count(writer) == {}


def test_two_processes_that_write_all_the_time_both_get_through(
    path: str, writer: sqlite3.Connection
) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, path, name]) for name in ("one", "two")
    ]
    assert [one.wait(SECONDS) for one in writers] == [0, 0]

    assert count(writer) == {"one": 200, "two": 200}
