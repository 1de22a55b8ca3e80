"""Many calls in one transaction: many callers share one fsync.

Each call runs in a savepoint of its own, so an error undoes that call alone; neighbours that can be
done together are tried so first.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from windrow.queue.sqlite.connection import Verb, begin

logger = logging.getLogger(__name__)

After = Callable[[], None]
# A verb that does what several callers ask for in one go: an answer to each, and what comes after.
Joint = Callable[[sqlite3.Connection, Sequence[Any]], tuple[Sequence[Any], After | None]]

MOST_CALLS: Final = 500  # in one transaction
# Callers who were answered together mostly come back together, a little apart. A commit waits so
# long for the next of them: it is dearer than that, and one that goes without them makes two.
GATHER_SECONDS: Final = 0.0002
MOST_GATHER_SECONDS: Final = 0.001  # for all of them, without another having come


class Call(msgspec.Struct, eq=False):
    """What somebody asks for, and what became of it: the answer is good once it is committed."""

    verb: Verb[Any] | None = None
    joint: Joint | None = None
    item: Any = None
    after: After | None = None
    future: asyncio.Future[Any] | None = None
    loop: asyncio.AbstractEventLoop | None = None
    waiter: threading.Lock | None = None  # held until whoever waits in a thread is to go on
    is_answered: bool = False
    result: Any = None
    error: Exception | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        if self.joint is not None:
            [self.result], self.after = self.joint(connection, [self.item])
        elif self.verb is not None:
            self.result = self.verb(connection)
        else:
            raise RuntimeError("a call needs a verb, of its own or with others")

    def new_waiter(self) -> threading.Lock:
        waiter = self.waiter = threading.Lock()
        waiter.acquire()
        return waiter

    def answer(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


def commit(connection: sqlite3.Connection, calls: Sequence[Call]) -> None:
    """Run calls in a transaction; each has its result or its error then."""
    try:
        begin(connection)
        groups = list(_neighbours(calls))
        for neighbours in groups:
            if len(calls) == 1:
                calls[0].run(connection)
            elif len(neighbours) == 1 or not _run_together(connection, neighbours, groups):
                for call in neighbours:
                    _run_in_savepoint(connection, call)
        connection.execute("COMMIT")
    except Exception as error:
        for call in calls:
            call.error = call.error or error
        roll_back(connection)


def follow_up(calls: Iterable[Call]) -> None:
    """Do what comes after a commit."""
    for call in calls:
        if call.after is not None and call.error is None:
            call.after()


def roll_back(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        # The callers have their error already; the next round finds the transaction still open,
        # fails to begin one, and comes here again.
        logger.warning("rolling back failed: %s", error)


def _neighbours(calls: Iterable[Call]) -> Iterator[list[Call]]:
    """The calls in their order, those in a row that can be done together as one list."""
    for joint, alike in groupby(calls, lambda call: call.joint):
        if joint is None:
            yield from ([call] for call in alike)
        else:
            yield list(alike)


def _run_together(
    connection: sqlite3.Connection, calls: list[Call], groups: list[list[Call]]
) -> bool:
    """Whether that went well; if not, nothing was done. A savepoint is not needed, and takes SQLite
    a copy of each page, if there is nothing else in the transaction that could be undone by it."""
    joint = calls[0].joint
    if joint is None:
        return False
    is_all = len(groups) == 1
    if not is_all:
        connection.execute("SAVEPOINT together")
    try:
        results, calls[0].after = joint(connection, [call.item for call in calls])
    except Exception:
        if not connection.in_transaction:
            raise
        if is_all:
            connection.execute("ROLLBACK")
            begin(connection)
        else:
            connection.execute("ROLLBACK TO together")
            connection.execute("RELEASE together")
        return False
    if not is_all:
        connection.execute("RELEASE together")
    for call, result in zip(calls, results, strict=True):
        call.result = result
    return True


def _run_in_savepoint(connection: sqlite3.Connection, call: Call) -> None:
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
