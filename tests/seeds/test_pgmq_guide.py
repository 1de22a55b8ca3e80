"""The guide for those who come from PGMQ or Supabase Queues: what it prints is run (P1)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pgmq
import pytest

from tests.conftest import MakeDatabase
from tests.seeds.documents import split_script
from tests.seeds.messages import create, send
from tests.test_docs import fenced
from windrow.errors import StoreError
from windrow.queue.opening import open_store

DIALECT = "pgmq"
GUIDE = Path(__file__).parent.parent.parent / "docs/guides/coming-from-pgmq.md"
MOVE, CALLS = fenced(GUIDE, "sql")
CLIENT, HANDLER = fenced(GUIDE, "python")


async def run(url: str, *command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"WINDROW_DATABASE_URL": url},
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    return printed.decode()


async def test_p1_a_queue_of_pgmq_is_moved_as_the_guide_says(
    make_database: MakeDatabase, postgres_template: str
) -> None:
    """With what is in it, and its numbers."""
    url = make_database(postgres_template)
    db = await asyncpg.connect(url)
    store = await open_store(url)
    try:
        await db.execute(pgmq.get_embedded_install_sql())
        await db.execute("SET search_path = public")
        await create(db, "scrape_jobs")
        for n in range(4):
            await send(db, "scrape_jobs", {"video_id": n}, n=n)
        await db.execute("SELECT pgmq.archive('scrape_jobs', 2::bigint)")
        await db.execute("SELECT pgmq.read('scrape_jobs', 3600, 1)")
        before = await db.fetch("SELECT * FROM pgmq.q_scrape_jobs ORDER BY msg_id")
        with pytest.raises(StoreError, match="a schema pgmq already"):
            await store.install_dialect("pgmq")
        await db.execute("ALTER SCHEMA pgmq RENAME TO pgmq_before")
        for line in fenced(GUIDE, "sh")[0].splitlines():
            await run(url, "-m", *line.partition("#")[0].split())

        for text in split_script(MOVE):
            await db.execute(text)

        # A read of PGMQ's is no lease: until then the message is delayed.
        assert await db.fetch("SELECT * FROM pgmq.q_scrape_jobs ORDER BY msg_id") == before
        assert [row["msg_id"] for row in before] == [1, 3, 4]
        assert await send(db, "scrape_jobs") == 5
    finally:
        await store.close()
        await db.close()


async def test_p1_the_calls_of_the_guide_run_as_printed(db: Any) -> None:
    await create(db, "scrape_jobs")
    sent, read, archived, live, kept, told = [await db.fetch(text) for text in split_script(CALLS)]
    assert [row["msg_id"] for row in read] == [row[0] for row in sent] == [1]
    assert archived[0][0] is True
    assert ([*live], [row["msg_id"] for row in kept]) == ([], [1])
    assert (told[0]["queue_length"], told[0]["total_messages"]) == (0, 1)


async def test_p1_the_programs_of_the_guide_run_as_printed(
    db: Any, dialect_url: str, tmp_path: Path
) -> None:
    await run(dialect_url, "-c", CLIENT)
    assert await db.fetchval("SELECT count(*) FROM pgmq.a_enrich_jobs") == 1
    await create(db, "scrape_jobs")
    await send(db, "scrape_jobs", {"video_id": 7})
    (tmp_path / "guide_handlers.py").write_text(HANDLER)
    runner = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = "
        "['windrow', 'worker', 'guide_handlers', '--until-idle']; "
        "from windrow.cli.main import main; main()"
    )
    assert "7" in (await run(dialect_url, "-c", runner)).split()
    assert await db.fetchval("SELECT count(*) FROM pgmq.a_scrape_jobs") == 1


async def test_p4_what_the_guide_calls_better_is_there(db: Any) -> None:
    await create(db, "scrape_jobs")
    await db.execute("SELECT pgmq.set_max_reads('scrape_jobs', 5)")
    await send(db, "scrape_jobs", {"video_id": 7})
    for _ in range(6):
        await db.fetch("SELECT * FROM pgmq.read('scrape_jobs', 0, 1)")
    [letter] = await db.fetch("SELECT * FROM pgmq.dead_letters('scrape_jobs')")
    assert (letter["msg_id"], letter["read_ct"]) == (1, 5)
