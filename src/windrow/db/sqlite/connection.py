"""Connections to one file."""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from windrow.clock import Clock
from windrow.db.sqlite.failures import is_busy
from windrow.db.sqlite.location import Location
from windrow.errors import ConfigError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

T = TypeVar("T")
Verb = Callable[[sqlite3.Connection], T]

OLDEST_SQLITE: Final = (3, 35, 0)  # RETURNING
BUSY_SECONDS: Final = 30
# SQLite itself asks again after pauses of up to 0.1 s, and a process that writes all the time would
# nearly always begin its next transaction before somebody who sleeps for so long.
BUSY_PAUSE: Final = 0.0005
CACHED_STATEMENTS: Final = 512
CACHE_KIB: Final = 64 * 1024
# SQLite's default, said aloud: between 500 and 4000 pages a drain cost the same within the noise
# of the machine, and a short log keeps the file beside the database small.
CHECKPOINT_PAGES: Final = 1000


def connect(location: Location) -> sqlite3.Connection:
    """A connection set up for the queue, to be used by one thread at a time."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise ConfigError(
            f"this Python has SQLite {sqlite3.sqlite_version}; Windrow needs {wanted} or newer"
        )
    connection = sqlite3.connect(
        location.path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
    )
    try:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute(f"PRAGMA synchronous = {location.synchronous}")
        connection.execute("PRAGMA temp_store = memory")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        # Some builds overwrite what is deleted with zeros, page by page.
        connection.execute("PRAGMA secure_delete = off")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_write(location: Location) -> sqlite3.Connection:
    """The same for `begin`, which waits for others in SQLite's place. Without a log, as on some
    network file systems, a commit waits for readers too: there SQLite waits as it always does."""
    connection = connect(location)
    try:
        [(mode,)] = connection.execute("PRAGMA journal_mode")
        if mode == "wal":
            connection.execute("PRAGMA busy_timeout = 0")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(location: Location) -> sqlite3.Connection:
    connection = connect(location)
    connection.execute("PRAGMA query_only = on")
    return connection


class ReadPool:
    """Connections that can only read. Each is used by one thread at a time, and a new one is opened
    when none is free."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._free: deque[sqlite3.Connection] = deque()  # its appends and pops are atomic

    def read(self, verb: Verb[T]) -> T:
        try:
            connection = self._free.pop()  # the one used last: its page cache is warm
        except IndexError:
            connection = connect_to_read(self._location)
        try:
            connection.execute("BEGIN")
            return verb(connection)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._free.append(connection)

    def close(self) -> None:
        while self._free:
            self._free.pop().close()


def begin(connection: sqlite3.Connection) -> None:
    """Begin to write; while another process does, ask again, so often that it is our turn soon."""
    give_up_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= give_up_at:
                raise
            time.sleep(BUSY_PAUSE)
        else:
            return


def time_now(clock: Clock) -> int:
    """Microseconds since the epoch, by the given clock or by this machine's."""
    now = clock.now()
    if now is None:
        return time.time_ns() // 1000
    return (now - _EPOCH) // _MICROSECOND
