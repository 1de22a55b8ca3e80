"""Where contestants are measured: a private server for each kind of store, and what it counts.

Data lies on a disk, in the folder for temporary files: in memory an fsync would cost nothing.
"""

from __future__ import annotations

import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psycopg

from bench import counting, redis_server, usage
from tests.postgres_server import PostgresServer, create_database, drop_database

DURABLE = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "max_connections": "100",
}
STATS_SECONDS = 0.2  # a backend that has ended has told its counts within this
WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'"
DEAD = "SELECT coalesce(sum(n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables"


@dataclass(frozen=True)
class Counted:
    """What a server has used and written so far; None where it cannot be told."""

    cpu: float | None = None  # seconds
    wal: int | None = None  # bytes
    dead: int | None = None  # row versions that an update or a delete left behind


class Bed(Protocol):
    @property
    def about(self) -> dict[str, str]:
        """The server's version and settings."""

    def fresh(self) -> AbstractContextManager[str]: ...
    def analyze(self, url: str) -> None: ...
    def settle(self, url: str) -> None: ...
    def count(self, url: str) -> Counted: ...
    def snapshot(self, url: str) -> AbstractContextManager[None]: ...


class PostgresBed:
    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    @property
    def about(self) -> dict[str, str]:
        with psycopg.connect(self._server.url()) as connection:
            version = connection.info.parameter_status("server_version")
        return {"postgres": version or "", **DURABLE}

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """The URL of an empty database, which is gone afterwards."""
        url = create_database(self._server.url())
        try:
            yield url
        finally:
            drop_database(self._server.url(), url)

    def analyze(self, url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")

    def settle(self, url: str) -> None:
        """What the server does by itself, some time after much was written."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")

    def count(self, url: str) -> Counted:
        time.sleep(STATS_SECONDS)
        if self._server.pid is None:
            raise RuntimeError("the CPU of a server that is not ours cannot be counted")
        return Counted(
            usage.cpu_seconds(self._server.pid),
            counting.in_postgres(url, WAL),
            counting.in_postgres(url, DEAD),
        )

    @contextmanager
    def snapshot(self, url: str) -> Iterator[None]:
        """Somebody's long transaction, which has seen the database as it is now."""
        with psycopg.connect(url) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute("SELECT count(*) FROM pg_class")
            yield
            connection.rollback()


class SqliteBed:
    @property
    def about(self) -> dict[str, str]:
        return {"sqlite": sqlite3.sqlite_version, "journal_mode": "WAL", "synchronous": "FULL"}

    @contextmanager
    def fresh(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
            yield f"sqlite:///{folder}/jobs.db"

    def analyze(self, url: str) -> None:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)
        connection.execute("ANALYZE")
        connection.commit()
        connection.close()

    def settle(self, url: str) -> None:
        """Nothing is put off."""

    def count(self, url: str) -> Counted:
        return Counted()

    @contextmanager
    def snapshot(self, url: str) -> Iterator[None]:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield
        connection.close()


class RedisBed:
    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process, self._url = process, url

    @property
    def about(self) -> dict[str, str]:
        return redis_server.about(self._url)

    @contextmanager
    def fresh(self) -> Iterator[str]:
        redis_server.empty(self._url)
        yield self._url

    def analyze(self, url: str) -> None:
        """There is nothing to analyze."""

    def settle(self, url: str) -> None:
        """Nothing is put off."""

    def count(self, url: str) -> Counted:
        return Counted(usage.cpu_seconds(self._process.pid))

    @contextmanager
    def snapshot(self, url: str) -> Iterator[None]:
        yield


@contextmanager
def postgres() -> Iterator[PostgresBed]:
    server = PostgresServer(settings=DURABLE, parent=Path(tempfile.gettempdir()))
    server.start()
    try:
        yield PostgresBed(server)
    finally:
        server.stop()


@contextmanager
def sqlite() -> Iterator[SqliteBed]:
    yield SqliteBed()


@contextmanager
def redis() -> Iterator[RedisBed]:
    with redis_server.running() as (process, url):
        yield RedisBed(process, url)


BEDS: dict[str, Callable[[], AbstractContextManager[Bed]]] = {
    "postgres": postgres,
    "sqlite": sqlite,
    "redis": redis,
}
