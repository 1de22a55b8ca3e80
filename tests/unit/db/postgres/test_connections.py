"""How connections are made: the options in a URL, and a pooler that nobody told us of."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from tests.conftest import MakeDatabase
from windrow.db.postgres.connections import PLANNER_SETTINGS, Connections, parse_url
from windrow.db.statements import parse_statement
from windrow.errors import ConfigError, StoreError

ONE = parse_statement("one", "SELECT 1 AS n")


@pytest.mark.parametrize("query", ["pooled=true", "statement_cache_size=0"])
def test_behind_a_pooler_nothing_is_named_and_nothing_set(query: str) -> None:
    url, options = parse_url(f"postgresql://h/db?{query}&sslmode=require")
    asked = options.for_driver()

    assert url == "postgresql://h/db?sslmode=require"
    assert asked["statement_cache_size"] == 0
    assert asked["server_settings"] == {}


def test_without_a_pooler_statements_are_kept_and_planned_by_index() -> None:
    asked = parse_url("postgresql://h/db?pooled=false")[1].for_driver()

    assert asked["statement_cache_size"] > 0
    assert asked["server_settings"] == PLANNER_SETTINGS


def test_a_pooler_that_keeps_statements_apart_is_given_names_and_no_settings() -> None:
    options = parse_url("postgresql://h/db?prepared=true")[1]
    asked = options.for_driver()

    assert options.is_behind_pooler
    assert asked["statement_cache_size"] > 0
    assert asked["server_settings"] == {}


@pytest.mark.parametrize("name", ["pooled", "prepared"])
def test_flags_are_true_or_false(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} in the database URL must be true or false"):
        parse_url(f"postgresql://h/db?{name}=yes")


async def test_prepared_is_refused_where_names_are_everybodys(make_database: MakeDatabase) -> None:
    with pytest.raises(ConfigError, match=r"use \?pooled=true"):
        await Connections.open(f"{make_database()}?pooled=true&prepared=true")


async def test_statement_that_went_missing_is_a_poolers_doing(make_database: MakeDatabase) -> None:
    """As when the next transaction runs in a session that has not seen the statement."""
    database = await Connections.open(f"{make_database()}?pool_size=1")
    try:
        await database.fetch(ONE, {})
        async with database.connection() as connection:
            await connection.execute("DEALLOCATE ALL")
        with pytest.raises(ConfigError, match=r"add \?pooled=true.*does not exist.*26000"):
            await database.fetch(ONE, {})
    finally:
        await database.close()


async def test_name_that_is_taken_is_a_poolers_doing(make_database: MakeDatabase) -> None:
    """As when the next transaction runs in a session where another client has used the name."""
    database = await Connections.open(make_database())

    async def prepare_twice() -> None:
        async with database.connection() as connection:
            await connection.execute("PREPARE taken AS SELECT 1")
            await connection.prepare("SELECT 2", name="taken")

    try:
        with pytest.raises(ConfigError, match=r"add \?pooled=true.*already exists.*42P05"):
            await prepare_twice()
    finally:
        await database.close()


def _is_lost(connection: Any) -> bool:
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:  # and taken back by the driver
        return True


async def test_connection_is_used_again_and_one_that_was_lost_is_not(
    make_database: MakeDatabase,
) -> None:
    url = make_database()
    database = await Connections.open(url)
    try:
        async with database.connection() as first:
            pid = await first.fetchval("SELECT pg_backend_pid()")
        async with database.connection() as second:
            assert second is first
        outside = await asyncpg.connect(url)
        await outside.execute(f"SELECT pg_terminate_backend({pid}, 5000)")
        await outside.close()
        async with asyncio.timeout(30):
            while not _is_lost(first):
                await asyncio.sleep(0.01)
        assert (await database.fetch(ONE, {}))[0]["n"] == 1
    finally:
        await database.close()


async def test_connection_with_a_failed_statement_or_an_open_transaction_is_not_kept(
    make_database: MakeDatabase,
) -> None:
    database = await Connections.open(f"{make_database()}?pool_size=1")
    try:
        with pytest.raises(StoreError):
            async with database.connection() as connection:
                await connection.execute("BEGIN; SELECT 1 / 0")
        async with database.connection() as connection:
            assert not connection.is_in_transaction()
            await connection.execute("BEGIN")
        async with database.connection() as connection:
            assert not connection.is_in_transaction()
    finally:
        await database.close()


async def test_who_waits_for_the_only_connection_gets_it(make_database: MakeDatabase) -> None:
    database = await Connections.open(f"{make_database()}?pool_size=1")
    try:
        async with database.connection():
            waiting = [asyncio.create_task(database.fetch(ONE, {})) for _ in range(5)]
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            assert all([(await one)[0]["n"] == 1 for one in waiting])
    finally:
        await database.close()
