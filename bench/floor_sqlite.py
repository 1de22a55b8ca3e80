"""The floor on SQLite: a three-column table, claim 100 by UPDATE, finish 100 by UPDATE."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

SCHEMA = """
CREATE TABLE floor (id INTEGER PRIMARY KEY, state TEXT, payload TEXT);
CREATE INDEX floor_ready ON floor (id) WHERE state = 'ready';
"""
CLAIM = """
UPDATE floor SET state = 'active'
WHERE id IN (SELECT id FROM floor WHERE state = 'ready' ORDER BY id LIMIT ?) RETURNING id, payload
"""
FINISH = "UPDATE floor SET state = 'completed' WHERE id IN (SELECT value FROM json_each(?))"


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.executescript(SCHEMA)
    return connection


def fill(connection: sqlite3.Connection, jobs: int, payload: str) -> float:
    """Insert in one transaction; seconds."""
    began = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    rows = [("ready", payload)] * jobs
    connection.executemany("INSERT INTO floor (state, payload) VALUES (?, ?)", rows)
    connection.execute("COMMIT")
    took = time.perf_counter() - began
    connection.execute("ANALYZE")
    return took


def drain(connection: sqlite3.Connection, batch: int) -> float:
    """Claim and finish until nothing is ready; seconds."""
    began = time.perf_counter()
    while rows := connection.execute(CLAIM, (batch,)).fetchall():
        connection.execute(FINISH, (json.dumps([row[0] for row in rows]),))
    return time.perf_counter() - began
