"""How connections are made: the options in a URL, and a pooler that nobody told us of."""

from __future__ import annotations

import pytest

from tests.conftest import MakeDatabase
from windrow.errors import ConfigError
from windrow.queue.postgres.connection import PLANNER_SETTINGS, Database, parse_url
from windrow.queue.statements import parse_statement

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
        await Database.open(f"{make_database()}?pooled=true&prepared=true")


async def test_statement_that_went_missing_is_a_poolers_doing(make_database: MakeDatabase) -> None:
    """As when the next transaction runs in a session that has not seen the statement."""
    database = await Database.open(f"{make_database()}?pool_size=1")
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
    database = await Database.open(make_database())

    async def prepare_twice() -> None:
        async with database.connection() as connection:
            await connection.execute("PREPARE taken AS SELECT 1")
            await connection.prepare("SELECT 2", name="taken")

    try:
        with pytest.raises(ConfigError, match=r"add \?pooled=true.*already exists.*42P05"):
            await prepare_twice()
    finally:
        await database.close()
