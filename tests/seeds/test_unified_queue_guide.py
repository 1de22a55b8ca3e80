"""The guide for those who come from unified_queue: what it prints is run (U1)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.seeds.documents import split_script
from tests.test_docs import fenced

GUIDE = Path(__file__).parent.parent.parent / "docs/guides/coming-from-unified-queue.md"


def test_what_the_guide_prints_runs_on_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    environment = os.environ | {"WINDROW_DATABASE_URL": f"sqlite:///{path}"}

    def run(*command: str) -> str:
        return subprocess.run(
            [sys.executable, *command],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout

    run("-m", "windrow", "db", "migrate")
    installed = run("-m", "windrow", "db", "dialect", "install", "unified_queue")
    assert installed == "installed unified_queue\n"
    connection = sqlite3.connect(path, isolation_level=None)
    [script] = fenced(GUIDE, "sql")
    for text in split_script(script):
        connection.execute(text).fetchall()
    shown = "SELECT status, retry_count, error_message FROM unified_queue"
    assert connection.execute(shown).fetchall() == [("pending", 1, "no space left")]

    connection.execute("UPDATE unified_queue SET lease_until = NULL")
    [program] = fenced(GUIDE, "python")
    assert run("-c", program) == "ingest /src/main.rs into projects\n"
    assert connection.execute(shown).fetchall() == [("done", 1, None)]
    connection.close()
