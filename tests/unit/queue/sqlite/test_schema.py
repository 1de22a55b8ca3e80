"""schema.sql is what the migrations add up to, as `describe_schema` writes it."""

from __future__ import annotations

import sqlite3
from importlib import resources
from pathlib import Path

from windrow.clock import Clock
from windrow.queue.sqlite.schema import describe_schema, split_script
from windrow.queue.sqlite.store import SqliteStore
from windrow.queue.sqlite.work import PACKAGE

SNAPSHOT = (resources.files(PACKAGE) / "schema.sql").read_text("utf-8")


async def test_snapshot_is_up_to_date(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    store = await SqliteStore.open(url, clock=Clock())
    await store.migrate()
    await store.close()

    assert await describe_schema(url) == SNAPSHOT


async def test_snapshot_makes_the_same_tables(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "jobs.db")
    connection.executescript(SNAPSHOT)
    connection.close()

    assert await describe_schema(f"sqlite:///{tmp_path}/jobs.db") == SNAPSHOT


def test_script_is_split_at_the_ends_of_statements() -> None:
    script = "-- a; comment\nCREATE TABLE t (a TEXT DEFAULT ';');\n\nSELECT ';' ;\n"

    assert len(list(split_script(script))) == 2
