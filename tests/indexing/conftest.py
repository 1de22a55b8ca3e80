from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.indexing.helpers import Library
from windrow.index.edge import EdgeIndex
from windrow.queue.queue import Queue
from windrow.worker import worker


@pytest.fixture
async def library(store_url: str, tmp_path: Path) -> AsyncIterator[Library]:
    """An empty library, on each store, with the embedded index."""
    index = EdgeIndex(tmp_path / "index")
    async with Queue.open(store_url) as queue:
        yield Library(queue, index)
    await index.close()


@pytest.fixture(autouse=True)
def held_jobs_are_left_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a worker that runs until it is idle: nobody here lets go of what they wait for."""
    monkeypatch.setattr(worker, "HELD_SECONDS", 0.2)
