"""Migrations that Windrow does not have: those of a later version, which tests add, and those of
development versions, which became one initial migration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from windrow.db.migrations import Migration, load_migrations

ADDITIONS = {
    "postgres": [
        "ALTER TABLE windrow.job ADD COLUMN later_idea integer",
        "ALTER TABLE windrow.job_payload ADD COLUMN later_idea text DEFAULT 'x'",
        "ALTER TABLE windrow.lease ADD COLUMN later_idea text",
        "ALTER TABLE windrow.job_group ADD COLUMN later_idea text",
    ],
    "sqlite": [
        "ALTER TABLE windrow_job_live ADD COLUMN later_idea integer",
        "ALTER TABLE windrow_job_payload ADD COLUMN later_idea text DEFAULT 'x'",
        "ALTER TABLE windrow_lease ADD COLUMN later_idea text",
    ],
}

# Some migrations of development versions; there were gaps between the numbers.
MIGRATIONS = {1: "0001_queue", 4: "0004_retention", 17: "0017_credentials", 33: "0033_channels"}
LATEST = 33

_TABLES = {
    "sqlite": """
        PRAGMA journal_mode = wal;
        CREATE TABLE windrow_migration (
          version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL);
        CREATE TABLE windrow_queue (name TEXT PRIMARY KEY, is_paused INTEGER NOT NULL);
        INSERT INTO windrow_queue VALUES ('web', 0);
    """,
    "postgres": """
        CREATE SCHEMA windrow;
        CREATE TABLE windrow.migration (
          version integer PRIMARY KEY, name text NOT NULL,
          applied_at timestamptz NOT NULL DEFAULT now());
        CREATE TABLE windrow.queue (name text PRIMARY KEY, is_paused boolean NOT NULL);
        INSERT INTO windrow.queue VALUES ('web', false);
    """,
}
_APPLIED = {
    "sqlite": "INSERT INTO windrow_migration VALUES ({}, '{}', 0)",
    "postgres": "INSERT INTO windrow.migration (version, name) VALUES ({}, '{}')",
}
# Every table with its file on the disk, and every row with the transaction that wrote it.
_TRACES = (
    "SELECT relname, relfilenode FROM pg_class WHERE oid >= 16384 ORDER BY 1, 2",
    "SELECT xmin::text, ctid::text, * FROM windrow.migration ORDER BY version",
    "SELECT xmin::text, ctid::text, * FROM windrow.queue",
)


@contextmanager
def later_migrations(store_name: str, statements: list[str]) -> Iterator[list[str]]:
    """What the code of a later day brings; the names of its migrations."""
    package = f"windrow.queue.{store_name}"
    known = load_migrations(package)
    later = [
        Migration(9001 + number, f"{9001 + number}_later", f"{statement};")
        for number, statement in enumerate(statements)
    ]
    everything = (*known, *later)
    with (
        patch("windrow.db.migrations.load_migrations", return_value=everything),
        patch(f"{package}.schema.load_migrations", return_value=everything),
    ):
        yield [one.name for one in later]


def make_development_database(store_name: str, connection: Any, level: int = LATEST) -> None:
    for statement in _TABLES[store_name].split(";\n"):
        if statement.strip():
            connection.execute(statement)
    for version, name in MIGRATIONS.items():
        if version <= level:
            connection.execute(_APPLIED[store_name].format(version, name))


def traces(store_name: str, connection: Any) -> list[Any]:
    """What would differ after anything was written."""
    if store_name == "postgres":
        return [connection.execute(query).fetchall() for query in _TRACES]
    changes = "SELECT name, sql FROM sqlite_master ORDER BY 1", "SELECT * FROM windrow_migration"
    # Goes up with every transaction of another connection that writes.
    written = connection.execute("PRAGMA data_version").fetchall()
    return [written, *(connection.execute(query).fetchall() for query in changes)]
