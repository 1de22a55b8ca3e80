"""Whole trees from the disk to results, with the real index and the real model: this repository,
and one that is generated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench.knowledge import make_tree
from windrow import Queue, Worker
from windrow.catalog import Catalog
from windrow.pipelines.index.context import space_of
from windrow.queue.job import Job
from windrow.search.request import SearchRequest
from windrow.services.indexing import open_index
from windrow.services.knowledge import AddOptions, add, list_sources
from windrow.services.searching import Searching
from windrow.services.working import open_own_handlers
from windrow.settings import Settings

ROOT = Path(__file__).parents[2]
# A question, how it is asked, and where the answer stands.
KNOWN = [
    ("class LeaseLost", "exact", "windrow/errors.py"),
    ("fuse rankings by reciprocal rank", "hybrid", "windrow/index/home.py"),
    ("tools for models over the Model Context Protocol", "hybrid", "guides/mcp.md"),
    ("move from SQLite to Postgres with windrow db copy", "hybrid", "guides/sqlite-to-postgres.md"),
    ("what happens to a slot when clocks change in spring", "semantic", "concepts.md"),
]


@asynccontextmanager
async def open_tree(template: Path, folder: Path) -> AsyncIterator[tuple[Settings, Queue]]:
    path = folder / "jobs.db"
    path.write_bytes(template.read_bytes())
    settings = Settings(database_url=f"sqlite:///{path}", data_dir=str(folder / "data"))
    async with Queue.open(settings.database_url) as queue:
        yield settings, queue


async def take_in(settings: Settings, queue: Queue, *folders: Path) -> list[Job]:
    """Add folders and do all that follows; the scans."""
    options = AddOptions(walk={"patterns": ["*.py", "*.md", "*.txt"]})
    jobs = [(await add(queue, str(one), options)).job_id for one in folders]
    async with open_own_handlers(settings, queue, ("knowledge", "index")) as handlers:
        await Worker(queue, handlers, concurrency=64).run(until_idle=True)
    return [await queue.get(job) for job in jobs]


async def check(settings: Settings, queue: Queue, *folders: Path) -> None:
    """All is searchable, each chunk is there once, and another look enqueues nothing."""
    catalog = Catalog(queue.database)
    counts = await catalog.documents.count()
    documents = sum(one.documents for one in counts)
    assert sum(one.searchable + one.skipped for one in counts) == documents
    [collection] = await catalog.collections.find()
    index = open_index(settings, "edge")
    assert await index.count(space_of(collection)) == sum(one.chunks for one in counts)
    await index.close()
    before = {info.name: sum(info.counts.values()) for info in await queue.queues()}
    again = await take_in(settings, queue, *folders)
    assert sum(job.result["unchanged"] for job in again) == documents
    after = {info.name: sum(info.counts.values()) for info in await queue.queues()}
    assert after == before | {"unified_queue": before["unified_queue"] + len(again)}
    assert await queue.list(state="failed") == []


async def test_this_repository_is_taken_in_and_known_things_are_found(
    sqlite_template: Path, tmp_path: Path
) -> None:
    folders = (ROOT / "src", ROOT / "docs")
    async with open_tree(sqlite_template, tmp_path) as (settings, queue):
        await take_in(settings, queue, *folders)

        async with Searching(settings, queue) as searching:
            for question, mode, place in KNOWN:
                request = SearchRequest(query=question, mode=mode, limit=5)  # type: ignore[arg-type]
                found = [one.uri for one in (await searching.search(request)).results]
                assert any(uri.startswith(place) for uri in found), (question, found)
        await check(settings, queue, *folders)
        assert {info.source.title for info in await list_sources(queue)} == {"src", "docs"}


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_tree_of_twenty_thousand_files_is_taken_in_whole_and_once(
    sqlite_template: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    make_tree(tree, range(20_000))
    async with open_tree(sqlite_template, tmp_path) as (settings, queue):
        [scan] = await take_in(settings, queue, tree)
        assert scan.result["new"] == 20_000
        await check(settings, queue, tree)
