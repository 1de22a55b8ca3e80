"""Fixtures of the conformance tests. Each test is followed by a check that the tally is exact."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.builders import counted, tallied
from tests.callers import CALLERS, Caller
from tests.pgbouncer import without_options
from windrow.queue.bullmq.location import tables_url
from windrow.queue.store import Store

RunSql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
async def store(store: Store) -> AsyncIterator[Store]:
    yield store
    assert await tallied(store) == await counted(store)


@pytest.fixture
def run_sql(store_name: str, store_url: str) -> Iterator[RunSql]:
    """Run one statement beside the store, on a connection of our own, and commit it. Windrow's
    tables are written `windrow.job`; SQLite, without schemas, has a prefix instead."""
    if store_name == "bullmq":
        store_name, store_url = "sqlite", tables_url(store_url)
        if not store_url.startswith("sqlite:"):
            pytest.skip("BullMQ has no SQL")
    connection: Any = connect_beside(store_name, store_url)

    def run(sql: str) -> list[tuple[Any, ...]]:
        if store_name == "sqlite":
            sql = sql.replace("windrow.", "windrow_")
        cursor = connection.execute(sql)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    yield run
    connection.close()


def connect_beside(store_name: str, url: str) -> Any:
    if store_name == "postgres":
        # Never prepared: what is run beside a store behind a pooler goes through it as well.
        return psycopg.connect(without_options(url), autocommit=True, prepare_threshold=None)
    return sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)


@pytest.fixture
def parameter(store_name: str) -> str:
    """How the first parameter is written in the database's own style."""
    return {"sqlite": "?", "postgres": "$1", "bullmq": "$1"}[store_name]


@pytest.fixture
async def caller(tested_store: str, caller_kind: str, store_url: str) -> AsyncIterator[Caller]:
    """An application's own connection, with a transaction begun."""
    opened: Caller = await CALLERS[tested_store][caller_kind].open(without_options(store_url))
    await opened.begin()
    yield opened
    await opened.close()
