"""The writer thread: one connection for all writes of a store, and one transaction for all calls
that wait.

The thread takes every call from its inbox into one transaction, so concurrent callers share one
sync of the disk (group commit). A savepoint lets an error undo its own call alone. Only this thread
commits: an interrupt that ends a caller's thread never ends a transaction that holds other calls.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

import msgspec

from windrow.db.sqlite.connection import Verb, begin, connect_to_write
from windrow.db.sqlite.location import Location
from windrow.errors import ConfigError, StoreUnavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")
After = Callable[[], None]
# A verb for several callers: takes an item of each, returns a result for each and one `after`.
Joint = Callable[[sqlite3.Connection, Sequence[Any]], tuple[Sequence[Any], After | None]]

MAX_BATCH: Final = 500  # calls in one transaction
# Callers that were answered together return a few microseconds apart. Without this wait the first
# of them gets a transaction of its own: 8 threads then use a third more CPU time.
GATHER_SECONDS: Final = 0.0002


class Call(msgspec.Struct, eq=False):
    """A request and its answer, which is valid after the commit. The caller waits for `future` in
    an event loop, or for `waiter` in a thread without one."""

    verb: Verb[Any] | None = None
    joint: Joint | None = None
    item: Any = None
    after: After | None = None
    future: asyncio.Future[Any] | None = None
    waiter: threading.Lock | None = None  # held until the call is answered
    result: Any = None
    error: Exception | None = None

    def answer(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result

    def is_cancelled(self) -> bool:
        return self.future is not None and self.future.cancelled()


Inbox = SimpleQueue[Call | None]


class Writer:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._pid = os.getpid()
        inbox: Inbox = SimpleQueue()
        self._inbox = inbox
        self._lock = threading.Lock()
        # The thread refers to the inbox and not to the writer. So a store that is dropped without
        # `close` is collected, and the finalizer ends the thread.
        self._end = weakref.finalize(self, inbox.put, None)
        self._thread = threading.Thread(
            target=_serve, args=(connection, inbox), name="windrow-sqlite-writer", daemon=True
        )
        self._thread.start()

    @classmethod
    async def open(cls, location: Location) -> Writer:
        return cls(await asyncio.to_thread(connect_to_write, location))

    async def run(self, verb: Verb[T], after: After | None = None) -> T:
        """Run a verb in a transaction and return its result after the commit. The writer thread
        calls `after` once the transaction is committed.

        If the caller is cancelled, a verb that has begun is committed all the same.
        """
        answer: T = await self._ask(Call(verb, after=after))
        return answer

    async def join(self, joint: Joint, item: Any) -> Any:
        """Run a joint on the items of all callers that wait side by side, and return the result for
        this item. If it raises, it runs again for each item alone."""
        return await self._ask(Call(joint=joint, item=item))

    async def _ask(self, call: Call) -> Any:
        if self._pid != os.getpid():
            raise ConfigError("a queue cannot be used after a fork: open it in the new process")
        loop = asyncio._get_running_loop()
        if loop is not None:
            call.future = loop.create_future()
            self._put(call)
            return await call.future
        waiter = call.waiter = threading.Lock()
        waiter.acquire()
        self._put(call)
        waiter.acquire()
        return call.answer()

    def _put(self, call: Call) -> None:
        with self._lock:  # no call may be put behind the end
            if not self._end.alive:
                raise StoreUnavailable("the store is closed")
            self._inbox.put(call)

    async def close(self) -> None:
        """Commit the calls in the inbox, then end the thread."""
        with self._lock:
            self._end()
        await asyncio.to_thread(self._thread.join)


def _serve(connection: sqlite3.Connection, inbox: Inbox) -> None:
    expected = 0
    try:
        while calls := _take(inbox, expected):
            expected = sum(call.joint is not None for call in calls)
            _write(connection, [call for call in calls if not call.is_cancelled()])
            del calls  # they refer to the store, which may be dropped while this waits
    finally:
        connection.close()


def _take(inbox: Inbox, expected: int) -> list[Call]:
    """Wait for a call and take all that are there. While they are fewer than expected, wait a
    moment for each next one. Returns an empty list at the end."""
    calls: list[Call] = []
    call = inbox.get()
    while call is not None:
        calls.append(call)
        if len(calls) == MAX_BATCH:
            return calls
        is_short = len(calls) < expected
        try:
            call = inbox.get(is_short, GATHER_SECONDS if is_short else None)
        except Empty:
            return calls
    if calls:
        inbox.put(None)  # for the next round
    return calls


def _write(connection: sqlite3.Connection, calls: Sequence[Call]) -> None:
    if calls:
        commit(connection, calls)
        wake_callers(calls)
        follow_up(calls)


def commit(connection: sqlite3.Connection, calls: Sequence[Call]) -> None:
    """Run calls in one transaction. Afterwards each call has its result or its error."""
    try:
        begin(connection)
        # Consecutive calls of one joint are one batch; any other call is a batch of its own.
        for _, alike in groupby(calls, lambda call: call.joint or call):
            batch = list(alike)
            if len(batch) == 1 or _run_in_savepoint(connection, batch):
                for call in batch:
                    call.error = _run_in_savepoint(connection, [call])
        connection.execute("COMMIT")
    except Exception as error:
        for call in calls:
            call.error = call.error or error
        _roll_back(connection)


def follow_up(calls: Iterable[Call]) -> None:
    """Call what the calls want called after their commit."""
    for call in calls:
        if call.after is not None and call.error is None:
            call.after()


def wake_callers(calls: Iterable[Call]) -> None:
    """Hand out the answers. Callers of one event loop share one wake-up."""
    for loop, alike in groupby(calls, lambda call: call.future and call.future.get_loop()):
        if loop is not None:
            with suppress(RuntimeError):  # the loop was closed, so no caller waits
                loop.call_soon_threadsafe(_resolve, list(alike))
            continue
        for call in alike:
            if call.waiter is not None:
                call.waiter.release()


def _resolve(calls: Iterable[Call]) -> None:
    for call in calls:
        if call.future is None or call.future.done():
            continue
        if call.error is None:
            call.future.set_result(call.result)
        else:
            call.future.set_exception(call.error)


def _run_in_savepoint(connection: sqlite3.Connection, batch: Sequence[Call]) -> Exception | None:
    """Run calls of one joint, or one call. An error undoes these alone and is returned."""
    failure: Exception | None = None
    first = batch[0]
    connection.execute("SAVEPOINT batch")
    try:
        if first.joint is not None:
            results, first.after = first.joint(connection, [call.item for call in batch])
            for call, result in zip(batch, results, strict=True):
                call.result = result
        elif first.verb is not None:
            first.result = first.verb(connection)
    except Exception as error:
        # A full disk or an I/O error ends the whole transaction, and so all the calls in it.
        if not connection.in_transaction:
            raise
        failure = error
        connection.execute("ROLLBACK TO batch")
    connection.execute("RELEASE batch")
    return failure


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        # The callers have their error already. The next round finds the transaction still open,
        # fails to begin one, and comes here again.
        logger.warning("rolling back failed: %s", error)
