"""kill -9 of the owner while it indexes: nothing is lost and nothing is doubled (N13). A shorter
one, of files, from the scan to the index, is in tests/knowledge."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.indexing.helpers import Library
from windrow.catalog import Catalog
from windrow.clock import FakeClock
from windrow.pipelines.index.context import space_of
from windrow.queue.job import JobState
from windrow.queue.opening import open_store
from windrow.queue.queue import Queue
from windrow.search.request import SearchRequest
from windrow.services.indexing import open_index
from windrow.services.searching import search
from windrow.settings import Settings

DOCUMENTS = 300


@pytest.mark.chaos
@pytest.mark.parametrize("kills", [1, 4])
async def test_killed_owner_loses_and_doubles_nothing(
    sqlite_template: Path, tmp_path: Path, kills: int
) -> None:
    path = tmp_path / "jobs.db"
    path.write_bytes(sqlite_template.read_bytes())
    settings = Settings(database_url=f"sqlite:///{path}", data_dir=str(tmp_path / "data"))
    async with Queue.open(settings.database_url) as queue:
        library = Library(queue, None)  # type: ignore[arg-type]
        for number in range(DOCUMENTS):
            await library.put(f"{number}.md", f"# Part\n\nserial{number} is about apples")
        for kill in range(1, kills + 1):
            await _killed_when_done(settings, queue, kill * DOCUMENTS // (kills + 2))
        await _worked_off(settings, queue)

        counts = await queue.counts("index")
        assert counts.get(JobState.FAILED, 0) == 0
        catalog = Catalog(queue.database)
        documents = await catalog.documents.page(None, "docs")
        assert sum(one.is_searchable for one in documents) == DOCUMENTS
        [collection] = await catalog.collections.find()
        index = open_index(settings, "edge")
        assert await index.count(space_of(collection)) == DOCUMENTS
        await index.close()
    for number in range(0, DOCUMENTS, 50):
        answer = await search(settings, SearchRequest(query=f"serial{number}", mode="keyword"))
        assert [one.uri for one in answer.results] == [f"{number}.md"]


async def _killed_when_done(settings: Settings, queue: Queue, jobs: int) -> None:
    """An owner that is killed when so many jobs in all are completed."""
    process = await _start(settings)
    while (await queue.counts("index")).get(JobState.COMPLETED, 0) < jobs:
        await asyncio.sleep(0.005)
        assert process.returncode is None
    process.send_signal(signal.SIGKILL)
    await process.wait()


async def _worked_off(settings: Settings, queue: Queue) -> None:
    # What the killed ones had is theirs until their leases are over: nobody waits for that here.
    later = FakeClock(datetime.now(UTC) + timedelta(minutes=5))
    store = await open_store(settings.database_url, clock=later)
    await store.rescue_jobs()
    await store.close()
    process = await _start(settings, "--until-idle")
    assert await process.wait() == 0


async def _start(settings: Settings, *options: str) -> asyncio.subprocess.Process:
    environment = {
        **os.environ,
        "WINDROW_DATABASE_URL": settings.database_url,
        "WINDROW_DATA_DIR": settings.data_dir,
    }
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "windrow", "worker", "index", "--concurrency", "8", *options),
        env=environment,
    )
