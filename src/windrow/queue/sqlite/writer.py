"""The one who writes: SQLite has one writer at a time, other processes' writers are waited for.

All writes of a store go through one connection. A thread of its own takes whatever waits in its
inbox into a single transaction; callers wait in their event loop. Threads that have none write for
each other (`crew`), but for the main one: what interrupts a program does it there, at any moment.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import weakref
from collections import defaultdict
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from windrow.errors import ConfigError, StoreUnavailable
from windrow.queue.sqlite.committing import (
    GATHER_SECONDS,
    MOST_CALLS,
    After,
    Call,
    Joint,
    commit,
    follow_up,
)
from windrow.queue.sqlite.connection import Verb, connect_to_write
from windrow.queue.sqlite.crew import Crew
from windrow.queue.sqlite.location import Location

T = TypeVar("T")

_forks = 0  # between the process that was started and this one


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class Writer:
    def __init__(self, connection: sqlite3.Connection) -> None:
        turn = threading.Lock()
        self._forks = _forks
        self._main_thread = threading.main_thread().ident
        self._crew = Crew(connection, turn)
        self._inbox: SimpleQueue[Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        # The thread knows the inbox and not the writer: a store that is dropped without being
        # closed is collected, and its thread told to end.
        self._end = weakref.finalize(self, self._inbox.put, None)
        self._thread = threading.Thread(
            target=_serve,
            args=(connection, turn, self._inbox),
            name="windrow-sqlite-writer",
            daemon=True,
        )
        self._thread.start()

    @classmethod
    async def open(cls, location: Location) -> Writer:
        return cls(await asyncio.to_thread(connect_to_write, location))

    async def run(self, verb: Verb[T], after: After | None = None) -> T:
        """Run a verb in a transaction; returns when it is committed. `after` is called then, by
        whoever has written it.

        If the caller is cancelled, a verb that has begun is committed all the same.
        """
        answer: T = await self._ask(Call(verb, after=after))
        return answer

    async def join(self, joint: Joint, item: Any) -> Any:
        """The same for a verb that does in one go what those ask for who wait side by side. If it
        fails for all of them it is run for each alone."""
        return await self._ask(Call(joint=joint, item=item))

    async def _ask(self, call: Call) -> Any:
        if self._forks != _forks:
            raise ConfigError("a queue cannot be used after a fork: open it in the new process")
        loop = asyncio._get_running_loop()
        if loop is not None:
            call.loop, call.future = loop, loop.create_future()
            self._put(call)
            return await call.future
        if threading.get_ident() != self._main_thread:
            self._crew.ask(call)
        else:
            waiter = call.new_waiter()
            self._put(call)
            waiter.acquire()
        return call.answer()

    def _put(self, call: Call) -> None:
        with self._lock:  # nothing may be put behind the end
            if not self._end.alive:
                raise StoreUnavailable("the store is closed")
            self._inbox.put(call)

    async def close(self) -> None:
        """Finish what was asked for, then end the thread."""
        await asyncio.to_thread(self._crew.close)
        with self._lock:
            self._end()
        await asyncio.to_thread(self._thread.join)


def _serve(
    connection: sqlite3.Connection, turn: threading.Lock, inbox: SimpleQueue[Call | None]
) -> None:
    former = 0
    try:
        while calls := _take(inbox, former):
            former = sum(call.joint is not None for call in calls)
            wanted = [call for call in calls if call.future is None or not call.future.cancelled()]
            if wanted:
                with turn:
                    commit(connection, wanted)
                _answer(wanted)
                follow_up(wanted)
            del calls, wanted  # they know the store, which may be dropped while this waits
    finally:
        with turn:
            connection.close()


def _take(inbox: SimpleQueue[Call | None], expected: int) -> list[Call]:
    """Wait for a call and take all that are there, and those that are expected if they come at
    once; none at the end."""
    calls: list[Call] = []
    call = inbox.get()
    while call is not None:
        calls.append(call)
        if len(calls) == MOST_CALLS:
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


def _answer(calls: Sequence[Call]) -> None:
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[Call]] = defaultdict(list)
    for call in calls:
        if call.waiter is not None:
            call.waiter.release()
        elif call.loop is not None:
            by_loop[call.loop].append(call)
    for loop, answered in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, answered)
        except RuntimeError:  # the loop was closed, so nobody waits for the answer
            continue


def _resolve(calls: Sequence[Call]) -> None:
    for call in calls:
        future = call.future
        if future is None or future.done():
            continue
        if call.error is None:
            future.set_result(call.result)
        else:
            future.set_exception(call.error)
