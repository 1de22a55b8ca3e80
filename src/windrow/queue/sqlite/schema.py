"""The tables themselves: which version is there, and how to bring it up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from windrow.errors import SchemaTooNew
from windrow.queue.migrate import latest_version, load_migrations
from windrow.queue.sqlite.connection import connect
from windrow.queue.sqlite.location import parse_url
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


async def describe_schema(url: str) -> str:
    """The tables, indexes and view of a migrated database as one text: what `schema.sql` holds."""
    connection = connect(parse_url(url))
    try:
        rows = connection.execute(statement("describe_schema")).fetchall()
    finally:
        connection.close()
    return _HEADER + "".join(f"\n{sql};\n" for (sql,) in rows)


_HEADER: Final = "-- What the migrations add up to. Made by `make schema`, compared by a test.\n"
