"""A site for a test, on the one server of its module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.site import Site, SiteServer
from windrow import Queue
from windrow.clock import Clock
from windrow.queue import kinds
from windrow.queue.store import Store


@pytest.fixture(scope="session")
def site_server() -> Iterator[SiteServer]:
    with SiteServer() as server:
        yield server


@pytest.fixture
def site(site_server: SiteServer) -> Site:
    return site_server.site()


@pytest.fixture
def clock() -> Clock:
    """Workers run by the database's own time."""
    return Clock()


@pytest.fixture
def queue(store: Store) -> Queue:
    return Queue(store)


@pytest.fixture(autouse=True)
def own_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the handlers of one test declare is not there in the next."""
    monkeypatch.setattr(kinds, "_declared", {})
