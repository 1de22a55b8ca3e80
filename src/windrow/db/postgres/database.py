"""The statements of other packages on this store's connections."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from windrow.clock import Clock
from windrow.db.database import P, Transaction, Verb
from windrow.db.postgres.connections import Connections
from windrow.db.transactions import Executor
from windrow.db.typed import TypedStatement, typed

T = TypeVar("T")


class PostgresDatabase:
    """Statements and transactions through the pool of a store, a tenant's one too."""

    def __init__(self, database: Connections, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def rows(self, statement: str, /, **values: Any) -> list[dict[str, Any]]:
        return await self._fetch(typed(statement, "postgres"), values)

    async def rows_each(
        self, statement: str, each: Sequence[Sequence[Any]], /, **values: Any
    ) -> list[dict[str, Any]]:
        if not each:
            return []
        found = typed(statement, "postgres")
        [arrays] = found.encode_each(each)
        return await self._fetch(found, values, arrays)

    async def run(self, statement: str, /, **values: Any) -> None:
        await self.rows(statement, **values)

    async def transact(self, verb: Verb[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def once(executor: Executor) -> T:
            return await verb(_ExecutorTransaction(executor, self._clock.now()), *args, **kwargs)

        return await self._database.in_transaction(once)

    def joined(self, tx: Any) -> Transaction:
        return _JobTransaction(tx, self._clock)

    async def _fetch(
        self, found: TypedStatement, values: dict[str, Any], arrays: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        given = {"now": self._clock.now(), **found.encode(values), **(arrays or {})}
        rows = await self._database.fetch(found.statement, given)
        return found.decode(row.values() for row in rows)


class _ExecutorTransaction:
    def __init__(self, executor: Executor, now: datetime | None) -> None:
        self._executor = executor
        self._now = now

    async def rows(self, statement: str, /, **values: Any) -> list[dict[str, Any]]:
        found = typed(statement, "postgres")
        given = {"now": self._now, **found.encode(values)}
        rows = await self._executor.fetch(found.statement, given)
        return found.decode(row.values() for row in rows)

    async def run(self, statement: str, /, **values: Any) -> None:
        await self.rows(statement, **values)


class _JobTransaction:
    """A job's transaction; it commits when the job is completed."""

    def __init__(self, tx: Any, clock: Clock) -> None:
        self._tx = tx
        self._clock = clock

    async def rows(self, statement: str, /, **values: Any) -> list[dict[str, Any]]:
        found = typed(statement, "postgres")
        rows = await self._tx.fetch(found.statement.numbered, *self._bind(found, values))
        return found.decode(row.values() for row in rows)

    async def run(self, statement: str, /, **values: Any) -> None:
        found = typed(statement, "postgres")
        await self._tx.execute(found.statement.numbered, *self._bind(found, values))

    def _bind(self, found: TypedStatement, values: dict[str, Any]) -> list[Any]:
        return found.statement.bind({"now": self._clock.now(), **found.encode(values)})
