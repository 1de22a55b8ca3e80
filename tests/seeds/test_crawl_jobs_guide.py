"""The guide for those who come from crawl_jobs: what it prints is run (A1)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import asyncpg

from tests.conftest import MakeDatabase
from tests.processes import ROOT, run
from tests.seeds.documents import split_script
from tests.seeds.test_crawl_jobs import enqueue, look
from tests.test_docs import fenced

DIALECT = "crawl_jobs"
GUIDE = Path(__file__).parent.parent.parent / "docs/guides/coming-from-crawl-jobs.md"


async def test_statements_of_the_guide_run_as_printed(db: Any) -> None:
    [script] = fenced(GUIDE, "sql")
    for text in split_script(script):
        await db.fetch(text)

    [row] = await db.fetch("SELECT status, progress_percentage, retry_count FROM crawl_jobs")
    assert tuple(row) == ("completed", 40, 0)


async def test_worker_of_the_guide_runs_as_printed(db: Any, dialect_url: str) -> None:
    [program] = fenced(GUIDE, "python")
    job_id = await enqueue(db, source_id="docs")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"WINDROW_DATABASE_URL": dialect_url},
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 60)

    assert printed.decode() == "crawl https://example.org for docs\n"
    assert (await look(db, job_id))["status"] == "completed"


async def test_rows_of_the_table_itself_are_moved_as_the_guide_says(
    make_database: MakeDatabase, postgres_template: str
) -> None:
    url = make_database(postgres_template)
    db = await asyncpg.connect(url)
    await db.execute("""
        CREATE TYPE job_status AS ENUM
            ('pending', 'processing', 'completed', 'failed', 'cancelled', 'paused');
        CREATE TABLE crawl_jobs (
            id uuid, payload jsonb, priority int, status job_status, worker_id uuid,
            progress_percentage int, created_at timestamptz, started_at timestamptz,
            completed_at timestamptz, last_heartbeat timestamptz, retry_count int, max_retries int,
            error_message text, source_id text, user_id uuid);
        INSERT INTO crawl_jobs
        SELECT gen_random_uuid(), '{"a": 1}', 3, status, gen_random_uuid(), 30,
               now() - interval '1 hour', now() - interval '50 minutes', now(), now(), 1, 3, 'old',
               'docs', gen_random_uuid()
          FROM unnest(enum_range(NULL::job_status)) AS status;
        ALTER TABLE crawl_jobs RENAME TO crawl_jobs_before;
    """)
    windrow = run(
        *("db", "dialect", "install", "crawl_jobs"),
        cwd=ROOT,
        environment=os.environ | {"WINDROW_DATABASE_URL": url},
    )
    assert windrow.stdout == "installed crawl_jobs\n"
    await db.execute("INSERT INTO crawl_jobs SELECT * FROM crawl_jobs_before")

    same = """
        SELECT id, payload, priority, status, progress_percentage, created_at, started_at,
               retry_count, max_retries, source_id, user_id FROM {} ORDER BY id
    """
    moved, before = [
        await db.fetch(same.format(name)) for name in ("crawl_jobs", "crawl_jobs_before")
    ]
    await db.close()
    assert [tuple(row) for row in moved] == [tuple(row) for row in before]
