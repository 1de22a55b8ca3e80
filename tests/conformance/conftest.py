"""What every conformance test is followed by: the tally must be exact, whatever was done."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.builders import counted, tallied
from windrow.queue.store import Store


@pytest.fixture
async def store(store: Store) -> AsyncIterator[Store]:
    yield store
    assert await tallied(store) == await counted(store)
