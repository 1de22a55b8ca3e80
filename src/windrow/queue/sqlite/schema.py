"""The tables themselves: which version is there, and how to bring it up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from windrow.db.migrations import History, check_history, check_upgradable, load_migrations
from windrow.db.sqlite.connection import connect
from windrow.db.sqlite.location import parse_url
from windrow.queue.sqlite.work import PACKAGE, Work, statement


def read_history(work: Work) -> History:
    """The migrations that were applied."""
    if not work.rows("find_migration_table", {}):
        return History()
    [(version, first)] = work.rows("find_schema_version", {})
    return History(version, first)


def check_schema(work: Work) -> None:
    check_history(read_history(work), PACKAGE)


def migrate(work: Work) -> list[str]:
    """Apply what is missing. Two processes at once: the second waits for the write lock and then
    finds nothing left to do."""
    found = read_history(work)
    check_upgradable(found, PACKAGE)
    missing = [one for one in load_migrations(PACKAGE) if one.version > found.version]
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
