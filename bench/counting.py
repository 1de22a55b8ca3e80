"""One number out of a database, past the code of whoever is measured."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg

from bench.record import WrongRun

LIMIT_SECONDS = 60


def in_postgres(url: str, statement: str) -> int:
    """Of somebody's own view perhaps, which is not always answered: then he is given up."""
    with psycopg.connect(url, options=f"-c statement_timeout={LIMIT_SECONDS}s") as connection:
        try:
            row = connection.execute(statement.encode()).fetchone()
        except psycopg.errors.QueryCanceled:
            raise WrongRun(f"not counted within {LIMIT_SECONDS} s: {statement}") from None
    if row is None:
        raise RuntimeError(f"no row came of {statement}")
    return int(row[0])


def in_sqlite(url: str, statement: str) -> int:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)) as connection:
        return int(connection.execute(statement).fetchone()[0])
