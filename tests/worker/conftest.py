"""Workers run by the database's own time: a clock that stands still would stop them."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import run_sql
from windrow import Queue
from windrow.clock import Clock
from windrow.queue import kinds
from windrow.queue.store import Store

__all__ = ["run_sql"]  # a fixture the tests here use too


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(store: Store) -> Queue:
    return Queue(store)


@pytest.fixture(autouse=True)
def own_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the handlers of one test declare is not there in the next."""
    monkeypatch.setattr(kinds, "_declared", {})
