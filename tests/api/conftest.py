"""One server for a module, and sites for its tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.server import Server
from tests.web.site import Site, SiteServer


@pytest.fixture(scope="session")
def site_server() -> Iterator[SiteServer]:
    with SiteServer() as server:
        yield server


@pytest.fixture
def site(site_server: SiteServer) -> Site:
    return site_server.site()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("served")) as server:
        yield server
