"""A database of the test's own, and the Postgres store on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import CopyDatabase
from windrow.clock import FakeClock
from windrow.queue.postgres.store import PostgresStore


@pytest.fixture
def url(copy_database: CopyDatabase, postgres_template: str) -> str:
    return copy_database(postgres_template)


@pytest.fixture
async def store(url: str, clock: FakeClock) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(url, clock=clock)
    yield opened
    await opened.close()
