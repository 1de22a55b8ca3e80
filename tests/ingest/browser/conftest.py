"""One Chromium for all tests here, and a site for each."""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.web.site import Site, SiteServer
from windrow.ingest.browser.browser import EXECUTABLE, Browser
from windrow.ingest.fetch.guard import Guard

CHROMIUM = os.environ.get("WINDROW_CHROMIUM") or EXECUTABLE
MISSING = (
    f"there is no Chromium at {CHROMIUM}, so nothing was tested with a browser "
    "(Debian, Ubuntu: apt install chromium; .ci/run does it where it may)"
)


@pytest.fixture(scope="module")
def chromium() -> str:
    if not Path(CHROMIUM).is_file():
        warnings.warn(MISSING, stacklevel=1)
        pytest.skip(MISSING)
    return CHROMIUM


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with Browser(Guard(allow=["127.0.0.0/8"]), executable=chromium) as browser:
        yield browser


@pytest.fixture(scope="module")
def site_server() -> Iterator[SiteServer]:
    with SiteServer() as server:
        yield server


@pytest.fixture
def site(site_server: SiteServer) -> Site:
    return site_server.site()
