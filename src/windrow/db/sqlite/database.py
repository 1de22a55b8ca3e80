"""The statements of other packages on this store's writer and readers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from windrow.clock import Clock
from windrow.db.database import P, Transaction, Verb
from windrow.db.sqlite.connection import time_now
from windrow.db.sqlite.failures import translate
from windrow.db.sqlite.readers import Readers
from windrow.db.sqlite.writer import Writer
from windrow.db.transactions import run_sync
from windrow.db.typed import TypedStatement, in_order, typed

T = TypeVar("T")


class SqliteDatabase:
    """Statements that only read go to the readers, all others to the writer."""

    def __init__(self, writer: Writer, readers: Readers, clock: Clock, path: str) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock
        self._path = path

    async def rows(self, statement: str, /, **values: Any) -> list[dict[str, Any]]:
        found = typed(statement, "sqlite")
        given = found.encode(values)
        return found.decode(await self._run(found, lambda run: run(given)))

    async def rows_each(
        self, statement: str, each: Sequence[Sequence[Any]], /, **values: Any
    ) -> list[dict[str, Any]]:
        found = typed(statement, "sqlite")
        given, tuples = found.encode(values), found.encode_each(each)

        def run_all(run: _Run) -> list[Any]:
            return [row for one in tuples for row in run({**given, **one})]

        return found.decode(await self._run(found, run_all))

    async def run(self, statement: str, /, **values: Any) -> None:
        await self.rows(statement, **values)

    async def transact(self, verb: Verb[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        def write(connection: sqlite3.Connection) -> T:
            tx = _WriterTransaction(connection, time_now(self._clock))
            return run_sync(verb(tx, *args, **kwargs))

        try:
            return await self._writer.run(write)
        except sqlite3.Error as error:
            raise translate(error, self._path) from error

    def joined(self, tx: Any) -> Transaction:
        return _JobTransaction(tx, self._clock)

    async def _run(self, found: TypedStatement, do: Callable[[_Run], list[Any]]) -> list[Any]:
        if found.is_skipped:
            return []

        def work(connection: sqlite3.Connection) -> list[Any]:
            now = time_now(self._clock)
            return do(lambda values: _execute(connection, found, {"now": now, **values}))

        try:
            if found.reads:
                return await self._readers.run(work, is_short=found.is_short)
            return await self._writer.run(work)
        except sqlite3.Error as error:
            raise translate(error, self._path) from error


_Run = Callable[[dict[str, Any]], list[Any]]


class _WriterTransaction:
    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self._connection = connection
        self._now = now

    async def rows(self, statement: str, /, **values: Any) -> list[dict[str, Any]]:
        found = typed(statement, "sqlite")
        if found.is_skipped:
            return []
        given = {"now": self._now, **found.encode(values)}
        return found.decode(_execute(self._connection, found, given))

    async def run(self, statement: str, /, **values: Any) -> None:
        await self.rows(statement, **values)


class _JobTransaction:
    """A job's transaction: its statements are run when the job is completed."""

    def __init__(self, tx: Any, clock: Clock) -> None:
        self._tx = tx
        self._clock = clock

    async def rows(self, statement: str, /, **values: Any) -> list[dict[str, Any]]:
        found = typed(statement, "sqlite")
        # Raises StoreError, which says how to read instead.
        rows = await self._tx.fetch(found.statement.numbered, *self._bind(found, values))
        return found.decode(row.values() for row in rows)

    async def run(self, statement: str, /, **values: Any) -> None:
        found = typed(statement, "sqlite")
        if not found.is_skipped:
            await self._tx.execute(found.statement.numbered, *self._bind(found, values))

    def _bind(self, found: TypedStatement, values: dict[str, Any]) -> tuple[Any, ...]:
        given = {"now": time_now(self._clock), **found.encode(values)}
        return in_order(found.statement.parameters)(given)


def _execute(
    connection: sqlite3.Connection, found: TypedStatement, values: dict[str, Any]
) -> list[Any]:
    order = in_order(found.statement.parameters)
    return connection.execute(found.statement.numbered, order(values)).fetchall()
