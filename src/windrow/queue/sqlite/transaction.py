"""`job.tx` on SQLite: statements are collected and run by the writer, inside the transaction that
finishes the job. Nothing can be read through it; the file can be read beside it at any time."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, Final

from windrow.errors import StoreError
from windrow.queue.sqlite.rows import to_json
from windrow.queue.sqlite.work import Work, statement

# Words that would end or change the transaction other calls share.
_FORBIDDEN: Final = frozenset(
    [
        "begin",
        "commit",
        "end",
        "rollback",
        "savepoint",
        "release",
        "attach",
        "detach",
        "pragma",
        "vacuum",
    ]
)
_FIRST_WORD: Final = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$)|;)*(\w*)", re.DOTALL)


# A parameter as Postgres writes it, or what may contain something that looks like one.
_PARAMETER: Final = re.compile(
    r"""'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/|\$(\d+)\b""", re.DOTALL
)


@functools.lru_cache(256)
def numbered(sql: str) -> str:
    """`$1` as SQLite writes it, so that a handler can be the same on both stores."""
    return _PARAMETER.sub(lambda found: f"?{found[1]}" if found[1] else found[0], sql)


class SqliteTransaction:
    def __init__(self) -> None:
        self._statements: list[tuple[str, tuple[Any, ...] | dict[str, Any]]] = []

    async def execute(self, sql: str, *args: Any) -> None:
        """Keep a statement for the finish; a mistake in it shows there."""
        first = _FIRST_WORD.match(sql)
        word = first[1].lower() if first else ""
        if word in _FORBIDDEN:
            raise StoreError(f"{word.upper()} cannot be used in a job's transaction")
        self._statements.append((numbered(sql), args))

    async def note(self, group_id: str, subject: str, texts: Sequence[str]) -> None:
        values = {"group_id": group_id, "subject": subject, "texts": to_json(list(texts))}
        self._statements.append((statement("add_group_notes"), values))

    async def fetch(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        raise StoreError(
            "a job's transaction on SQLite only writes: its statements run when the job finishes. "
            "Read through a connection of your own"
        )

    async def rollback(self) -> None:
        self._statements.clear()

    def replay(self, work: Work) -> None:
        """Run what was collected, in order, in the writer's transaction."""
        for sql, args in self._statements:
            work.run_given(sql, args)
