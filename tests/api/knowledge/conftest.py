"""One server with a worker for all tests of the knowledge API, and who asks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.knowledge.asking import Asking
from tests.api.server import Server

KEYS = "k-acme=acme:write k-other=other:write k-reader=acme:read k-guide=guide:write k-root"
SECRET = "a secret of thirty-two characters"


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("knowing")
    with Server(
        folder,
        WINDROW_API_KEYS=KEYS,
        WINDROW_WEBHOOK_SECRET=SECRET,
        WINDROW_DATA_DIR=str(folder / "data"),
    ) as server:
        yield server


@pytest.fixture
def acme(server: Server) -> Iterator[Asking]:
    with Asking(server.url, "k-acme") as asking:
        yield asking


@pytest.fixture
def other(server: Server) -> Iterator[Asking]:
    with Asking(server.url, "k-other") as asking:
        yield asking


@pytest.fixture(scope="module")
def acme_of_module(server: Server) -> Iterator[Asking]:
    with Asking(server.url, "k-acme") as asking:
        yield asking
