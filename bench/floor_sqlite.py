"""The floor on SQLite (WAL, FULL): a three-column table, claimed by UPDATE and finished by UPDATE;
100 at a time and one at a time."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bench import counting
from bench.contestant import StoreName, payload_text
from bench.record import note_many

SCHEMA = """
CREATE TABLE floor (id INTEGER PRIMARY KEY, state TEXT, payload TEXT);
CREATE INDEX floor_ready ON floor (id) WHERE state = 'ready';
"""
INSERT = "INSERT INTO floor (state, payload) VALUES ('ready', ?)"
CLAIM = """
UPDATE floor SET state = 'active'
WHERE id IN (SELECT id FROM floor WHERE state = 'ready' ORDER BY id LIMIT ?) RETURNING id, payload
"""
FINISH = "UPDATE floor SET state = 'completed' WHERE id IN (SELECT value FROM json_each(?))"
LEFT = "SELECT count(*) FROM floor WHERE state <> 'completed'"
IDLE = 0.002


def path_of(url: str) -> str:
    return url.removeprefix("sqlite:///")


def connect(url: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path_of(url), isolation_level=None, timeout=30)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@dataclass
class FloorProducer:
    connection: sqlite3.Connection

    async def one(self, number: int) -> None:
        self.connection.execute(INSERT, (payload_text(number),))

    async def many(self, numbers: Sequence[int]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(INSERT, [(payload_text(number),) for number in numbers])
        self.connection.execute("COMMIT")


@dataclass
class Floor:
    name: str
    batch: int
    store: StoreName = "sqlite"
    packages: Sequence[str] = ()
    has_bulk: bool = True
    most_jobs: int = 10**9
    drains_only: bool = False

    @property
    def settings(self) -> str:
        return f"WAL, FULL; executemany in; claim {self.batch} + UPDATE {self.batch}"

    async def setup(self, url: str) -> None:
        connection = connect(url)
        connection.executescript(SCHEMA)
        connection.close()

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[FloorProducer]:
        connection = connect(url)
        try:
            yield FloorProducer(connection)
        finally:
            connection.close()

    def work(self, url: str) -> None:
        connection = connect(url)
        while True:
            rows = connection.execute(CLAIM, (self.batch,)).fetchall()
            if not rows:
                time.sleep(IDLE)
                continue
            note_many([json.loads(row[1])["n"] for row in rows])
            connection.execute(FINISH, (json.dumps([row[0] for row in rows]),))

    def left(self, url: str) -> int:
        return counting.in_sqlite(url, LEFT)


CONTESTANTS = [
    Floor("floor sqlite", 100),
    Floor("floor sqlite, one at a time", 1, most_jobs=1_000, drains_only=True),
]
