"""A queue on BullMQ for each test, and a way to Redis beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from windrow import Queue


@pytest.fixture
def url(make_bullmq_url: Callable[[], str]) -> str:
    return make_bullmq_url()


@pytest.fixture
async def queue(url: str) -> AsyncIterator[Queue]:
    async with Queue.open(url) as opened:
        yield opened
