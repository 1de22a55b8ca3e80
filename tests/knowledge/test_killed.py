"""A worker that is killed while it ingests: nothing is lost, and nothing is there twice (N13)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.processes import ROOT, Command
from windrow import Queue
from windrow.catalog import Catalog
from windrow.clock import FakeClock
from windrow.pipelines.index.context import space_of
from windrow.pipelines.index.payloads import QUEUE as INDEX
from windrow.pipelines.knowledge.context import Knowledge
from windrow.pipelines.knowledge.handlers import knowledge_handlers
from windrow.pipelines.knowledge.items import QUEUE, new_item
from windrow.queue.job import DEFAULT_MAX_CRASHES, Job
from windrow.queue.opening import open_store
from windrow.search.request import SearchRequest
from windrow.services.indexing import find_home, open_index
from windrow.services.searching import search
from windrow.settings import Settings
from windrow.testing import drain
from windrow.worker.worker import DEFAULT_LEASE

FILES = 300
# A job that is hit by as many kills as it has crashes fails, as it should.
MOST_KILLS = DEFAULT_MAX_CRASHES - 1
PATIENCE = 240.0


@pytest.mark.parametrize("kills", [1, pytest.param(MOST_KILLS, marks=pytest.mark.chaos)])
async def test_killed_ingestion_loses_and_doubles_nothing(
    store_url: str, tmp_path: Path, kills: int
) -> None:
    folder = tmp_path / "docs"
    _make_files(folder)
    settings = Settings(database_url=store_url, data_dir=str(tmp_path / "data"))
    seed = random.randrange(1_000_000)
    print(f"kills at the moments of seed {seed}")
    moments = sorted(random.Random(seed).sample(range(1, 2 * FILES), kills))
    async with asyncio.timeout(PATIENCE), Queue.open(store_url) as queue:
        await _enqueue_scan(queue, folder)
        for moment in moments:
            worker = _worker(settings)
            await _until(queue, moment)
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            await _let_leases_run_out(store_url)
        await _work_off(settings)

        await _check_documents(queue)
        await _check_index(queue, settings)
        await _enqueue_scan(queue, folder)
        # The server may commit a claim of the killed worker after its leases were looked at. Such
        # a job comes back now, with a crash, and changes nothing.
        ran = await drain(queue, knowledge_handlers(Knowledge(queue)))
        [second] = [job for job in ran if job.crashes == 0]
        assert second.result["unchanged"] == FILES
        await _check_documents(queue)
        assert await queue.list(queue=QUEUE, state="failed") == []
        assert await queue.list(queue=INDEX, state="failed") == []


async def test_add_after_a_killed_add_says_what_it_waits_for_and_not_for_long(
    store_url: str, tmp_path: Path
) -> None:
    folder, log = tmp_path / "docs", tmp_path / "log"
    _make_files(folder)
    settings = Settings(database_url=store_url, data_dir=str(tmp_path / "data"))
    async with asyncio.timeout(PATIENCE), Queue.open(store_url) as queue:
        killed = _windrow(settings, "add", str(folder), "--quiet")
        held: Sequence[Job] = []
        while not held:
            killed.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.005)
            killed.send_signal(signal.SIGSTOP)
            held = await queue.list(queue=QUEUE, state="active", limit=FILES)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        longest = max(one.lease_expires_at for one in held if one.lease_expires_at)
        assert longest - datetime.now(UTC) < timedelta(seconds=DEFAULT_LEASE + 1)

        second = _windrow(settings, "add", str(folder), "--quiet", log=log)
        while "waiting for job" not in (log.read_text() if log.exists() else ""):
            assert second.poll() is None, log.read_text()
            await asyncio.sleep(0.05)
        await _let_leases_run_out(store_url)
        assert "300 documents" in await asyncio.to_thread(second.communicate)

        said = log.read_text()
        assert f":{killed.pid} is gone and its lease lasts until {longest:%H:%M:%S} UTC" in said
        assert any(one.id in said for one in held)
        assert said.count("waiting for job") == 1


def _make_files(folder: Path) -> None:
    for number in range(FILES):
        path = folder / f"d{number % 7}" / f"f{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# File {number}\n\nserial{number} has its words")
        os.utime(path, (1_700_000_000, 1_700_000_000))


async def _enqueue_scan(queue: Queue, folder: Path) -> None:
    await queue.enqueue_many(
        [new_item("folder", "ingest", "default", {"folder_path": str(folder)})]
    )


async def _check_documents(queue: Queue) -> None:
    """Each file has one document, and each of these a content that is no other's."""
    catalog = Catalog(queue.database)
    [counts] = await catalog.documents.count()
    assert (counts.documents, counts.searchable, counts.pending) == (FILES, FILES, 0)
    documents = await catalog.documents.page(None, "default", limit=FILES + 1)
    assert len({one.uri for one in documents}) == len(documents) == FILES
    contents = {one.content for one in documents}
    assert set(await catalog.contents.page(None, "default", limit=2 * FILES)) == contents
    assert len(contents) == FILES


async def _check_index(queue: Queue, settings: Settings) -> None:
    """The chunks of each content are in the index, and nothing else is."""
    [collection] = await Catalog(queue.database).collections.find()
    index = open_index(settings, await find_home(settings))
    assert await index.count(space_of(collection)) == FILES
    await index.close()
    for number in range(0, FILES, 60):
        answer = await search(settings, SearchRequest(query=f"serial{number}", mode="keyword"))
        assert [one.title for one in answer.results] == [f"File {number}"]


def _worker(settings: Settings, *options: str) -> Command:
    return _windrow(settings, "worker", *options)


def _windrow(settings: Settings, *words: str, log: Path | None = None) -> Command:
    environment = {
        **os.environ,
        "WINDROW_DATABASE_URL": settings.database_url,
        "WINDROW_DATA_DIR": settings.data_dir,
    }
    return Command(*words, cwd=ROOT, environment=environment, log=log)


async def _work_off(settings: Settings) -> None:
    last = _worker(settings, "--until-idle")
    assert await asyncio.to_thread(last.wait) == 0


async def _until(queue: Queue, moment: int) -> None:
    """Wait until so much is done: a file that is known counts once, one that can be found twice."""
    while True:
        counts = await Catalog(queue.database).documents.count()
        if counts and counts[0].documents + counts[0].searchable >= moment:
            return
        await asyncio.sleep(0.005)


async def _let_leases_run_out(url: str) -> None:
    """What a killed worker held is free when its lease expires, in half a minute; the test does
    not wait for that."""
    store = await open_store(url, clock=FakeClock(datetime.now(UTC) + timedelta(minutes=10)))
    while await store.rescue_jobs():
        pass
    await store.close()
