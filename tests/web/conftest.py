"""A site for a test, on the one server of its module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.site import Site, SiteServer


@pytest.fixture(scope="session")
def site_server() -> Iterator[SiteServer]:
    with SiteServer() as server:
        yield server


@pytest.fixture
def site(site_server: SiteServer) -> Site:
    return site_server.site()
