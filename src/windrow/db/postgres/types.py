"""What asyncpg learns of the types of a database, learned once for all connections of a process.

A new connection knows scalars and text[] and asks the server about every other type when it first
meets it: three or four queries over the catalogs, more than anything else that a short-lived
connection costs. The answers about Postgres's own types are the same everywhere.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import asyncpg

FIRST_OF_USERS: Final = 16384  # types with lower ids came with Postgres, the same in every database

_answers: dict[frozenset[int], list[Any]] = {}


class _NotAsked(NamedTuple):
    """Stands for the statement that asked: a named one, which took no unnamed one's place."""

    name: str = "remembered"


class LearnedConnection(asyncpg.Connection):
    """Overrides a private method of asyncpg; one that calls it no more would ask as it used to."""

    async def _introspect_types(self, typeoids: Any, timeout: float | None) -> Any:
        wanted = frozenset(typeoids)
        if wanted in _answers:
            return _answers[wanted], _NotAsked()
        found, statement = await super()._introspect_types(typeoids, timeout)  # type: ignore[misc]
        if max(wanted) < FIRST_OF_USERS:
            _answers[wanted] = found
        return found, statement
