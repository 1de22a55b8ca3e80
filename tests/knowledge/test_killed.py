"""A worker that is killed while it ingests: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from windrow import Queue
from windrow.pipelines.knowledge.items import QUEUE, new_item

FILES = 300
PATIENCE = 120.0


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.chaos)])
async def test_killed_ingestion_loses_and_doubles_nothing(tmp_path: Path, kills: int) -> None:
    folder = tmp_path / "docs"
    for number in range(FILES):
        path = folder / f"d{number % 7}" / f"f{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# File {number}\n\nwords of {number}")
        os.utime(path, (1_700_000_000, 1_700_000_000))
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with asyncio.timeout(PATIENCE), Queue.open(url) as queue:
        scan = new_item("folder", "ingest", "default", {"folder_path": str(folder)})
        await queue.enqueue_many([scan])
        for number in range(kills):
            worker = _worker(url, tmp_path)
            await _until(queue, (number + 1) * FILES // (kills + 2))
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            _let_leases_run_out(tmp_path / "jobs.db")
        last = _worker(url, tmp_path, "--until-idle")
        assert await asyncio.to_thread(last.wait) == 0

        [counts] = await queue.store.count_documents()
        assert (counts.documents, counts.searchable, counts.pending) == (FILES, FILES, 0)
        documents = await queue.store.list_documents(None, "default", limit=FILES + 1)
        assert len({one.uri for one in documents}) == len(documents) == FILES
        contents = {one.content for one in documents}
        assert set(await queue.store.list_contents(None, "default", limit=2 * FILES)) == contents
        assert await queue.list(queue=QUEUE, state="failed") == []


def _worker(url: str, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "WINDROW_DATABASE_URL": url,
        "WINDROW_DATA_DIR": str(folder / "data"),
    }
    command = [sys.executable, "-m", "windrow", "worker", *words]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


async def _until(queue: Queue, documents: int) -> None:
    """Wait until so many documents are known."""
    while True:
        counts = await queue.store.count_documents()
        if counts and counts[0].documents >= documents:
            return
        await asyncio.sleep(0.005)


def _let_leases_run_out(database: Path) -> None:
    """What a killed worker held is free when its lease runs out, in five minutes; the test does not
    wait for that."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE windrow_lease SET expires_at = 0")
