"""Making the tables, and saying what they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from windrow.errors import SchemaTooNew
from windrow.queue.migrate import latest_version, load_migrations
from windrow.queue.sqlite.work import PACKAGE, Work, statement


def schema_version(work: Work) -> int:
    """The last migration that was applied; 0 if none."""
    if not work.rows("find_migration_table", {}):
        return 0
    [(version,)] = work.rows("find_schema_version", {})
    return int(version)


def migrate(work: Work) -> list[str]:
    """Apply what is missing. Two processes at once: the second waits for the write lock and then
    finds nothing left to do."""
    found = schema_version(work)
    if found > latest_version(PACKAGE):
        raise SchemaTooNew(found, latest_version(PACKAGE))
    missing = [one for one in load_migrations(PACKAGE) if one.version > found]
    for migration in missing:
        for text in split_script(migration.sql):
            work.run_given(text, ())
        work.run(
            "record_migration",
            {"version": migration.version, "name": migration.name, "now": work.now},
        )
    return [migration.name for migration in missing]


def split_script(script: str) -> Iterator[str]:
    """The statements of a script: `executescript` would commit the transaction."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text.strip()
            text = ""


def dump_schema(connection: sqlite3.Connection) -> str:
    """The tables, views and indexes of a database as one text: what `schema.sql` holds."""
    rows = connection.execute(statement("list_schema")).fetchall()
    return _HEADER + "".join(f"\n{sql};\n" for (sql,) in rows)


_HEADER: Final = "-- What the migrations add up to. Made by `make schema`, compared by a test.\n"
