"""The guide for those who come from processing_jobs: what it prints is run (J1)."""

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
from tests.seeds.test_processing_jobs import enqueue, shown
from tests.test_docs import fenced

DIALECT = "processing_jobs"
GUIDE = Path(__file__).parent.parent.parent / "docs/guides/coming-from-processing-jobs.md"


async def test_j1_the_statements_of_the_guide_run_as_printed(db: Any) -> None:
    [script] = fenced(GUIDE, "sql")
    for text in split_script(script):
        await db.fetch(text)

    [row] = await db.fetch("select status, attempts, last_error from processing_jobs")
    assert tuple(row) == ("done", 1, None)


async def test_j1_the_worker_of_the_guide_runs_as_printed(db: Any, dialect_url: str) -> None:
    [program] = fenced(GUIDE, "python")
    job_id = await enqueue(db, payload={"path": "a.ogg"})
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"WINDROW_DATABASE_URL": dialect_url},
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 60)

    row = await shown(db, job_id)
    assert printed.decode() == f"analyze a.ogg of call {row['call_id']}\n"
    assert row["status"] == "done"


async def test_j1_rows_of_the_table_itself_are_moved_as_the_guide_says(
    make_database: MakeDatabase, postgres_template: str
) -> None:
    url = make_database(postgres_template)
    db = await asyncpg.connect(url)
    await db.execute(
        "create table processing_jobs (id uuid, org_id uuid, call_id uuid, stage text, "
        "status text, payload jsonb, attempts int, max_attempts int, available_at timestamptz, "
        "locked_at timestamptz, locked_by text, last_error text, created_at timestamptz, "
        "updated_at timestamptz)"
    )
    await db.execute(
        "insert into processing_jobs select gen_random_uuid(), gen_random_uuid(), "
        "gen_random_uuid(), 'analyze', s, '{}', 1, 5, now(), case s when 'queued' then null else "
        "now() end, null, 'old', now(), now() "
        "from unnest('{queued,processing,done,failed}'::text[]) s"
    )
    await db.execute("alter table processing_jobs rename to processing_jobs_before")
    windrow = run(
        *("db", "dialect", "install", "processing_jobs"),
        cwd=ROOT,
        environment=os.environ | {"WINDROW_DATABASE_URL": url},
    )
    assert windrow.stdout == "installed processing_jobs\n"
    await db.execute("insert into processing_jobs select * from processing_jobs_before")

    same = "select id, org_id, call_id, stage, status, attempts, created_at from {} order by id"
    moved, before = [
        await db.fetch(same.format(name)) for name in ("processing_jobs", "processing_jobs_before")
    ]
    await db.close()
    assert [tuple(row) for row in moved] == [tuple(row) for row in before]
