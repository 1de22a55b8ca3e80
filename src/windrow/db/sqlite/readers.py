"""The reader pool: threads that read for event loops, and connections that can only read.

One thread reads for all event loops: several that take turns at Python's lock use a quarter more
CPU time for the same reads. Others help while a slow read keeps callers waiting. A caller in a
thread without an event loop reads by itself. So does a read that takes less time than the hand-off.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from windrow.db.sqlite.connection import ReadPool, Verb
from windrow.db.sqlite.location import Location
from windrow.db.sqlite.writer import Call, wake_callers
from windrow.errors import StoreUnavailable

T = TypeVar("T")

READERS: Final = 4  # threads
SLOW_SECONDS: Final = 0.02  # a read that waits longer gets a helper

Inbox = SimpleQueue[Call | None]


class Readers:
    def __init__(self, location: Location) -> None:
        self._connections = ReadPool(location)
        self._inbox: Inbox = SimpleQueue()
        self._lock = threading.Lock()
        # As in the writer: a store that is dropped without `close` ends its threads.
        self._end = weakref.finalize(self, self._inbox.put, None)
        self._threads: list[threading.Thread] = []

    async def run(self, verb: Verb[T], *, is_short: bool = False) -> T:
        """Run a verb on one snapshot of the database, which is not older than this call.
        `is_short`: the verb reads a few rows by an index, and may block the event loop."""
        loop = asyncio._get_running_loop()
        if loop is None or is_short:
            self._check_is_open()
            return self._connections.read(verb)
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:  # no call may be put behind the end
            self._check_is_open()
            self._inbox.put(Call(verb, future=future))
            if not self._threads:
                self._start(is_helper=False)
        timer = loop.call_later(SLOW_SECONDS, self._help)
        try:
            return await future
        finally:
            timer.cancel()

    async def close(self) -> None:
        """Finish the reads that wait, then end the threads and close the connections."""
        with self._lock:
            self._end()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._connections.close()

    def _help(self) -> None:
        """Start a helper if reads still wait."""
        with self._lock:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            is_needed = self._end.alive and not self._inbox.empty()
            if is_needed and len(self._threads) < READERS:
                self._start(is_helper=True)

    def _start(self, *, is_helper: bool) -> None:
        args, name = (self._connections, self._inbox, is_helper), "windrow-sqlite-reader"
        thread = threading.Thread(target=_serve, args=args, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _check_is_open(self) -> None:
        if not self._end.alive:
            raise StoreUnavailable("the store is closed")


def _serve(connections: ReadPool, inbox: Inbox, is_helper: bool) -> None:
    while (call := _take(inbox, is_helper)) is not None:
        if call.verb is not None and not call.is_cancelled():
            try:
                call.result = connections.read(call.verb)
            except Exception as error:
                call.error = error
            wake_callers([call])
        del call  # it refers to the store, which may be dropped while this waits
    if not is_helper:
        connections.close()


def _take(inbox: Inbox, is_helper: bool) -> Call | None:
    """The next read; None at the end, or for a helper when no read waits."""
    try:
        call = inbox.get(block=not is_helper)
    except Empty:
        return None
    if call is None:
        inbox.put(None)  # for the next thread
    return call
