"""What one connection learned of Postgres's types, the next one knows."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.conftest import MakeDatabase
from windrow.db.postgres import types
from windrow.db.postgres.connections import Connections

IDS = [UUID(int=1), UUID(int=2)]
NUMBERS = "SELECT $1::uuid[] AS ids, $2::bigint[] AS numbers"


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Those about types that reached the server."""
    found: list[Any] = []
    ask = asyncpg.Connection._introspect_types  # type: ignore[attr-defined]

    async def counted(self: Any, typeoids: Any, timeout: Any) -> Any:
        found.append(typeoids)
        return await ask(self, typeoids, timeout)

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", counted)
    monkeypatch.setattr(types, "_answers", {})
    return found


async def read(url: str, text: str, *values: Any) -> Any:
    database = await Connections.open(url)
    try:
        async with database.connection() as connection:
            return await connection.fetchrow(text, *values)
    finally:
        await database.close()


@pytest.mark.parametrize("options", ["", "?statement_cache_size=0"], ids=["named", "unnamed"])
async def test_arrays_are_asked_about_once(url: str, options: str, questions: list[Any]) -> None:
    for _ in range(3):
        row = await read(url + options, NUMBERS, IDS, [1, None, 2**62])
        assert tuple(row) == (IDS, [1, None, 2**62])
    assert len(questions) == 1


async def test_types_of_a_database_are_asked_about_by_every_connection(
    make_database: MakeDatabase, questions: list[Any]
) -> None:
    """The same id may stand for another type in another database."""
    for labels in (["low", "high"], ["left", "right"]):
        url = make_database()
        await read(url, f"CREATE TYPE level AS ENUM ('{labels[0]}', '{labels[1]}')")
        row = await read(url, f"SELECT '{{{labels[0]},{labels[1]}}}'::level[] AS levels")
        assert row["levels"] == labels
    assert len(questions) == 2
