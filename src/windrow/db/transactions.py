"""The caller's own connection: enqueueing inside somebody else's transaction.

`executor_for(tx)` gives any supported connection the one method that inserting needs. Which it is
is told by its class, without importing libraries that are not there. Nothing here commits or rolls
back; a connection that would commit each statement at once is refused.

Blocking connections are used in the caller's thread: their `fetch` never suspends, so `run_sync`
can drive the whole coroutine without an event loop.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from windrow.db.statements import Statement
from windrow.errors import ConfigError

T = TypeVar("T")
Row = Mapping[str, Any]

SUPPORTED: Final = (
    "an asyncpg Connection, a psycopg Connection or AsyncConnection (on Postgres), a sqlite3 "
    "Connection (on SQLite), or a SQLAlchemy Connection, Session, AsyncConnection or AsyncSession"
)
# SQLAlchemy would read the first colon of a cast as the beginning of a parameter.
_CAST: Final = re.compile("::")


class Executor(Protocol):
    """Runs a statement where the caller wants it to run."""

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row]: ...


def executor_for(tx: Any, dialect: str = "postgresql") -> Executor:
    """The executor for a caller's connection to a database of this dialect. Raises ConfigError for
    anything else, and for a connection that is not in a transaction."""
    family, is_async = recognise(tx)
    match family:
        case "asyncpg" | "psycopg" | "sqlite3" if (family == "sqlite3") != (dialect == "sqlite"):
            raise ConfigError(f"tx is a connection of {family}, but the queue is on {dialect}")
        case "asyncpg":
            _require(tx.is_in_transaction(), "async with connection.transaction(): …")
            return AsyncpgExecutor(tx)
        case "psycopg":
            is_idle = tx.info.transaction_status == 0
            _require(not (tx.autocommit and is_idle), "with connection.transaction(): …")
            return AsyncPsycopgExecutor(tx) if is_async else PsycopgExecutor(tx)
        case "sqlalchemy":
            _require_dialect(tx, dialect)
            return AsyncSqlalchemyExecutor(tx) if is_async else SqlalchemyExecutor(tx)
        case "sqlite3":
            return SqliteExecutor(tx)
        case _:
            kind = type(tx)
            raise ConfigError(
                f"tx must be {SUPPORTED}; not a {kind.__module__}.{kind.__qualname__}"
            )


def recognise(tx: Any) -> tuple[str | None, bool]:
    """Which library a connection is of, and whether it is an async one."""
    for base in type(tx).__mro__:
        library = base.__module__.partition(".")[0]
        match library, base.__name__:
            case "asyncpg", "Connection" | "PoolConnectionProxy":
                return "asyncpg", True
            case "psycopg", "Connection" | "AsyncConnection":
                return "psycopg", base.__name__ == "AsyncConnection"
            case "sqlalchemy", "Connection" | "Session" | "scoped_session":
                return "sqlalchemy", False
            case "sqlalchemy", "AsyncConnection" | "AsyncSession" | "async_scoped_session":
                return "sqlalchemy", True
            case "sqlite3", "Connection":
                return "sqlite3", False
    return None, False


def is_blocking(tx: Any) -> bool:
    """Whether this is a connection whose calls block, so that it belongs to the caller's thread."""
    family, is_async = recognise(tx)
    return family is not None and not is_async


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never has to wait, in this thread and without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine on a blocking connection had to wait for something")


class AsyncpgExecutor:
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row]:
        rows: Sequence[Row] = await self.connection.fetch(
            statement.numbered, *statement.bind(values)
        )
        return rows


class PsycopgExecutor:
    """psycopg's own placeholders are `%s`; its raw cursor takes the server's `$1`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row]:
        from psycopg import RawCursor
        from psycopg.rows import dict_row

        with RawCursor(self._connection, row_factory=dict_row) as cursor:
            cursor.execute(statement.numbered.encode(), statement.bind(values))
            return cursor.fetchall() if cursor.description else []


class AsyncPsycopgExecutor:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row]:
        from psycopg import AsyncRawCursor
        from psycopg.rows import dict_row

        async with AsyncRawCursor(self._connection, row_factory=dict_row) as cursor:
            await cursor.execute(statement.numbered.encode(), statement.bind(values))
            return await cursor.fetchall() if cursor.description else []


class SqlalchemyExecutor:
    """Through SQLAlchemy's own `execute`: the driver's connection beneath it knows nothing of the
    transaction that SQLAlchemy has begun, or will begin now."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row]:
        result = self._connection.execute(_clause(statement), _named(statement, values))
        return _mappings(result)


class AsyncSqlalchemyExecutor:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row]:
        result = await self._connection.execute(_clause(statement), _named(statement, values))
        return _mappings(result)


class SqliteExecutor:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row]:
        cursor = self.connection.cursor()
        cursor.row_factory = None  # the caller's own would give rows of some other kind
        cursor.execute(statement.text, _named(statement, values))
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _clause(statement: Statement) -> Any:
    from sqlalchemy import text

    return text(_CAST.sub(r"\\:\\:", statement.text))


def _named(statement: Statement, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in statement.parameters}


def _mappings(result: Any) -> Sequence[Row]:
    return result.mappings().all() if result.returns_rows else []


def _require(is_in_transaction: bool, how: str) -> None:
    if not is_in_transaction:
        raise ConfigError(
            "the connection given as tx is not in a transaction, so the job would be committed at "
            f"once: begin one first ({how}), or leave tx out"
        )


def _require_dialect(tx: Any, wanted: str) -> None:
    bind = tx.get_bind() if hasattr(tx, "get_bind") else tx
    name = bind.dialect.name
    if name != wanted:
        raise ConfigError(f"the SQLAlchemy connection given as tx is on {name}, not {wanted}")
