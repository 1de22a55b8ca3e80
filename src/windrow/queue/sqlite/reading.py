"""The threads that read a file, each with a connection that can do nothing else.

Callers wait in their event loop, or, in a thread that has none, read by themselves. One thread
reads for all, because several that share Python's lock take longer for the same reads. Only while
one read takes long do others help, so that nobody waits behind it. What is read in less time than
it takes to hand it to a thread is read where it is asked for.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import weakref
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeVar

import msgspec

from windrow.errors import StoreUnavailable
from windrow.queue.sqlite.connection import Verb, connect
from windrow.queue.sqlite.location import Location

T = TypeVar("T")

READERS: Final = 4  # at the most
SLOW_SECONDS: Final = 0.02  # a read that takes longer is one that others should not wait for


class _Read(msgspec.Struct, Generic[T], eq=False):
    verb: Verb[T]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]
    result: T | None = None
    error: Exception | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        self.result = read(connection, self.verb)

    def answer(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:  # the loop was closed, so nobody waits for the answer
            return

    def _resolve(self) -> None:
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)  # type: ignore[arg-type]
        else:
            self.future.set_exception(self.error)


Inbox = SimpleQueue[_Read[Any] | None]


class _Tally:
    """How many reads were begun, by all threads; it is only looked at for whether it grows."""

    __slots__ = ("begun",)

    def __init__(self) -> None:
        self.begun = 0


class Readers:
    def __init__(self, location: Location) -> None:
        self._location = location
        self._inbox: Inbox = SimpleQueue()
        self._lock = threading.Lock()
        # As of the writer: the threads of a store that is dropped without being closed end.
        self._end = weakref.finalize(self, self._inbox.put, None)
        self._threads: list[threading.Thread] = []
        self._tally = _Tally()
        self._is_watched = False
        self._free: SimpleQueue[sqlite3.Connection] = SimpleQueue()  # for threads without a loop

    async def run(self, verb: Verb[T], *, is_short: bool = False) -> T:
        """Run a verb on one snapshot of the database, which is not older than this call.
        `is_short`: it reads a few rows by an index, and the event loop may wait for it."""
        loop = asyncio._get_running_loop()
        if loop is None or is_short:
            return self._read_here(verb)
        future: asyncio.Future[T] = loop.create_future()
        self._put(_Read(verb, loop, future))
        return await future

    async def close(self) -> None:
        """Finish what is in the inbox, then end the threads."""
        with self._lock:
            self._end()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        while not self._free.empty():
            self._free.get().close()

    def _put(self, asked: _Read[Any]) -> None:
        with self._lock:  # nothing may be put behind the end
            self._check_is_open()
            self._inbox.put(asked)
            if not self._threads:
                self._start(is_helper=False)
                return
        if not self._is_watched:
            self._watch(asked.loop)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_watched = True
        loop.call_later(SLOW_SECONDS, _look_at, weakref.ref(self), loop, self._tally.begun)

    def _look(self, loop: asyncio.AbstractEventLoop, begun: int) -> None:
        """Have somebody help if reads wait, and none was begun since."""
        self._is_watched = False
        with self._lock:
            if self._inbox.empty() or not self._end.alive:
                return
            self._threads = [one for one in self._threads if one.is_alive()]
            if self._tally.begun == begun and len(self._threads) < READERS:
                self._start(is_helper=True)
        self._watch(loop)

    def _start(self, *, is_helper: bool) -> None:
        thread = threading.Thread(
            target=_serve,
            args=(self._location, self._inbox, self._tally, is_helper),
            name="windrow-sqlite-reader",
            daemon=True,
        )
        self._threads.append(thread)
        thread.start()

    def _read_here(self, verb: Verb[T]) -> T:
        self._check_is_open()
        try:
            connection = self._free.get_nowait()
        except Empty:
            connection = _connect(self._location)
        try:
            return read(connection, verb)
        finally:
            self._free.put(connection)

    def _check_is_open(self) -> None:
        if not self._end.alive:
            raise StoreUnavailable("the store is closed")


def _look_at(readers: weakref.ref[Readers], loop: asyncio.AbstractEventLoop, begun: int) -> None:
    if (found := readers()) is not None:
        found._look(loop, begun)


def _serve(location: Location, inbox: Inbox, tally: _Tally, is_helper: bool) -> None:
    connection: sqlite3.Connection | None = None
    try:
        while (asked := _take(inbox, is_helper)) is not None:
            tally.begun += 1
            if not asked.future.cancelled():
                try:
                    connection = connection or _connect(location)
                    asked.run(connection)
                except Exception as error:
                    asked.error = error
                asked.answer()
            del asked  # it knows the store, which may be dropped while this waits
    finally:
        if connection is not None:
            connection.close()


def _take(inbox: Inbox, is_helper: bool) -> _Read[Any] | None:
    """The next read; None: there will be none, or, for a helper, there is none now."""
    try:
        asked = inbox.get(block=not is_helper)
    except Empty:
        return None
    if asked is None:
        inbox.put(None)  # for the next thread
    return asked


def read(connection: sqlite3.Connection, verb: Verb[T]) -> T:
    try:
        connection.execute("BEGIN")
        return verb(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _connect(location: Location) -> sqlite3.Connection:
    connection = connect(location)
    connection.execute("PRAGMA query_only = on")
    return connection
