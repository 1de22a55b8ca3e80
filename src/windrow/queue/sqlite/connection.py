"""Connections to one file, and the thread that writes, with group commit.

SQLite has one writer at a time. All writes of a store go through one thread, which takes whatever
waits in its inbox into a single transaction: many callers share one fsync. Each call runs in a
savepoint of its own, so an error undoes that call alone; neighbours that can be done together are
tried so first. Other processes' writers are waited for.

Callers wait in their event loop, or, in a thread that has none, by blocking it.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from windrow.errors import ConfigError, StoreUnavailable
from windrow.queue.sqlite.location import Location

logger = logging.getLogger(__name__)

T = TypeVar("T")
Verb = Callable[[sqlite3.Connection], T]
After = Callable[[], None]
# A verb that does what several callers ask for in one go: an answer to each, and what comes after.
Joint = Callable[[sqlite3.Connection, Sequence[Any]], tuple[Sequence[Any], After | None]]

OLDEST_SQLITE: Final = (3, 35, 0)  # RETURNING
BUSY_SECONDS: Final = 30
MOST_CALLS_PER_COMMIT: Final = 500
# Callers who were answered together mostly come back together, a little apart. A commit waits so
# long for the next of them: it is dearer than that, and one that goes without them makes two.
GATHER_SECONDS: Final = 0.0002
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


class _Waiter:
    """A thread without an event loop that waits for its answer."""

    __slots__ = ("_answered",)

    def __init__(self) -> None:
        self._answered = threading.Lock()
        self._answered.acquire()

    def wake(self) -> None:
        self._answered.release()

    def wait(self) -> None:
        self._answered.acquire()


@dataclass(slots=True, eq=False)
class _Call:
    verb: Verb[Any] | None = None
    joint: Joint | None = None
    item: Any = None
    after: After | None = None
    future: asyncio.Future[Any] | None = None
    loop: asyncio.AbstractEventLoop | None = None
    waiter: _Waiter | None = None
    result: Any = None
    error: Exception | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        if self.joint is not None:
            [self.result], self.after = self.joint(connection, [self.item])
        elif self.verb is not None:
            self.result = self.verb(connection)
        else:
            raise RuntimeError("a call needs a verb, of its own or with others")


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

    async def run(self, verb: Verb[T], after: After | None = None) -> T:
        """Run a verb in a transaction; returns when it is committed. `after` is called then, by
        the thread.

        If the caller is cancelled, a verb that has begun is committed all the same.
        """
        answer: T = await self._ask(_Call(verb, after=after))
        return answer

    async def join(self, joint: Joint, item: Any) -> Any:
        """The same for a verb that does in one go what those ask for who wait side by side. If it
        fails for all of them it is run for each alone."""
        return await self._ask(_Call(joint=joint, item=item))

    async def _ask(self, call: _Call) -> Any:
        loop = asyncio._get_running_loop()
        if loop is None:
            waiter = call.waiter = _Waiter()
            self._put(call)
            waiter.wait()
            if call.error is not None:
                raise call.error
            return call.result
        call.loop, call.future = loop, loop.create_future()
        self._put(call)
        return await call.future

    def _put(self, call: _Call) -> None:
        with self._lock:  # nothing may be put behind the end
            if not self._end.alive:
                raise StoreUnavailable("the store is closed")
            self._inbox.put(call)

    async def close(self) -> None:
        """Finish what is in the inbox, then end the thread."""
        with self._lock:
            self._end()
        await asyncio.to_thread(self._thread.join)


def _serve(connection: sqlite3.Connection, inbox: SimpleQueue[_Call | None]) -> None:
    former = 0
    try:
        while calls := _take(inbox, former):
            former = sum(call.joint is not None for call in calls)
            _run(connection, calls)
            del calls  # they know the store, which may be dropped while this waits
    finally:
        connection.close()


def _run(connection: sqlite3.Connection, calls: list[_Call]) -> None:
    wanted = [call for call in calls if call.future is None or not call.future.cancelled()]
    if wanted:
        _commit(connection, wanted)
        _answer(wanted)
        for call in wanted:
            if call.after is not None and call.error is None:
                call.after()


def _take(inbox: SimpleQueue[_Call | None], expected: int) -> list[_Call]:
    """Wait for a call and take all that are there, and those that are expected if they come at
    once; none at the end."""
    calls: list[_Call] = []
    call = inbox.get()
    while call is not None:
        calls.append(call)
        if len(calls) == MOST_CALLS_PER_COMMIT:
            return calls
        try:
            if len(calls) < expected and inbox.empty():
                call = inbox.get(timeout=GATHER_SECONDS)
            else:
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
            calls[0].run(connection)
        else:
            for neighbours in _neighbours(calls):
                if len(neighbours) == 1 or not _run_together(connection, neighbours):
                    for call in neighbours:
                        _run_in_savepoint(connection, call)
        connection.execute("COMMIT")
    except Exception as error:
        for call in calls:
            call.error = call.error or error
        _roll_back(connection)


def _neighbours(calls: Iterable[_Call]) -> Iterator[list[_Call]]:
    """The calls in their order, those in a row that can be done together as one list."""
    for joint, alike in groupby(calls, lambda call: call.joint):
        if joint is None:
            yield from ([call] for call in alike)
        else:
            yield list(alike)


def _run_together(connection: sqlite3.Connection, calls: list[_Call]) -> bool:
    """Whether that went well; if not, nothing was done."""
    joint = calls[0].joint
    if joint is None:
        return False
    connection.execute("SAVEPOINT together")
    try:
        results, calls[0].after = joint(connection, [call.item for call in calls])
    except Exception:
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO together")
        connection.execute("RELEASE together")
        return False
    connection.execute("RELEASE together")
    for call, result in zip(calls, results, strict=True):
        call.result = result
    return True


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
        call.run(connection)
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
        if call.waiter is not None:
            call.waiter.wake()
        elif call.loop is not None:
            by_loop[call.loop].append(call)
    for loop, answered in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, answered)
        except RuntimeError:  # the loop was closed, so nobody waits for the answer
            continue


def _resolve(calls: list[_Call]) -> None:
    for call in calls:
        future = call.future
        if future is None or future.done():
            continue
        if call.error is None:
            future.set_result(call.result)
        else:
            future.set_exception(call.error)
