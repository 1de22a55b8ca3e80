"""Fixtures and hooks shared by all tests.

One Postgres serves a whole run. Under xdist the controlling process starts it and hands its URL
to the workers, so it lives exactly as long as the run, whatever happens to a worker. Without
xdist it starts when the first test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from tests.postgres_server import Server, choose_server, create_database, drop_database

SERVER = pytest.StashKey[Server]()


class MakeDatabase(Protocol):
    def __call__(self, template: str | None = None) -> str: ...


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Runs in the xdist controller, once for each worker."""
    node.workerinput["postgres_url"] = _running_server(node.config).url()


def pytest_unconfigure(config: pytest.Config) -> None:
    if server := config.stash.get(SERVER, None):
        server.stop()


def _running_server(config: pytest.Config) -> Server:
    if SERVER not in config.stash:
        server = choose_server()
        server.start()
        config.stash[SERVER] = server
    return config.stash[SERVER]


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> str:
    """The maintenance database, as a superuser: the place to create databases from."""
    handed_down: dict[str, str] | None = getattr(request.config, "workerinput", None)
    return handed_down["postgres_url"] if handed_down else _running_server(request.config).url()


@pytest.fixture
def make_database(postgres_url: str) -> Iterator[MakeDatabase]:
    """Call it for the URL of a fresh database, empty or copied from a template."""
    made: list[str] = []

    def make(template: str | None = None) -> str:
        made.append(create_database(postgres_url, template))
        return made[-1]

    yield make
    for url in made:
        drop_database(postgres_url, url)
