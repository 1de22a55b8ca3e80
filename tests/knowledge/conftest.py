"""A tree, a queue and the handlers of items, on each store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.conftest import run_sql
from tests.knowledge.desk import Desk
from windrow import Queue
from windrow.clock import Clock
from windrow.queue import kinds
from windrow.queue.store import Store

__all__ = ["run_sql"]  # a fixture the tests here use too


@pytest.fixture
def clock() -> Clock:
    """Workers run by the database's own time."""
    return Clock()


@pytest.fixture
def queue(store: Store) -> Queue:
    return Queue(store)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    top.mkdir()
    return top


@pytest.fixture
def desk(queue: Queue, tree: Path) -> Desk:
    return Desk(queue, tree)


@pytest.fixture(autouse=True)
def own_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the handlers of one test declare is not there in the next."""
    monkeypatch.setattr(kinds, "_declared", {})
