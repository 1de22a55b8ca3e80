"""Wake-ups on SQLite: at once within this process, soon after the commits of other processes.

All stores of a file in this process share a belfry. Their writers ring it after each commit. While
somebody listens, one thread polls `PRAGMA data_version` for the commits of other processes and of
callers' own connections. The number says that something was committed; the thread then reads what.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from typing import Final
from weakref import WeakValueDictionary

from windrow.db.sqlite.connection import connect_to_read
from windrow.db.sqlite.location import Location
from windrow.queue.bells import Belfry, Bell, Wish
from windrow.queue.notifying import Notifier
from windrow.queue.sqlite.rows import to_json
from windrow.queue.sqlite.work import statement

logger = logging.getLogger(__name__)

# Between two polls: a wake-up within 10 ms, for less than 1 % of a core. Nearly all of that is the
# price of waking up.
POLL_SECONDS: Final = 0.008
LINGER_SECONDS: Final = 1.0  # the thread stays after the last listener, because most come back
_START_SECONDS: Final = 5.0


class Watch:
    """The listeners of one file, and the thread that polls for them."""

    def __init__(self, location: Location) -> None:
        self.belfry = Belfry()
        self._location = location
        self._lock = threading.Lock()
        self._is_running = False
        self._stay_until = 0.0  # by the monotonic clock
        self._problem: str | None = None
        self._held: Counter[str] = Counter()  # by queue, when last looked at

    @asynccontextmanager
    async def listen(self, wish: Wish, notifier: Notifier | None = None) -> AsyncIterator[Bell]:
        """A bell for a wish. With a notifier, which brings word from other processes, the file is
        not polled."""
        async with AsyncExitStack() as stack:
            if notifier is not None:
                bell = await stack.enter_async_context(notifier.listen(wish))
            else:
                bell = Bell()
            self.belfry.hang(bell, wish)
            stack.callback(self.belfry.take_down, bell)
            if notifier is None:
                await self._start()
            yield bell

    async def check(self) -> str | None:
        """Why commits of other processes are not noticed; None if they are."""
        async with self.listen(Wish()):
            return self._problem

    async def _start(self) -> None:
        """Have the thread running; it notices every commit from now on."""
        with self._lock:
            if self._is_running:
                return
            self._is_running = True
            self._problem = None
        has_begun, name = threading.Event(), "windrow-sqlite-watch"
        threading.Thread(target=self._run, args=(has_begun,), name=name, daemon=True).start()
        await asyncio.to_thread(has_begun.wait, _START_SECONDS)

    def _run(self, has_begun: threading.Event) -> None:
        try:
            with closing(connect_to_read(self._location)) as connection:
                version = _read_version(connection)
                has_begun.set()
                while self._is_wanted():
                    time.sleep(POLL_SECONDS)
                    former, version = version, _read_version(connection)
                    if version != former:
                        self._look(connection)
        except sqlite3.Error as error:
            with self._lock:
                self._is_running = False
                self._problem = f"cannot watch {self._location.path} ({error})"
            logger.warning("%s: work of other processes is now found by polling", self._problem)
        finally:
            has_begun.set()

    def _is_wanted(self) -> bool:
        if self.belfry:
            self._stay_until = time.monotonic() + LINGER_SECONDS
            return True
        with self._lock:  # a listener that comes now either is seen here or starts a thread
            if not self.belfry and time.monotonic() > self._stay_until:
                self._is_running = False
            return self._is_running

    def _look(self, connection: sqlite3.Connection) -> None:
        wished = self.belfry.wished_ids()
        given = {"ids": to_json(sorted(wished))}
        live = {row[1] for row in connection.execute(statement("find_live"), given)}
        self.belfry.ring(self._find_work(connection), wished - live)
        self.belfry.ring_readers()

    def _find_work(self, connection: sqlite3.Connection) -> set[str]:
        """Queues with claimable jobs, or with more held jobs than before. Jobs that stay held wake
        nobody: a claim may write while it looks for room, which would be noticed again."""
        found: set[str] = set()
        held: Counter[str] = Counter()
        for queue, is_paused, _, _, state, count in connection.execute(statement("list_queues")):
            if state == "held":
                held[queue] = count
            elif state == "ready" and not is_paused:
                found.add(queue)
        grown, self._held = held - self._held, held
        return found | set(grown)


def _read_version(connection: sqlite3.Connection) -> int:
    [(version,)] = connection.execute("PRAGMA data_version")
    return int(version)


_watches: WeakValueDictionary[str, Watch] = WeakValueDictionary()
_watches_lock = threading.Lock()


def watch_of(location: Location) -> Watch:
    """The one watch of a file in this process, for as long as a store is open on it."""
    path = os.path.realpath(location.path)
    with _watches_lock:
        watch = _watches.get(path)
        if watch is None:
            watch = _watches[path] = Watch(location)
        return watch
