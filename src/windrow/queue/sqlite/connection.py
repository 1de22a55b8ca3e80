"""Connections to one file: a writer thread with group commit, and a few readers.

SQLite has one writer at a time. All writes of a store go through one thread, which takes whatever
waits in its inbox into a single transaction: many callers share one fsync. Each call runs in a
savepoint of its own, so an error undoes that call alone. Other processes' writers are waited for.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from windrow.errors import ConfigError, StoreUnavailable
from windrow.queue.sqlite.location import Location

logger = logging.getLogger(__name__)

T = TypeVar("T")
Verb = Callable[[sqlite3.Connection], T]

OLDEST_SQLITE: Final = (3, 35, 0)  # RETURNING
BUSY_SECONDS: Final = 30
MOST_CALLS_PER_COMMIT: Final = 500
READERS: Final = 4
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


@dataclass(slots=True, eq=False)
class _Call:
    verb: Verb[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    after: Callable[[], None] | None = None
    result: Any = None
    error: Exception | None = None


class Writer:
    """The one thread that writes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._inbox: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        # The thread knows the inbox and not the writer: a store that is dropped without being
        # closed is collected, and its thread told to end.
        self._end = weakref.finalize(self, self._inbox.put, None)
        self._thread = threading.Thread(
            target=_serve, args=(connection, self._inbox), name="windrow-sqlite-writer", daemon=True
        )
        self._thread.start()

    @classmethod
    async def open(cls, location: Location) -> Writer:
        return cls(await asyncio.to_thread(connect, location))

    async def run(self, verb: Verb[T], after: Callable[[], None] | None = None) -> T:
        """Run a verb in a transaction; returns when it is committed. `after` is called then, by
        the thread.

        If the caller is cancelled, a verb that has begun is committed all the same.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:  # nothing may be put behind the end
            if not self._end.alive:
                raise StoreUnavailable("the store is closed")
            self._inbox.put(_Call(verb, future, loop, after))
        return await future

    async def close(self) -> None:
        """Finish what is in the inbox, then end the thread."""
        with self._lock:
            self._end()
        await asyncio.to_thread(self._thread.join)


def _serve(connection: sqlite3.Connection, inbox: SimpleQueue[_Call | None]) -> None:
    try:
        while calls := _take(inbox):
            wanted = [call for call in calls if not call.future.cancelled()]
            if wanted:
                _commit(connection, wanted)
                _answer(wanted)
                for call in wanted:
                    if call.after is not None and call.error is None:
                        call.after()
    finally:
        connection.close()


def _take(inbox: SimpleQueue[_Call | None]) -> list[_Call]:
    """Wait for a call and take all that are there; none at the end."""
    calls: list[_Call] = []
    call = inbox.get()
    while call is not None:
        calls.append(call)
        if len(calls) == MOST_CALLS_PER_COMMIT:
            return calls
        try:
            call = inbox.get_nowait()
        except Empty:
            return calls
    if calls:
        inbox.put(None)  # for the next round
    return calls


def _commit(connection: sqlite3.Connection, calls: list[_Call]) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        if len(calls) == 1:
            calls[0].result = calls[0].verb(connection)
        else:
            for call in calls:
                _run_in_savepoint(connection, call)
        connection.execute("COMMIT")
    except Exception as error:
        for call in calls:
            call.error = call.error or error
        _roll_back(connection)


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        # The callers have their error already; the next round finds the transaction still open,
        # fails to begin one, and comes here again.
        logger.warning("rolling back failed: %s", error)


def _run_in_savepoint(connection: sqlite3.Connection, call: _Call) -> None:
    connection.execute("SAVEPOINT call")
    try:
        call.result = call.verb(connection)
    except Exception as error:
        # A full disk or an I/O error ends the whole transaction, and so all the calls in it.
        if not connection.in_transaction:
            raise
        call.error = error
        connection.execute("ROLLBACK TO call")
    connection.execute("RELEASE call")


def _answer(calls: list[_Call]) -> None:
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[_Call]] = defaultdict(list)
    for call in calls:
        by_loop[call.loop].append(call)
    for loop, answered in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, answered)
        except RuntimeError:  # the loop was closed, so nobody waits for the answer
            continue


def _resolve(calls: list[_Call]) -> None:
    for call in calls:
        if call.future.done():
            continue
        if call.error is None:
            call.future.set_result(call.result)
        else:
            call.future.set_exception(call.error)


class Readers:
    """Connections that can only read, each used by one thread at a time."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._free: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._threads = ThreadPoolExecutor(READERS, "windrow-sqlite-reader")
        self._is_closed = False

    async def run(self, verb: Verb[T]) -> T:
        """Run a verb on one snapshot of the database."""
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, verb)

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.to_thread(self._threads.shutdown)
        while not self._free.empty():
            self._free.get().close()

    def _read(self, verb: Verb[T]) -> T:
        connection = self._connection()
        try:
            connection.execute("BEGIN")
            return verb(connection)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._free.put(connection)

    def _connection(self) -> sqlite3.Connection:
        try:
            return self._free.get_nowait()
        except Empty:
            connection = connect(self._location)
            connection.execute("PRAGMA query_only = on")
            return connection
