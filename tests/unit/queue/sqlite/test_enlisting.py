"""Inserting in the caller's own transaction: the connections people really have."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from tests.builders import exists, make_group, row
from windrow.clock import Clock
from windrow.db.transactions import run_sync
from windrow.errors import ConfigError, GroupEnded, StoreConflict, StoreError
from windrow.queue.sqlite.store import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(f"sqlite:///{tmp_path}/jobs.db", clock=Clock())
    await store.migrate()
    yield store
    await store.close()


@pytest.fixture
def connection(store: SqliteStore, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "jobs.db")
    yield connection
    connection.close()


@pytest.fixture
def engine(store: SqliteStore, tmp_path: Path) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/jobs.db")
    yield engine
    engine.dispose()


async def test_connection_that_is_idle_is_put_in_a_transaction(
    store: SqliteStore, connection: sqlite3.Connection
) -> None:
    kept, dropped = row(), row()
    await store.insert_jobs([dropped], tx=connection)
    assert connection.in_transaction
    connection.rollback()
    await store.insert_jobs([kept], tx=connection)
    connection.commit()

    assert await exists(store, kept.id)
    assert not await exists(store, dropped.id)


async def test_refused_insert_leaves_an_idle_connection_idle(
    store: SqliteStore, connection: sqlite3.Connection
) -> None:
    group = await make_group(store)
    await store.close_group(group.id)
    with pytest.raises(GroupEnded):
        await store.insert_jobs([row(group=group.id)], tx=connection)

    assert not connection.in_transaction


async def test_callers_row_factory_does_not_matter(
    store: SqliteStore, connection: sqlite3.Connection
) -> None:
    connection.row_factory = lambda cursor, values: {"n": len(values)}
    new = row(unique="key")
    await store.insert_jobs([new], tx=connection)
    [again] = await store.insert_jobs([row(unique="key")], tx=connection)
    connection.commit()

    assert (again.id, again.outcome) == (new.id, "existing")


async def test_insert_needs_no_event_loop(
    store: SqliteStore, connection: sqlite3.Connection
) -> None:
    new = row()
    run_sync(store.insert_jobs([new], tx=connection))
    connection.commit()

    assert await exists(store, new.id)


async def test_writer_elsewhere_is_a_conflict(
    store: SqliteStore, connection: sqlite3.Connection, tmp_path: Path
) -> None:
    connection.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreConflict):
        await store.insert_jobs([row()], tx=connection)
    other.close()


async def test_connection_to_another_file_is_told_by_what_it_lacks(store: SqliteStore) -> None:
    elsewhere = sqlite3.connect(":memory:")
    with pytest.raises(StoreError, match="no such table"):
        await store.insert_jobs([row()], tx=elsewhere)
    elsewhere.close()


async def test_sqlalchemy_session_commits_its_rows_and_the_jobs(
    store: SqliteStore, engine: sqlalchemy.Engine
) -> None:
    kept, dropped = row(), row()
    with Session(engine) as session:
        await store.insert_jobs([dropped], tx=session)
        session.rollback()
        await store.insert_jobs([kept], tx=session)
        assert not await exists(store, kept.id)
        session.commit()

    assert await exists(store, kept.id)
    assert not await exists(store, dropped.id)


async def test_reads_of_a_sqlalchemy_transaction_are_made_under_the_write_lock(
    store: SqliteStore, engine: sqlalchemy.Engine, connection: sqlite3.Connection
) -> None:
    """Its driver begins at the first write, so what was read before could be out of date."""
    connection.execute("PRAGMA busy_timeout = 10")
    with engine.connect() as caller:
        await store.insert_jobs([], tx=caller)
        with pytest.raises(StoreConflict):
            await store.insert_jobs([row()], tx=connection)


@pytest.mark.parametrize("tx", [object(), "sqlite:///jobs.db"])
async def test_anything_else_is_refused(store: SqliteStore, tx: object) -> None:
    with pytest.raises(ConfigError, match="tx must be"):
        await store.insert_jobs([row()], tx=tx)
