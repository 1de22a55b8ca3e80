"""A queue on BullMQ for each test, and jobs that others put there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import bullmq
import pytest

from windrow import Queue
from windrow.queue.bullmq.location import parse_url


async def add_theirs(url: str, queue: str, count: int = 1, **options: Any) -> list[str]:
    """Jobs as producers in Node make them, by the same package in Python; their ids in BullMQ."""
    location = parse_url(url)
    connection = {"connection": location.redis_url, "prefix": location.prefix}
    theirs = bullmq.Queue(queue, connection)
    added = [await theirs.add("from-node", {"n": n}, options) for n in range(count)]
    await theirs.close()
    return [job.id for job in added]


@pytest.fixture
def url(make_bullmq_url: Callable[[], str]) -> str:
    return make_bullmq_url()


@pytest.fixture
async def queue(url: str) -> AsyncIterator[Queue]:
    async with Queue.open(url) as opened:
        yield opened
