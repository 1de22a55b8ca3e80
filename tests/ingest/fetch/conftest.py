"""One hostile server for a module, and a fetcher that may go there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.ingest.fetch.hostile import HostileServer
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.guard import Guard


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(guard=Guard(allow=["127.0.0.0/8"])) as fetcher:
        yield fetcher
