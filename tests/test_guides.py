"""Programs of the guides that need a folder or a database of their own run as they are printed."""

from __future__ import annotations

import asyncio
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from tests.conftest import CopyDatabase
from tests.test_docs import ROOT, fenced
from windrow import Queue

QUICKSTART = ROOT / "docs/quickstart.md"
GUIDES = ROOT / "docs/guides"
# What PgQueuer 1.6 keeps of a job, as far as the program reads it.
PGQUEUER = """
    CREATE TYPE pgqueuer_status AS ENUM ('queued', 'picked', 'successful', 'failed');
    CREATE TABLE pgqueuer (
        id bigint PRIMARY KEY, priority integer NOT NULL, entrypoint text NOT NULL, payload bytea,
        status pgqueuer_status NOT NULL, execute_after timestamptz NOT NULL, dedupe_key text);
    INSERT INTO pgqueuer VALUES
        (1, 0, 'mail', '{"to": "Ada"}', 'queued', now(), NULL),
        (2, 3, 'mail', NULL, 'picked', now(), 'welcome'),
        (3, 0, 'mail', NULL, 'queued', now() + interval '1 hour', NULL),
        (4, 0, 'mail', NULL, 'failed', now(), NULL);
"""


@pytest.fixture
def database(
    copy_database: CopyDatabase, postgres_template: str, monkeypatch: pytest.MonkeyPatch
) -> str:
    url = copy_database(postgres_template)
    monkeypatch.setenv("WINDROW_DATABASE_URL", url)
    return url


def test_the_quickstart_runs_as_printed(tmp_path: Path) -> None:
    scripts = re.findall(r"(?<!-->)\n```sh\n(.*?)```", QUICKSTART.read_text("utf-8"), re.DOTALL)
    [handlers] = fenced(QUICKSTART, "python")
    (tmp_path / "hello.py").write_text(handlers, "utf-8")
    printed = subprocess.run(
        ["sh", "-ec", "\n".join(scripts)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "WINDROW_DATA_DIR": str(tmp_path / "data"),
        },
    ).stdout
    assert "1. Leases" in printed
    assert re.search(r"greet +completed +2, 1 failed ", printed)


def test_a_job_and_a_row_are_committed_together(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("postgres.md", tmp_path)
    assert capsys.readouterr().out == "ready\n"


def test_dead_rows_are_counted_by_hand(database: str) -> None:
    look, _ = fenced(ROOT / "docs/operations/vacuum.md", "sql")
    assert asyncio.run(execute(database, look)) == "SELECT 5"


def test_jobs_of_pgqueuer_are_moved_once(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(execute(database, PGQUEUER))

    run("coming-from-pgqueuer.md", tmp_path)
    run("coming-from-pgqueuer.md", tmp_path)

    assert capsys.readouterr().out == "moved 3\nmoved 0\n"
    with Queue.sync(database) as queue:
        jobs = {job.priority: job for job in queue.list(kind="mail", state="ready")}
        assert [job.state for job in queue.list(kind="mail", state="scheduled")] == ["scheduled"]
    assert (jobs[5].payload, jobs[8].unique) == ({"to": "Ada"}, "welcome")
    assert asyncio.run(execute(database, "DELETE FROM pgqueuer")) == "DELETE 1"
    asyncio.run(execute(database, "DROP TABLE pgqueuer; DROP TYPE pgqueuer_status"))


def run(guide: str, folder: Path) -> None:
    """Run the program of a guide here: a process of its own would cost a second."""
    [program] = fenced(GUIDES / guide, "python")
    path = folder / "program.py"
    path.write_text(program, "utf-8")
    runpy.run_path(str(path))


async def execute(url: str, statements: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        return str(await connection.execute(statements))
    finally:
        await connection.close()
