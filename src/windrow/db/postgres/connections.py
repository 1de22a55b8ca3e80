"""Connections to Postgres: a pool, transactions that are tried again, errors that are ours.

No session state is kept between transactions, so this works behind a pooler in transaction mode,
if the URL says so: `?pooled=true` switches off named prepared statements (at a price: they are the
largest single saving) and what is set when connecting. `?prepared=true` keeps the names, behind a
pooler that knows each client's statements. See docs/guides/poolers.md.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from windrow.db.postgres.failures import wrapped_errors
from windrow.db.postgres.pool import ACQUIRE_SECONDS, Pool
from windrow.db.postgres.types import LearnedConnection
from windrow.db.statements import Statement
from windrow.db.transactions import AsyncpgExecutor, Executor
from windrow.errors import ConfigError, StoreConflict, StoreUnavailable
from windrow.ids import new_id

# Plans are made once, perhaps while the queue is empty, and must be good for a million rows: by
# index, whatever the statistics say. Measured in docs/decisions/0001-storage-shape.md. They are
# given when connecting, which poolers do not allow; behind one there are no plans to keep either:
# every statement is planned for its values and for what is there.
PLANNER_SETTINGS: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
# For statements that are not ours, for one transaction; for ours that have a plan of their own each
# time, under whatever name.
USUAL_PLANNING: Final = (
    "SET LOCAL plan_cache_mode = auto; "
    "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on"
)
PLANNED_ANEW: Final = USUAL_PLANNING.replace("auto", "force_custom_plan")

T = TypeVar("T")
Connection = Any  # asyncpg's connection, or its proxy from the pool
Row = Mapping[str, Any]

# Whether the planner settings came through: some poolers drop them without a word. In one message
# and without a prepared statement, so that it works behind anything.
_SETTINGS_DROPPED: Final = "WR001"
_SETTINGS_ARRIVED: Final = f"""
    DO $$ BEGIN
        IF current_setting('plan_cache_mode') <> '{PLANNER_SETTINGS["plan_cache_mode"]}' THEN
            RAISE 'the settings given when connecting did not arrive'
                USING ERRCODE = '{_SETTINGS_DROPPED}';
        END IF;
    END $$
"""
# Whether a statement has this very name in the session that it runs in.
_NAMES: Final = "SELECT name FROM pg_prepared_statements WHERE name = $1"
# A prepared statement that is there already; one that is not there.
_POOLER_CODES: Final = {"42P05", "26000", _SETTINGS_DROPPED}
# The element types of arrays that statements take or return, with some to spare.
_ARRAYS_OF: Final = (
    *("bool", "int2", "int4", "int8", "float8", "numeric", "text", "bytea"),
    *("uuid", "json", "jsonb", "date", "timestamptz", "interval"),
)

# The cause is not told: it may repeat what stands where a port should, a password.
NO_URL: Final = (
    "the database URL is not valid: its port must be a number, and / ? # @ in a password be "
    "written as %2F %3F %23 %40"
)
# How often a transaction is done before its conflict is told. From the patient try on it waits for
# what it needs out of the lock order; two that wait so may deadlock, and the one that the server
# ends has its turn again.
TRIES: Final = 10
PATIENT_TRY: Final = 5
MOST_PAUSE_SECONDS: Final = 0.1
# Connections that are never lent to transactions of jobs, which keep them while a handler runs: if
# all of them were, leases could not be renewed nor ends be written that the others wait for.
KEPT_BACK: Final = 2
CLOSE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Options of ours in a database URL, after the question mark; the rest is for the server."""

    pool_size: int = 10
    statement_cache_size: int = 200
    connect_timeout: int = 10
    pooled: bool = False
    prepared: bool = False  # behind a pooler that follows each client's prepared statements

    @property
    def is_behind_pooler(self) -> bool:
        """Whether two transactions of one connection may run in two sessions of the server."""
        return self.pooled or self.prepared or self.statement_cache_size == 0

    @property
    def names_statements(self) -> bool:
        return self.prepared or not self.is_behind_pooler

    def for_driver(self) -> dict[str, Any]:
        return {
            "min_size": 1,
            "max_size": max(1, self.pool_size),
            "timeout": self.connect_timeout,
            "connection_class": LearnedConnection,
            "max_cached_statement_lifetime": 0,
            # Without a cache asyncpg names no statement, and sends it whole each time.
            "statement_cache_size": self.statement_cache_size if self.names_statements else 0,
            "server_settings": {} if self.is_behind_pooler else PLANNER_SETTINGS,
            "init": self._greeting(),
        }

    def _greeting(self) -> Callable[[Connection], Awaitable[None]] | None:
        """What is done first on a new connection."""
        if self.prepared:
            return _try_names
        return _learn_types if self.is_behind_pooler else None


def parse_url(url: str) -> tuple[str, PoolOptions]:
    """The URL for the driver, and what in it was for us."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ConfigError(NO_URL) from None
    ours: dict[str, Any] = {}
    rest = []
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in PoolOptions.__dataclass_fields__:
            rest.append((name, value))
        else:
            ours[name] = _parse_option(name, value)
    return urlunsplit(parts._replace(query=urlencode(rest))), PoolOptions(**ours)


def _parse_option(name: str, value: str) -> int | bool:
    if name in ("pooled", "prepared"):
        if value not in ("true", "false"):
            raise ConfigError(f"{name} in the database URL must be true or false, not {value!r}")
        return value == "true"
    if not value.isdecimal():
        raise ConfigError(f"{name} in the database URL must be a number, not {value!r}")
    return int(value)


class Connections:
    """A pool of connections. One statement commits by itself; several make a transaction."""

    def __init__(
        self, pool: Pool, *, loans: asyncio.Semaphore, is_behind_pooler: bool = False
    ) -> None:
        self._pool = pool
        self._is_behind_pooler = is_behind_pooler
        self._lent: set[Connection] = set()
        self._loans = loans

    @classmethod
    async def open(cls, url: str) -> Self:
        dsn, options = parse_url(url)
        with wrapped_errors(), pooler_noticed(options.is_behind_pooler):
            try:
                pool = await asyncpg.create_pool(dsn, reset=_leave_as_it_is, **options.for_driver())
            except asyncpg.ClientConfigurationError as error:
                raise ConfigError(f"the database URL is not valid: {error}") from error
            except ValueError:
                raise ConfigError(NO_URL) from None
            loans = asyncio.Semaphore(max(1, options.pool_size - KEPT_BACK))
            database = cls(Pool(pool), loans=loans, is_behind_pooler=options.is_behind_pooler)
            if not options.is_behind_pooler:
                await database.check_settings()
        return database

    async def check_settings(self) -> None:
        """Close, and raise ConfigError, if what was set when connecting is not in force."""
        try:
            async with self.connection() as connection:
                await connection.execute(_SETTINGS_ARRIVED)
        except BaseException:
            await self.close()
            raise

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
            await connection.execute(PLANNED_ANEW)
            found: list[Row] = await connection.fetch(statement.numbered, *statement.bind(values))
            return found

    async def in_transaction(self, work: Callable[[Executor], Awaitable[T]]) -> T:
        """Do the work in one transaction, from the beginning if another got in its way."""

        async def once() -> T:
            async with self.connection() as connection, connection.transaction():
                return await work(AsyncpgExecutor(connection))

        return await retried(once)

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """A connection, while the block lasts."""
        return _Use(self)

    async def lend(self) -> Connection:
        """A connection to be given back with `take_back`."""
        await self._wait_for_loan()
        try:
            with wrapped_errors(), pooler_noticed(self._is_behind_pooler):
                connection = await self._pool.acquire()
        except BaseException:
            self._loans.release()
            raise
        self._lent.add(connection)
        return connection

    async def _wait_for_loan(self) -> None:
        try:
            async with asyncio.timeout(ACQUIRE_SECONDS):
                await self._loans.acquire()
        except TimeoutError as error:
            raise StoreUnavailable(
                f"for {ACQUIRE_SECONDS:.0f} s transactions of other jobs have had every connection "
                "they may have: raise pool_size in the database URL, or lower the concurrency"
            ) from error

    def is_lent(self, connection: Connection) -> bool:
        return connection in self._lent

    async def take_back(self, connection: Connection) -> None:
        """End a loan. A transaction still open on it is rolled back."""
        if connection in self._lent:
            self._lent.remove(connection)
            try:
                with wrapped_errors():
                    await self._pool.release(connection)
            finally:
                self._loans.release()


class _PoolerNoticed:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, asyncpg.PostgresError) and _is_poolers_doing(error):
            raise ConfigError(
                "there seems to be a pooler between Windrow and the database: add ?pooled=true to "
                f"the database URL ({error.args[0]}, SQLSTATE {error.sqlstate})"
            ) from error


_pooler_noticed: Final = _PoolerNoticed()


def pooler_noticed(is_declared: bool) -> AbstractContextManager[None]:
    """Tell what to do when there is a pooler between us and the server that nobody told us of."""
    return nullcontext() if is_declared else _pooler_noticed


class _Use:
    """A connection of the pool, while the block lasts. No generator: it is made for every
    statement."""

    def __init__(self, database: Connections) -> None:
        self._pool = database._pool
        self._is_behind_pooler = database._is_behind_pooler

    async def __aenter__(self) -> Connection:
        self._connection = self._pool.take()
        if self._connection is None:
            with wrapped_errors(), pooler_noticed(self._is_behind_pooler):
                self._connection = await self._pool.acquire()
        return self._connection

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None and self._pool.keep(self._connection):
            return
        with wrapped_errors(), pooler_noticed(self._is_behind_pooler):
            await self._pool.release(self._connection)
            if error is not None:
                raise error


def _is_poolers_doing(error: asyncpg.PostgresError) -> bool:
    if error.sqlstate == "08P01":
        return "unsupported startup parameter" in str(error)
    return error.sqlstate in _POOLER_CODES


async def retried(once: Callable[[], Awaitable[T]]) -> T:
    """The transaction was rolled back as a whole, so it may simply be done again."""
    for tried in range(TRIES - 1):
        try:
            return await once()
        except StoreConflict:
            most = min(0.01 * 2**tried, MOST_PAUSE_SECONDS)
            await asyncio.sleep(random.uniform(0, most))  # noqa: S311 - spreads waits
    return await once()


async def _try_names(connection: Connection) -> None:
    """Raise ConfigError unless the pooler gives statements names of its own, by which it tells one
    client's from another's. Before anything else is named: where it does not, a name may stand for
    a statement of somebody else, and that would be run."""
    name = f"windrow_{new_id()}"
    async with connection.transaction():
        asking = await connection.prepare(_NAMES, name=name)
        found = await asking.fetch(name)
    if found:
        raise ConfigError(
            "?prepared=true is in the database URL, but what it leads to does not keep prepared "
            "statements apart (pgbouncer does, from 1.21 on and with max_prepared_statements above "
            "0): use ?pooled=true"
        )
    await _learn_types(connection)


async def _learn_types(connection: Connection) -> None:
    """asyncpg asks about an array type when it first meets it, and sets `jit` for the session while
    it does: here that is undone, so that whoever has the session next finds it as it was."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.fetch(f"SELECT {', '.join(f'NULL::{name}[]' for name in _ARRAYS_OF)}")
    finally:
        await transaction.rollback()


async def _leave_as_it_is(connection: Connection) -> None:
    """Between uses asyncpg resets what a session could have set, which costs a round trip; we set
    nothing, and an open transaction is rolled back by it anyway."""
