"""Adding something of which the index does not take all: it ends, and says so."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.unit.index.embeddings_server import EmbeddingsServer, refuse, running
from windrow.cli.knowledge import _tell
from windrow.queue.queue import Queue
from windrow.services.knowledge import AddOptions
from windrow.services.knowledge_runs import AddRun, run_add, run_refresh
from windrow.settings import Settings

PATIENCE_SECONDS = 60


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with running() as server:
        server.rule = poison
        yield server


def poison(body: dict[str, Any]) -> web.StreamResponse | None:
    if any("poison" in text for text in body["input"]):
        return refuse(400, "this is too long")
    return None


@pytest.fixture
def settings(sqlite_template: Path, tmp_path: Path, server: EmbeddingsServer) -> Settings:
    path = tmp_path / "jobs.db"
    shutil.copyfile(sqlite_template, path)
    return Settings(
        database_url=f"sqlite:///{path}",
        data_dir=str(tmp_path / "data"),
        embed_url=server.url,
        embed_model="small",
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("apple", "pear", "poison"):
        write(folder / f"{name}.md", f"# {name}\n\nAll about {name}.")
    return folder


def write(path: Path, text: str, at: int = 1_700_000_000) -> None:
    path.write_text(text)
    os.utime(path, (at, at))


async def add(settings: Settings, folder: Path) -> AddRun:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await run_add(settings, str(folder), AddOptions(), lambda _: None)


async def refresh(settings: Settings, folder: Path) -> AddRun:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await run_refresh(settings, str(folder), lambda _: None, tenant=None)


async def written(settings: Settings) -> int:
    """How many jobs the index had, ever."""
    async with Queue.open(settings.database_url) as queue:
        return len(await queue.list(kind="index.write"))


async def test_adding_ends_when_the_embedder_refuses_a_text_and_says_what_is_lost(
    settings: Settings, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = await add(settings, folder)

    assert done.lost is not None
    assert (done.lost.count, done.lost.refused) == (1, 1)
    assert "this is too long" in str(done.lost.why)
    assert done.info.counts is not None
    assert (done.info.counts.searchable, done.info.pending) == (2, 0)
    _tell(done, as_json=False)
    said = capsys.readouterr().err
    assert "1 document could not be indexed: the embedder does not take it" in said
    assert f"`windrow sources refresh {done.info.source.id}`" in said


async def test_refused_text_is_not_tried_again_before_it_changes_or_the_model_does(
    settings: Settings, folder: Path
) -> None:
    await add(settings, folder)
    count = await written(settings)

    os.utime(folder / "poison.md", (1_800_000_000, 1_800_000_000))  # read again, and the same
    again = await refresh(settings, folder)
    assert await written(settings) == count
    assert again.lost is not None

    write(folder / "poison.md", "# Better", 1_800_000_001)
    assert (await refresh(settings, folder)).lost is None
    assert await written(settings) == count + 1


async def test_refused_text_is_found_with_a_model_that_takes_it(
    settings: Settings, folder: Path, server: EmbeddingsServer
) -> None:
    await add(settings, folder)
    server.rule = None
    other = replace(settings, embed_model="large")

    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await refresh(other, folder)).lost is not None:
            pass  # until the switch has come: it is no part of the source
