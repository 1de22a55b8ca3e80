"""Enqueueing in a caller's own transaction: what conformance does not cover.

That every kind of connection commits and rolls back is tested there. Here: connections that would
commit at once are refused, blocking ones are used in the caller's thread, and others are named.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tests.builders import exists, row
from tests.conftest import MakeDatabase
from windrow import Queue
from windrow.clock import Clock
from windrow.db.transactions import is_blocking, run_sync
from windrow.errors import ConfigError, DuplicateJob, GroupNotFound
from windrow.ids import new_id
from windrow.queue.postgres.store import PostgresStore


@pytest.fixture
def url(make_database: MakeDatabase, postgres_template: str) -> str:
    return make_database(postgres_template)


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(url, clock=Clock())
    yield opened
    await opened.close()


def engine_url(url: str, driver: str = "psycopg") -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


async def test_asyncpg_connection_outside_a_transaction_is_refused(
    url: str, store: PostgresStore
) -> None:
    new = row()
    connection = await asyncpg.connect(url)
    with pytest.raises(ConfigError, match="not in a transaction"):
        await store.insert_jobs([new], tx=connection)
    await connection.close()

    assert not await exists(store, new.id)


async def test_connection_of_an_asyncpg_pool_is_taken(url: str, store: PostgresStore) -> None:
    new = row()
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as lent:
        async with lent.transaction():
            await store.insert_jobs([new], tx=lent)
            assert not await exists(store, new.id)

        assert await exists(store, new.id)


async def test_psycopg_autocommit_outside_a_transaction_is_refused(
    url: str, store: PostgresStore
) -> None:
    new = row()
    with psycopg.connect(url, autocommit=True) as connection:
        with pytest.raises(ConfigError, match="not in a transaction"):
            await store.insert_jobs([new], tx=connection)
        with connection.transaction():
            await store.insert_jobs([new], tx=connection)

    assert await exists(store, new.id)


async def test_async_psycopg_autocommit_outside_a_transaction_is_refused(
    url: str, store: PostgresStore
) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        with pytest.raises(ConfigError, match="not in a transaction"):
            await store.insert_jobs([row()], tx=connection)


@pytest.mark.parametrize("make", [Session, lambda engine: scoped_session(sessionmaker(engine))])
async def test_sqlalchemy_session_decides(
    url: str, store: PostgresStore, make: Callable[..., Any]
) -> None:
    kept, dropped = row(), row(unique="key")
    engine = sqlalchemy.create_engine(engine_url(url))
    session = make(engine)
    await store.insert_jobs([dropped], tx=session)
    session.rollback()
    await store.insert_jobs([kept], tx=session)
    session.commit()
    session.close()
    engine.dispose()

    assert (await exists(store, kept.id), await exists(store, dropped.id)) == (True, False)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_async_sqlalchemy_session_decides(
    url: str, store: PostgresStore, driver: str
) -> None:
    kept, dropped = row(), row(unique="key")
    engine = create_async_engine(engine_url(url, driver))
    async with AsyncSession(engine) as session:
        await store.insert_jobs([dropped], tx=session)
        await session.rollback()
        await store.insert_jobs([kept], tx=session)
        await session.commit()
    await engine.dispose()

    assert (await exists(store, kept.id), await exists(store, dropped.id)) == (True, False)


async def test_sqlalchemy_on_another_database_is_refused(store: PostgresStore) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(ConfigError, match="sqlite"):
        await store.insert_jobs([row()], tx=connection)


async def test_anything_else_is_refused_by_name(store: PostgresStore) -> None:
    with pytest.raises(ConfigError, match=r"asyncpg.*psycopg.*SQLAlchemy.*builtins\.object"):
        await store.insert_jobs([row()], tx=object())


@pytest.mark.parametrize("mode", ["return", "replace", "follow"])
async def test_keys_and_groups_work_with_every_driver(
    url: str, store: PostgresStore, mode: Any
) -> None:
    """Conflicts take further statements, whose parameters each driver must bind alike."""
    first = row(unique="key")
    await store.insert_jobs([first])
    outcomes = []
    with psycopg.connect(url) as connection:
        again = await store.insert_jobs([row(unique="key", on_conflict=mode)], tx=connection)
        outcomes += again
    engine = create_async_engine(engine_url(url, "asyncpg"))
    async with engine.begin() as alchemist:
        outcomes += await store.insert_jobs([row(unique="key", on_conflict=mode)], tx=alchemist)
        with pytest.raises(GroupNotFound):
            await store.insert_jobs([row(group=new_id())], tx=alchemist)
    await engine.dispose()

    expected = "existing" if mode == "return" else "replaced"
    assert [(one.id, one.outcome) for one in outcomes] == [(first.id, expected)] * 2


def test_blocking_queue_inserts_in_the_callers_thread(url: str) -> None:
    with Queue.sync(url, migrate=True) as queue, psycopg.connect(url) as connection:
        dropped = queue.enqueue("mail", unique="key", tx=connection)
        connection.rollback()
        kept = queue.enqueue("mail", unique="key", tx=connection)
        with pytest.raises(DuplicateJob):
            queue.enqueue("mail", unique="key", on_conflict="reject", tx=connection)
        connection.commit()

        assert set(queue.get_many([dropped.id, kept.id])) == {kept.id}


def test_blocking_queue_inserts_in_a_sqlite_transaction(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with (
        Queue.sync(f"sqlite:///{path}") as queue,
        closing(sqlite3.connect(path)) as connection,
    ):
        connection.execute("begin immediate")
        dropped = queue.enqueue("mail", tx=connection)
        connection.rollback()
        connection.execute("begin immediate")
        kept = queue.enqueue("mail", tx=connection)
        connection.commit()

        assert set(queue.get_many([dropped.id, kept.id])) == {kept.id}


def test_coroutine_that_has_to_wait_is_not_run_blocking() -> None:
    assert not is_blocking(None)
    with pytest.raises(RuntimeError, match="had to wait"):
        run_sync(asyncio.sleep(0))
