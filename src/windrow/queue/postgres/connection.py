"""Connections to Postgres: a pool, transactions that are tried again, errors that are ours.

No session state is kept between transactions, so this works behind a pooler in transaction mode;
there, `?statement_cache_size=0` switches off named prepared statements (at a price: they are the
largest single saving).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from windrow.errors import ConfigError, StoreConflict
from windrow.queue.postgres.failures import wrapped_errors
from windrow.queue.statements import Statement
from windrow.queue.transactions import AsyncpgExecutor, Executor

# Plans are made once, perhaps while the queue is empty, and must be good for a million rows: by
# index, whatever the statistics say. Measured in docs/decisions/0001-storage-shape.md. They are
# given when connecting, which some poolers do not allow: those want `?statement_cache_size=0`
# anyway, and then every statement is planned for what is there.
PLANNER_SETTINGS: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
# For statements that are not ours, or have a plan of their own each time; for one transaction.
USUAL_PLANNING: Final = (
    "SET LOCAL plan_cache_mode = auto; "
    "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on"
)

T = TypeVar("T")
Connection = Any  # asyncpg's connection, or its proxy from the pool
Row = Mapping[str, Any]

TRIES: Final = 5
ACQUIRE_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Options of ours in a database URL, after the question mark; the rest is for the server."""

    pool_size: int = 10
    statement_cache_size: int = 200
    connect_timeout: int = 10


def parse_url(url: str) -> tuple[str, PoolOptions]:
    """The URL for the driver, and what in it was for us."""
    parts = urlsplit(url)
    ours: dict[str, int] = {}
    rest = []
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in PoolOptions.__dataclass_fields__:
            rest.append((name, value))
        elif value.isdecimal():
            ours[name] = int(value)
        else:
            raise ConfigError(f"{name} in the database URL must be a number, not {value!r}")
    return urlunsplit(parts._replace(query=urlencode(rest))), PoolOptions(**ours)


class Database:
    """A pool of connections. One statement commits by itself; several make a transaction."""

    def __init__(self, pool: asyncpg.Pool[Any]) -> None:
        self._pool = pool
        self._lent: set[Connection] = set()

    @classmethod
    async def open(cls, url: str) -> Self:
        dsn, options = parse_url(url)
        with wrapped_errors():
            try:
                pool = await asyncpg.create_pool(
                    dsn,
                    min_size=1,
                    max_size=max(1, options.pool_size),
                    statement_cache_size=options.statement_cache_size,
                    max_cached_statement_lifetime=0,
                    timeout=options.connect_timeout,
                    reset=_leave_as_it_is,
                    server_settings=PLANNER_SETTINGS if options.statement_cache_size else {},
                )
            except (ValueError, asyncpg.ClientConfigurationError) as error:
                raise ConfigError(f"the database URL is not valid: {error}") from error
        return cls(pool)

    async def close(self) -> None:
        """Close every connection; what was left open on a lent one is rolled back."""
        with wrapped_errors():
            for connection in list(self._lent):
                await self.take_back(connection)
            try:
                await asyncio.wait_for(self._pool.close(), CLOSE_SECONDS)
            except TimeoutError:
                self._pool.terminate()

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> list[Row]:
        """Run one statement, which commits by itself; tried again if another got in its way."""

        async def once() -> list[Row]:
            async with self.connection() as connection:
                found: list[Row] = await connection.fetch(
                    statement.numbered, *statement.bind(values)
                )
                return found

        return await retried(once)

    async def fetch_planned(self, statement: Statement, values: Mapping[str, Any]) -> list[Row]:
        """Like `fetch`, but planned for these very values: for statements with optional filters,
        of which one plan for all values would use no index."""
        async with self.connection() as connection, connection.transaction():
            await connection.execute(USUAL_PLANNING)
            planned = await connection.prepare(statement.numbered)
            found: list[Row] = await planned.fetch(*statement.bind(values))
            return found

    async def in_transaction(self, work: Callable[[Executor], Awaitable[T]]) -> T:
        """Do the work in one transaction, from the beginning if another got in its way."""

        async def once() -> T:
            async with self.connection() as connection, connection.transaction():
                return await work(AsyncpgExecutor(connection))

        return await retried(once)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        with wrapped_errors():
            async with self._pool.acquire(timeout=ACQUIRE_SECONDS) as connection:
                yield connection

    async def lend(self) -> Connection:
        """A connection to be given back with `take_back`."""
        with wrapped_errors():
            connection = await self._pool.acquire(timeout=ACQUIRE_SECONDS)
        self._lent.add(connection)
        return connection

    def is_lent(self, connection: Connection) -> bool:
        return connection in self._lent

    async def take_back(self, connection: Connection) -> None:
        """End a loan. A transaction still open on it is rolled back."""
        if connection in self._lent:
            self._lent.remove(connection)
            with wrapped_errors():
                await self._pool.release(connection)


async def retried(once: Callable[[], Awaitable[T]]) -> T:
    """The transaction was rolled back as a whole, so it may simply be done again."""
    for tried in range(TRIES - 1):
        try:
            return await once()
        except StoreConflict:
            await asyncio.sleep(random.uniform(0, 0.01 * 2**tried))
    return await once()


async def _leave_as_it_is(connection: Connection) -> None:
    """Between uses asyncpg resets what a session could have set, which costs a round trip; we set
    nothing, and an open transaction is rolled back by it anyway."""
