"""Transactions as an application has them open: one small class per driver, all used alike.

`connection` is what is handed to `insert_jobs(tx=…)`.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Protocol

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine


class Caller(Protocol):
    connection: Any

    async def begin(self) -> None: ...
    async def execute(self, sql: str) -> None: ...
    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...
    async def close(self) -> None: ...


class Sqlite3:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @classmethod
    async def open(cls, url: str) -> Sqlite3:
        return cls(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None))

    async def begin(self) -> None:
        self.connection.execute("begin")

    async def execute(self, sql: str) -> None:
        self.connection.execute(sql)

    async def commit(self) -> None:
        self.connection.execute("commit")

    async def rollback(self) -> None:
        self.connection.execute("rollback")

    async def close(self) -> None:
        self.connection.close()


class Asyncpg:
    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._transaction = connection.transaction()

    @classmethod
    async def open(cls, url: str) -> Asyncpg:
        return cls(await asyncpg.connect(url))

    async def begin(self) -> None:
        await self._transaction.start()

    async def execute(self, sql: str) -> None:
        await self.connection.execute(sql)

    async def commit(self) -> None:
        await self._transaction.commit()

    async def rollback(self) -> None:
        await self._transaction.rollback()

    async def close(self) -> None:
        await self.connection.close()


class PooledAsyncpg(Asyncpg):
    """As an application must connect through a pooler: without prepared statements."""

    @classmethod
    async def open(cls, url: str) -> Asyncpg:
        return cls(await asyncpg.connect(url, statement_cache_size=0))


class Psycopg:
    """Begins a transaction by itself at the first statement."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    @classmethod
    async def open(cls, url: str) -> Psycopg:
        return cls(psycopg.connect(url))

    async def begin(self) -> None:
        self.connection.execute("select 1")

    async def execute(self, sql: str) -> None:
        self.connection.execute(sql.encode())

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def close(self) -> None:
        self.connection.close()


class PooledPsycopg(Psycopg):
    @classmethod
    async def open(cls, url: str) -> Psycopg:
        return cls(psycopg.connect(url, prepare_threshold=None))


class PsycopgAsync:
    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.connection = connection

    @classmethod
    async def open(cls, url: str) -> PsycopgAsync:
        return cls(await psycopg.AsyncConnection.connect(url))

    async def begin(self) -> None:
        await self.connection.execute("select 1")

    async def execute(self, sql: str) -> None:
        await self.connection.execute(sql.encode())

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def close(self) -> None:
        await self.connection.close()


class Sqlalchemy:
    """A blocking SQLAlchemy connection; it must be used through its own execute."""

    def __init__(self, engine: sqlalchemy.Engine) -> None:
        self._engine = engine
        self.connection = engine.connect()

    @classmethod
    async def open(cls, url: str) -> Sqlalchemy:
        return cls(sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1)))

    async def begin(self) -> None:
        self.connection.begin()

    async def execute(self, sql: str) -> None:
        self.connection.execute(sqlalchemy.text(sql))

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def close(self) -> None:
        self.connection.close()
        self._engine.dispose()


class SqlalchemyAsync:
    def __init__(self, engine: Any, connection: Any) -> None:
        self._engine = engine
        self.connection = connection

    @classmethod
    async def open(cls, url: str) -> SqlalchemyAsync:
        engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:", 1))
        return cls(engine, await engine.connect())

    async def begin(self) -> None:
        await self.connection.begin()

    async def execute(self, sql: str) -> None:
        await self.connection.execute(sqlalchemy.text(sql))

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def close(self) -> None:
        await self.connection.close()
        await self._engine.dispose()


CALLERS: dict[str, dict[str, Any]] = {
    "sqlite": {"sqlite3": Sqlite3, "sqlalchemy": Sqlalchemy},
    "postgres": {
        "asyncpg": Asyncpg,
        "psycopg": Psycopg,
        "psycopg-async": PsycopgAsync,
        "sqlalchemy": Sqlalchemy,
        "sqlalchemy-async": SqlalchemyAsync,
    },
    "pgbouncer": {"asyncpg": PooledAsyncpg, "psycopg": PooledPsycopg},
    "prepared": {"asyncpg": PooledAsyncpg, "psycopg": PooledPsycopg},
    "bullmq": {},  # its jobs are in no transaction of anybody else
    "beside": {},
}
