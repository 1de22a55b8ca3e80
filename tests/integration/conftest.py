"""Fixtures of the tests that move jobs between databases."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.builders import counted, tallied
from tests.conftest import MakeDatabase
from windrow.queue.store import Store, open_store

DIRECTIONS = ("sqlite to postgres", "postgres to sqlite")


@pytest.fixture(params=DIRECTIONS)
def urls(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    sqlite_template: Path,
    postgres_template: str,
    make_database: MakeDatabase,
) -> tuple[str, str]:
    """A source and a target, both migrated."""
    path = tmp_path / "jobs.db"
    shutil.copyfile(sqlite_template, path)
    pair = (f"sqlite:///{path}", make_database(postgres_template))
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
