"""Fixtures for pytest. In a conftest.py: `pytest_plugins = ["windrow.testing.plugin"]`.

They are named there rather than found by themselves, so that test suites which happen to have
Windrow installed load nothing. The fixtures are plain ones: a queue on SQLite belongs to no event
loop, so it does not matter which plugin runs the async tests, or whether there is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from windrow.clock import FakeClock
from windrow.queue.queue import Queue
from windrow.queue.sync_queue import SyncQueue


@pytest.fixture
def windrow_clock() -> FakeClock:
    """The time of `windrow_queue`: it begins now and stands still until `advance(seconds)`."""
    return FakeClock(datetime.now(UTC))


@pytest.fixture
def windrow_url(tmp_path: Path) -> str:
    """Where the queue of this test is: for code that opens it by its URL."""
    return f"sqlite:///{tmp_path / 'windrow.db'}"


@pytest.fixture
def windrow_queue(windrow_url: str, windrow_clock: FakeClock) -> Iterator[Queue]:
    """A fresh queue on a file of its own."""
    # With a factory the runner leaves alone the loop that another plugin has made current.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        queue = runner.run(Queue.open(windrow_url, clock=windrow_clock).open())
        try:
            yield queue
        finally:
            runner.run(queue.close())


@pytest.fixture
def windrow_sync_queue(windrow_url: str, windrow_clock: FakeClock) -> Iterator[SyncQueue]:
    """The same for code that blocks, on the same file."""
    with Queue.sync(windrow_url, clock=windrow_clock) as queue:
        yield queue
