"""What SQLite answers when it cannot, in Windrow's words. The only place that reads its codes."""

from __future__ import annotations

import sqlite3

from windrow.errors import (
    QueueError,
    StoreConflict,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

# Extended codes carry the primary one in their low byte.
_PRIMARY = 0xFF


def translate(error: sqlite3.Error, path: str) -> QueueError:
    """The error to raise instead, `from` the original."""
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreConflict(f"{path} is locked by another writer: {error}")
        case sqlite3.SQLITE_FULL:
            return StoreFull(f"no room left for {path}: {error}")
        case sqlite3.SQLITE_READONLY:
            return StoreReadOnly(f"{path} can only be read: {error}")
        case sqlite3.SQLITE_CANTOPEN:
            return StoreUnavailable(f"cannot open {path}: {error}")
        case sqlite3.SQLITE_IOERR:
            return StoreUnavailable(f"reading or writing {path} failed: {error}")
        case sqlite3.SQLITE_NOTADB:
            return StoreError(f"{path} is not an SQLite database")
        case sqlite3.SQLITE_CORRUPT:
            return StoreError(f"{path} is damaged: {error}")
        case _:
            return StoreError(f"{path}: {error}")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection is in the way."""
    return _code(error) == sqlite3.SQLITE_BUSY


def _code(error: sqlite3.Error) -> int:
    return (getattr(error, "sqlite_errorcode", None) or 0) & _PRIMARY
