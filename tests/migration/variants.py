# ruff: noqa: E501
"""The ingestion tables of old programs, version by version, with rows as people have them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

A = """
CREATE TABLE ingestion_queue (
  file_absolute_path TEXT PRIMARY KEY, collection_name TEXT NOT NULL, tenant_id TEXT DEFAULT 'default',
  branch TEXT DEFAULT 'main', operation TEXT NOT NULL, priority INTEGER NOT NULL DEFAULT 5,
  queued_timestamp TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, retry_count INTEGER NOT NULL DEFAULT 0,
  retry_from TEXT REFERENCES ingestion_queue (file_absolute_path), error_message_id INTEGER, metadata TEXT);
"""
B = """
CREATE TABLE messages (
  id INTEGER PRIMARY KEY, error_type TEXT NOT NULL, error_message TEXT NOT NULL, error_details JSON,
  occurred_timestamp TIMESTAMP, file_path TEXT, collection_name TEXT, retry_count INTEGER);
CREATE TABLE ingestion_queue (
  file_absolute_path TEXT PRIMARY KEY, collection_name TEXT NOT NULL, tenant_id TEXT DEFAULT 'default',
  branch TEXT DEFAULT 'main', operation TEXT NOT NULL, priority INTEGER NOT NULL DEFAULT 5,
  queued_timestamp TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, retry_count INTEGER NOT NULL DEFAULT 0,
  retry_from TEXT, error_message_id INTEGER REFERENCES messages (id), collection_type VARCHAR);
"""
C = B  # where retry_from is a time
D = """
CREATE TABLE ingestion_queue (
  queue_id TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(16)))), file_absolute_path TEXT NOT NULL UNIQUE,
  collection_name TEXT NOT NULL, tenant_id TEXT, branch TEXT, operation TEXT NOT NULL,
  priority INTEGER NOT NULL DEFAULT 5, queued_timestamp TEXT, scheduled_at TEXT,
  retry_count INTEGER NOT NULL DEFAULT 0, retry_from TEXT, error_message_id INTEGER,
  status TEXT NOT NULL DEFAULT 'pending', metadata TEXT DEFAULT '{}', collection_type TEXT);
"""
OTHERS = """
CREATE TABLE content_ingestion_queue (
  queue_id TEXT PRIMARY KEY, idempotency_key TEXT NOT NULL UNIQUE, content TEXT NOT NULL,
  collection TEXT NOT NULL, source_type TEXT NOT NULL DEFAULT 'scratchbook', priority INTEGER DEFAULT 8,
  status TEXT NOT NULL DEFAULT 'pending', main_tag TEXT, full_tag TEXT, metadata TEXT,
  created_at TEXT, updated_at TEXT, started_at TEXT, completed_at TEXT, retry_count INTEGER DEFAULT 0,
  max_retries INTEGER DEFAULT 3, error_message TEXT);
CREATE TABLE processing_queue (
  queue_id TEXT PRIMARY KEY, file_path TEXT NOT NULL, collection TEXT NOT NULL, priority INTEGER DEFAULT 2,
  created_at TEXT, scheduled_at TEXT, attempts INTEGER DEFAULT 0, metadata JSON);
CREATE TABLE missing_metadata_queue (
  queue_id TEXT PRIMARY KEY, file_absolute_path TEXT, collection_name TEXT, tenant_id TEXT, branch TEXT,
  operation TEXT, priority INTEGER DEFAULT 5, missing_tools JSON NOT NULL, queued_timestamp TEXT,
  retry_count INTEGER DEFAULT 0, last_check_timestamp TEXT, metadata TEXT,
  UNIQUE (file_absolute_path, tenant_id, branch));
CREATE TABLE cumulative_deletions_queue (
  id INTEGER PRIMARY KEY AUTOINCREMENT, file_absolute_path TEXT, collection_name TEXT, tenant_id TEXT,
  branch TEXT, marked_for_deletion_at TEXT NOT NULL, deletion_scheduled_at TEXT, deleted_at TEXT,
  status TEXT DEFAULT 'pending', retry_count INTEGER DEFAULT 0, error_message TEXT,
  UNIQUE (file_absolute_path, collection_name, tenant_id, branch));
CREATE TABLE dead_letter_queue (
  id INTEGER PRIMARY KEY, file_path TEXT, collection_name TEXT, tenant_id TEXT, branch TEXT,
  operation TEXT DEFAULT 'ingest', error_category TEXT, error_type TEXT, error_message TEXT,
  original_priority INTEGER DEFAULT 5, retry_count INTEGER, retry_history JSON, failed_at TEXT,
  original_queued_at TEXT, reprocessed_at TEXT, reprocess_count INTEGER DEFAULT 0, metadata TEXT);
"""


def _fill_a(db: sqlite3.Connection) -> None:
    db.executemany(
        "INSERT INTO ingestion_queue VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)",
        [
            ("/src/main.rs", "projects", "t1", "main", "ingest", 7, "2025-06-01 10:00:00", 0, None, "{}"),
            ("/src/naïve café.md", "notes", None, None, "update", 5, "2025-06-01 10:00:01", 2,
             "/src/main.rs", "{broken"),
            ("relative.txt", "projects", "t1", "main", "ingest", 5, "2025-06-01 10:00:02", 0, None, None),
            ("/src/gone.py", "projects", "t1", "main", "vacuum", 5, "2025-06-01 10:00:03", 0, None, "[1]"),
            ("/文档/说明.md", "projects", "t2", "main", "delete", 99, "2025-06-01 10:00:04", 0, None, None),
        ],
    )  # fmt: skip


def _fill_b(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO messages (id, error_type, error_message) VALUES (7, 'io', 'disk full')")
    db.executemany(
        "INSERT INTO ingestion_queue (file_absolute_path, collection_name, operation, retry_count,"
        " error_message_id, collection_type) VALUES (?, 'projects', 'ingest', ?, ?, 'project')",
        [("/b/one.py", 3, 7), ("/b/two.py", 0, None)],
    )


def _fill_c(db: sqlite3.Connection) -> None:
    _fill_b(db)
    db.execute(
        "UPDATE ingestion_queue SET retry_from = '2999-01-01T00:00:00Z' WHERE retry_count = 3"
    )


def _fill_d(db: sqlite3.Connection) -> None:
    db.executemany(
        "INSERT INTO ingestion_queue (queue_id, file_absolute_path, collection_name, tenant_id,"
        " branch, operation, status) VALUES (?, ?, 'projects', ?, 'dev', 'ingest', ?)",
        [
            ("0123456789abcdef0123456789abcdef", "/d/waiting.py", "t1", "pending"),
            ("d2", "/d/begun.py", "t1", "processing"),
            ("d3", "/d/done.py", "t1", "completed"),
            ("d4", "/d/failed.py", None, "failed"),
        ],
    )


def _fill_others(db: sqlite3.Connection) -> None:
    db.executescript(
        """
        INSERT INTO content_ingestion_queue (queue_id, idempotency_key, content, collection, status,
          main_tag, full_tag, metadata, created_at) VALUES
          ('c1', 'k1', 'A note', 'notes', 'pending', 'proj', 'proj.dev', '{"a": 1}', '2025-06-01 10:00:00'),
          ('c2', 'k2', 'Half done', 'notes', 'in_progress', NULL, NULL, NULL, '2025-06-01 10:00:01'),
          ('c3', 'k3', 'Over', 'notes', 'done', NULL, NULL, NULL, '2025-06-01 10:00:02'),
          ('c4', 'k4', 'Broken', 'notes', 'failed', NULL, NULL, 'x', '2025-06-01 10:00:03');
        INSERT INTO processing_queue VALUES
          ('p1', '/p/one.pdf', 'docs', 4, '2025-06-01 10:00:00', NULL, 1, '{"tenant_id": "t9", "branch": "b"}'),
          ('p2', '/p/two.pdf', 'docs', 77, 'not a time', '2999-01-01', 0, 'not json');
        INSERT INTO missing_metadata_queue VALUES
          ('m1', '/m/a.py', 'projects', 't1', 'main', 'ingest', 5, '["lsp"]', '2025-06-01', 1, NULL, NULL),
          ('m2', '/m/a.py', 'projects', 't2', 'main', 'ingest', 5, '["lsp"]', '2025-06-01', 1, NULL, NULL);
        INSERT INTO cumulative_deletions_queue (file_absolute_path, collection_name, tenant_id, branch,
          marked_for_deletion_at, deletion_scheduled_at, deleted_at) VALUES
          ('/x/old.py', 'projects', 't1', 'main', '2025-06-01', '2999-06-02', NULL),
          ('/x/older.py', 'projects', 't1', 'main', '2025-06-01', NULL, '2025-06-02');
        INSERT INTO dead_letter_queue (id, file_path, collection_name, tenant_id, branch, error_category,
          error_message, retry_count, failed_at, reprocessed_at) VALUES
          (1, '/dlq/a.py', 'projects', 't1', 'main', 'permanent', 'no parser', 3, '2025-06-01', NULL),
          (2, '/dlq/b.py', 'projects', 't1', 'main', 'permanent', 'no parser', 3, '2025-06-01', '2025-06-03');
        """
    )


def _fill_odd(db: sqlite3.Connection) -> None:
    """What SQLite lets anybody write into any column, and files that several tables ask for."""
    endless = float("inf")
    db.executemany(
        "INSERT INTO ingestion_queue (queue_id, file_absolute_path, collection_name, tenant_id, branch,"
        " operation, priority, queued_timestamp, retry_count, status, metadata)"
        " VALUES (?, ?, 'p', ?, 'main', 'ingest', ?, ?, ?, ?, ?)",
        [
            ("o1", "/odd/far.py", "t", 5, 1e30, 0, "pending", "{}"),
            ("o2", "/odd/nanos.py", "t", 5, 1717236000 * 10**9, 0, "pending", "null"),
            (
                "o3",
                "/odd/endless.py",
                "t",
                endless,
                "2025-01-01",
                endless,
                "pending",
                '{"x": 1e999}',
            ),
            ("o4", "/odd/first.py", "t", 5, "0001-01-01T00:00:00+05:00", -5, "pending", "[]"),
            ("o5", "/odd/words.py", "t", "high", "", "many", "PENDING", '{"x": "\\ud800"}'),
            ("o6", b"/odd/\xff.py", "t", 5, "2025-01-01", 0, "pending", b"\xff\xfe"),
            ("o7", "/odd/nul.py", "t\x00", 5, "2025-01-01", 0, "pending", "{}"),
            (None, "/odd/nameless.py", "t" * 3000, 5, "2025-01-01", 0, "pending", "{}"),
            ("o8", "/odd/thrice.py", "t", 5, "2025-01-01", 0, "pending", "{}"),
        ],
    )
    db.executescript(
        """
        INSERT INTO missing_metadata_queue (queue_id, file_absolute_path, collection_name, tenant_id, operation,
          missing_tools) VALUES ('m1', '/odd/thrice.py', 'p', 't', 'ingest', '[]');
        INSERT INTO processing_queue (queue_id, file_path, collection, metadata) VALUES
          ('p1', '/odd/thrice.py', 'p', '{"tenant_id": "t"}'), ('p2', '/odd/b.py', 'p', '{"operation": [1]}');
        """
    )


HEAD = """
CREATE TABLE dead_letter_queue (
  dlq_id TEXT PRIMARY KEY, original_queue_id TEXT NOT NULL, item_type TEXT NOT NULL, op TEXT NOT NULL,
  tenant_id TEXT NOT NULL, collection TEXT NOT NULL, branch TEXT, payload_json TEXT NOT NULL, file_path TEXT,
  error_category TEXT NOT NULL, error_message TEXT, retry_count INTEGER, resurrection_count INTEGER DEFAULT 0,
  final_failure_at TEXT, moved_to_dlq_at TEXT, metadata TEXT);
"""


def _fill_head(db: sqlite3.Connection) -> None:
    db.executemany(
        "INSERT INTO dead_letter_queue (dlq_id, original_queue_id, item_type, op, tenant_id, collection,"
        " branch, payload_json, error_category, error_message, retry_count, final_failure_at)"
        " VALUES (?, 'q', ?, ?, 't1', 'projects', 'main', ?, 'permanent', 'no parser', 3, '2025-06-01')",
        [
            ("h1", "file", "ingest", '{"file_path": "/h/a.py"}'),
            ("h2", "content", "ingest", '{"content": "A note", "source_type": "scratchbook"}'),
            ("h3", "planet", "ingest", "{}"),
            ("h4", "file", "ingest", "{broken"),
        ],
    )


VARIANTS: dict[str, tuple[str, Callable[[sqlite3.Connection], None]]] = {
    "A": (A, _fill_a),
    "B": (B, _fill_b),
    "C": (C, _fill_c),
    "D": (D, _fill_d),
    "others": (OTHERS, _fill_others),
    "odd": (D + OTHERS, _fill_odd),
    "head": (HEAD, _fill_head),
}


def build(path: Path, *names: str) -> Path:
    """A database of an old program, with the tables of these variants."""
    with closing(sqlite3.connect(path)) as db, db:
        for name in names:
            schema, fill = VARIANTS[name]
            db.executescript(schema)
            fill(db)
    return path


def build_many(path: Path, rows: int) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(D)
        db.executemany(
            "INSERT INTO ingestion_queue (queue_id, file_absolute_path, collection_name, tenant_id,"
            " branch, operation, queued_timestamp) VALUES (?, ?, 'big', 't', 'main', 'ingest', ?)",
            [(f"q{n}", f"/big/{n}.txt", f"2025-06-01 10:00:00.{n:06}") for n in range(rows)],
        )
    return path


def build_shared(path: Path, variant: str) -> Path:
    """A file that several tenants and branches have, where the key of the table allows it."""
    schema = VARIANTS[variant][0].replace("NOT NULL UNIQUE", "NOT NULL")
    columns = "file_absolute_path, tenant_id, branch"
    schema = schema.replace("file_absolute_path TEXT PRIMARY KEY", "file_absolute_path TEXT")
    schema = schema.replace("REFERENCES ingestion_queue (file_absolute_path)", "")
    schema = schema.replace(");", f", UNIQUE ({columns}));")
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(schema)
        db.executemany(
            f"INSERT INTO ingestion_queue ({columns}, collection_name, operation)"
            " VALUES ('/same.py', ?, ?, 'projects', 'ingest')",
            [("t1", "main"), ("t2", "main"), ("t1", "dev"), ("t1", "next")],
        )
    return path


def dump(path: Path) -> str:
    """All that a database says."""
    with closing(sqlite3.connect(path)) as db:
        return "\n".join(db.iterdump())
