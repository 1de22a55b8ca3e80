"""Databases for tests that move jobs between them, and a server for those that take it away."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.builders import counted, tallied
from tests.conftest import CopyDatabase
from tests.postgres_server import TEST_SETTINGS, PostgresServer
from windrow import Queue
from windrow.queue.opening import open_store
from windrow.queue.store import Store

DIRECTIONS = ("sqlite to postgres", "postgres to sqlite")


@pytest.fixture(params=DIRECTIONS)
def urls(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    sqlite_template: Path,
    postgres_template: str,
    copy_database: CopyDatabase,
) -> tuple[str, str]:
    """A source and a target, both migrated."""
    path = tmp_path / "jobs.db"
    shutil.copyfile(sqlite_template, path)
    pair = (f"sqlite:///{path}", copy_database(postgres_template))
    return pair if request.param == DIRECTIONS[0] else (pair[1], pair[0])


@pytest.fixture
async def both(urls: tuple[str, str]) -> AsyncIterator[tuple[Store, Store]]:
    async with AsyncExitStack() as stack:
        stores = []
        for url in urls:
            store = await open_store(url)
            stack.push_async_callback(store.close)
            stores.append(store)
        yield stores[0], stores[1]
        for store in stores:
            assert await tallied(store) == await counted(store)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A Postgres of the test's own, which it may stop; what was committed outlives a crash."""
    server = PostgresServer(settings={**TEST_SETTINGS, "synchronous_commit": "on"})
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
async def queue(server: PostgresServer) -> AsyncIterator[Queue]:
    async with Queue.open(server.url(), migrate=True) as opened:
        yield opened
