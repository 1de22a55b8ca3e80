"""schema.sql is what the migrations add up to, written by `dump_schema`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib import resources

import pytest

from windrow.queue.migrate import load_migrations
from windrow.queue.sqlite.migrating import dump_schema, split_script
from windrow.queue.sqlite.work import PACKAGE


@pytest.fixture
def empty() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


def test_snapshot_is_up_to_date(empty: sqlite3.Connection) -> None:
    for migration in load_migrations(PACKAGE):
        for text in split_script(migration.sql):
            empty.execute(text)
    snapshot = (resources.files(PACKAGE) / "schema.sql").read_text("utf-8")

    assert dump_schema(empty) == snapshot


def test_snapshot_makes_the_same_tables(empty: sqlite3.Connection) -> None:
    snapshot = (resources.files(PACKAGE) / "schema.sql").read_text("utf-8")
    empty.executescript(snapshot)

    assert dump_schema(empty) == snapshot


def test_script_is_split_at_the_ends_of_statements() -> None:
    script = "-- a; comment\nCREATE TABLE t (a TEXT DEFAULT ';');\n\nSELECT ';' ;\n"

    assert len(list(split_script(script))) == 2
