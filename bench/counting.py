"""One number out of a database, past the code of whoever is measured."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg


def in_postgres(url: str, statement: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(statement.encode()).fetchone()
    if row is None:
        raise RuntimeError(f"no row came of {statement}")
    return int(row[0])


def in_sqlite(url: str, statement: str) -> int:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)) as connection:
        return int(connection.execute(statement).fetchone()[0])
