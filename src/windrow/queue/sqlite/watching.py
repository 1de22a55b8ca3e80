"""Wake-ups on SQLite: at once in this process, soon across processes.

All stores of a file in this process share a belfry. Their writers ring it after each commit. What
other processes commit, and callers in transactions of their own, is noticed by one small thread
that looks at the file, and only while somebody sleeps. That tells that something was committed, not
what: the thread finds out then who is meant.
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

from windrow.queue.bells import Belfry, Bell, Wish
from windrow.queue.notifying import Notifier
from windrow.queue.sqlite.connection import connect
from windrow.queue.sqlite.location import Location
from windrow.queue.sqlite.log import Log, open_log
from windrow.queue.sqlite.rows import to_json
from windrow.queue.sqlite.work import statement

logger = logging.getLogger(__name__)

# After a write to the log a commit is asked for after each of these, in seconds: it can be seen
# only when the disk has it, and soon after somebody shall know. Without a write, now and then.
ASKING_PAUSES: Final = (0.0005, 0.001, 0.002, 0.004, *(0.008,) * 12)
ASKING_ANYWAY_SECONDS: Final = 0.1
# So long the thread stays when nobody sleeps any more: most sleepers come back.
LINGER_SECONDS: Final = 1.0
_START_SECONDS: Final = 5.0


class Commits:
    """Whether others have committed since last asked.

    `PRAGMA data_version` is exact and takes locks. A write to the log costs less to notice and
    comes a little before the commit can be seen, so the number is asked for a while after it.
    """

    def __init__(self, connection: sqlite3.Connection, log: Log) -> None:
        self._connection = connection
        self._log = log
        self._pauses = iter(ASKING_PAUSES)
        self._version = self._read_version()

    def wait(self) -> bool:
        """Sleep until others may have committed, but not for long; whether they have."""
        pause = next(self._pauses, None)
        if self._log.wait_for_write(ASKING_ANYWAY_SECONDS) if pause is None else self._pass(pause):
            self._pauses = iter(ASKING_PAUSES)
        former, self._version = self._version, self._read_version()
        return self._version != former

    def _pass(self, pause: float) -> bool:
        time.sleep(pause)
        return self._log.wait_for_write(0)

    def _read_version(self) -> int:
        [(version,)] = self._connection.execute("PRAGMA data_version")
        return int(version)


class Watch:
    """Who sleeps on one file, and the thread that looks for them."""

    def __init__(self, location: Location) -> None:
        self.belfry = Belfry()
        self._location = location
        self._change = threading.Condition()
        self._is_running = False
        self._problem: str | None = None
        self._held: Counter[str] = Counter()  # by queue, when last looked at

    @asynccontextmanager
    async def listen(self, wish: Wish, notifier: Notifier | None = None) -> AsyncIterator[Bell]:
        """A bell for what is wished. With a notifier it is that which brings word from other
        processes, and nobody looks at the file."""
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
        """Why what other processes do is not noticed; None if it is."""
        async with self.listen(Wish()):
            return self._problem

    async def _start(self) -> None:
        """Have the thread running, from a point before now."""
        with self._change:
            self._change.notify()
            if self._is_running:
                return
            self._is_running = True
            self._problem = None
        has_begun = threading.Event()
        threading.Thread(
            target=self._run, args=(has_begun,), name="windrow-sqlite-watch", daemon=True
        ).start()
        await asyncio.to_thread(has_begun.wait, _START_SECONDS)

    def _run(self, has_begun: threading.Event) -> None:
        try:
            with closing(connect(self._location)) as connection:
                connection.execute("PRAGMA query_only = on")
                self._look_on(connection, has_begun)
        except (sqlite3.Error, OSError) as error:
            with self._change:
                self._is_running = False
                self._problem = f"cannot watch {self._location.path} ({error})"
            logger.warning("%s: work of other processes is now found by polling", self._problem)
        finally:
            has_begun.set()

    def _look_on(self, connection: sqlite3.Connection, has_begun: threading.Event) -> None:
        connection.execute("PRAGMA data_version")  # the log is there from the first read on
        with closing(open_log(f"{self._location.path}-wal")) as log:
            commits = Commits(connection, log)
            has_begun.set()
            while self._is_wanted():
                if commits.wait():
                    self._look(connection)

    def _is_wanted(self) -> bool:
        if len(self.belfry):
            return True
        with self._change:
            if not self.belfry and not self._change.wait_for(self._has_bells, LINGER_SECONDS):
                self._is_running = False
            return self._is_running

    def _has_bells(self) -> bool:
        return len(self.belfry) > 0

    def _look(self, connection: sqlite3.Connection) -> None:
        wished = self.belfry.wished_ids()
        given = {"ids": to_json(sorted(wished))}
        live = {row[1] for row in connection.execute(statement("find_live"), given)}
        self.belfry.ring(self._find_work(connection), wished - live)
        self.belfry.ring_readers()

    def _find_work(self, connection: sqlite3.Connection) -> set[str]:
        """Queues that have claimable jobs, or more held ones than before. Those that just stay held
        are left alone: to look whether there is room may write, and that would be noticed again."""
        found: set[str] = set()
        held: Counter[str] = Counter()
        for queue, is_paused, _, _, state, count in connection.execute(statement("list_queues")):
            if state == "held":
                held[queue] = count
            elif state == "ready" and not is_paused:
                found.add(queue)
        grown, self._held = held - self._held, held
        return found | set(grown)


_watches: WeakValueDictionary[str, Watch] = WeakValueDictionary()
_watches_lock = threading.Lock()


def watch_of(location: Location) -> Watch:
    """The one watch of a file in this process, as long as a store is open on it."""
    path = os.path.realpath(location.path)
    with _watches_lock:
        watch = _watches.get(path)
        if watch is None:
            watch = _watches[path] = Watch(location)
        return watch
