"""The guide for those who come from NuQ: what it prints is run (N11)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from tests.seeds import nuq
from tests.seeds.documents import split_script
from tests.test_docs import fenced

DIALECT = "nuq"
GUIDE = Path(__file__).parent.parent.parent / "docs/guides/coming-from-nuq.md"


async def test_the_statements_of_the_guide_run_as_printed_n11(db: Any) -> None:
    script, sessions = fenced(GUIDE, "sql")
    *writes, group, done = [await db.fetch(text) for text in split_script(script)]
    assert [len(rows) for rows in writes] == [0, 0, 1, 1]
    assert [row["status"] for row in group] == ["completed"]
    assert [row["status"] for row in done] == ["queued"]
    assert await db.fetch(sessions) == []


async def test_the_worker_of_the_guide_runs_as_printed_n11(db: Any, dialect_url: str) -> None:
    [program] = fenced(GUIDE, "python")
    group = await nuq.add_group(db, nuq.OWNER)
    job_id = await nuq.add(db, group=group)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"WINDROW_DATABASE_URL": dialect_url},
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    assert printed.decode().splitlines() == ["a crawl has finished"]
    assert (await nuq.see(db, job_id))["status"] == "completed"
