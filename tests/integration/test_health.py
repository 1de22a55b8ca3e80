"""`diagnose` on a database that is not well, by what only Postgres or only SQLite suffers from."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from tests.conftest import MakeDatabase
from tests.pgbouncer import through
from windrow import NewJob, Queue
from windrow.queue.opening import open_store
from windrow.services.health import Finding, diagnose
from windrow.settings import Settings


@pytest.fixture
def url(make_database: MakeDatabase, postgres_template: str) -> str:
    return make_database(postgres_template)


@pytest.fixture
def report(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else's connection to the database."""
    with psycopg.connect(url, application_name="report") as connection:
        yield connection


def keep_snapshot(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT 1")


def told(found: list[Finding], what: str) -> Finding:
    """The one finding that says this."""
    [one] = [one for one in found if what in one.what]
    return one


async def test_transaction_that_keeps_dead_rows(url: str, report: psycopg.Connection[Any]) -> None:
    keep_snapshot(report)
    one = told(await diagnose(Settings(url), patience=0), "a transaction has been open")
    assert "report, user" in one.cause
    assert "idle in transaction" in one.cause
    assert f"pg_terminate_backend({report.info.backend_pid})" in one.fix
    assert await diagnose(Settings(url)) == []


async def test_dead_rows_that_are_not_cleaned_up(url: str, report: psycopg.Connection[Any]) -> None:
    async with Queue.open(url) as queue:
        await queue.enqueue_many([NewJob("work")] * 1000)
    keep_snapshot(report)
    with psycopg.connect(url, autocommit=True) as other:
        for _ in range(22):
            other.execute("UPDATE windrow.job_live SET attempts = attempts + 1")
    one = told(await diagnose(Settings(url)), "dead rows lie among")
    assert "VACUUM windrow.job_live" in one.fix


async def test_connections_that_are_nearly_used_up(
    url: str, report: psycopg.Connection[Any]
) -> None:
    assert await diagnose(Settings(url)) == []
    report.execute(f'ALTER DATABASE "{report.info.dbname}" CONNECTION LIMIT 2')
    report.commit()
    one = told(await diagnose(Settings(url)), "of 2 connections to the database are in use")
    assert "pool_size" in one.fix


async def test_user_who_may_not_look_at_others_sees_how_many_they_are(
    url: str, report: psycopg.Connection[Any]
) -> None:
    keep_snapshot(report)
    name = f"windrow_guest_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'guest'")
        owner.execute(f"GRANT USAGE ON SCHEMA windrow TO {name}")
        owner.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA windrow TO {name}")
        try:
            parts = urlsplit(url)
            address = f"{name}:guest@{parts.netloc.rpartition('@')[2]}"
            store = await open_store(urlunsplit(parts._replace(netloc=address)))
            vitals = await store.check_health()
            await store.close()
        finally:
            owner.execute(f"DROP OWNED BY {name}")
            owner.execute(f"DROP ROLE {name}")
    assert vitals.oldest_transaction is None
    assert (vitals.connections or 0) >= 3


async def test_polling_that_is_wanted_is_only_a_note(url: str) -> None:
    [one] = await diagnose(Settings(url, notifier="polling"))
    assert (one.level, one.what) == ("note", "new work is found by polling")


async def test_wake_ups_that_do_not_arrive(url: str, pgbouncer_url: str) -> None:
    pooled = through(pgbouncer_url, url)
    one = told(await diagnose(Settings(pooled)), "new work is found by polling")
    assert "WINDROW_DATABASE_DIRECT_URL" in one.cause
    assert await diagnose(Settings(pooled, database_direct_url=url)) == []


async def test_log_that_a_reader_lets_grow(sqlite_template: Path, tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    shutil.copyfile(sqlite_template, path)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM windrow_job_live").fetchone()
    async with Queue.open(f"sqlite:///{path}") as queue:
        for _ in range(24):
            await queue.enqueue("work", "x" * 3_000_000)
        one = told(await diagnose(Settings(f"sqlite:///{path}")), "the write-ahead log has grown")
    reader.close()
    assert "reading transaction" in one.cause
