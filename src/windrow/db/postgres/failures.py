"""What a driver's error means to us: one table of SQLSTATE codes, whoever the driver is.

The caller of a transactional enqueue may bring any of several drivers, so errors are told apart by
the code the server sent and not by their classes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

import asyncpg

from windrow.db.migrations import latest_version
from windrow.errors import (
    InvalidJob,
    NotAllowed,
    SchemaOutdated,
    StoreConflict,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    WindrowError,
)

PACKAGE: Final = "windrow.queue.postgres"

# Whole classes by their first two characters, then single codes, which count more.
_CLASSES: Final[dict[str, type[StoreError]]] = {
    "08": StoreUnavailable,  # connection exceptions
    "53": StoreUnavailable,  # too many connections, out of memory
    "57": StoreUnavailable,  # shutting down, not yet up, statement cancelled
    "58": StoreUnavailable,  # the server's own I/O failed
}
_CODES: Final[dict[str, type[StoreError]]] = {
    "40001": StoreConflict,  # serialisation failure
    "40P01": StoreConflict,  # deadlock
    "55P03": StoreConflict,  # lock not available
    "23505": StoreConflict,  # a row appeared that the statement could not see yet
    "53100": StoreFull,
    "25006": StoreReadOnly,
    "42501": NotAllowed,  # a missing privilege, or a row that a policy refuses
}
_NO_TABLES: Final = {"42P01", "3F000"}  # undefined table, undefined schema
# Of a login: no such user, a wrong password, no such database.
_REFUSED_LOGINS: Final = {"28000", "28P01", "3D000"}
_TOO_DEEP: Final = "54001"  # the JSON parser ran out of stack
_BAD_VALUES: Final = {"22003", "22008", "22P02", "22P05", "22021", "54000"}


class _WrappedErrors:
    """No generator: it is entered for every statement."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, WindrowError):
            wrapped = wrap(error)
            if wrapped is not None:
                raise wrapped from error


_wrapped_errors: Final = _WrappedErrors()


def wrapped_errors() -> AbstractContextManager[None]:
    """Let nothing of a driver out: every error of the database becomes one of ours."""
    return _wrapped_errors


def wrap(error: Exception) -> WindrowError | None:
    """Our error for a driver's, or None if it is not the database's doing."""
    if code := sqlstate(error):
        return from_sqlstate(code, str(error))
    # An InternalClientError is asyncpg at odds with its own connection: the server has just closed
    # it, and its last message met a call of ours. The pool throws such a connection away.
    if isinstance(error, OSError | EOFError | asyncpg.InternalClientError):
        return StoreUnavailable(f"the database cannot be reached: {error or type(error).__name__}")
    if isinstance(error, asyncpg.DataError):
        return InvalidJob(f"the database cannot hold this: {error}")
    if isinstance(error, asyncpg.InterfaceError):
        return _from_interface_error(error)
    # psycopg and SQLAlchemy share the names that the DB-API gives; no code: the server is gone.
    if {base.__name__ for base in type(error).__mro__} & {"OperationalError", "InterfaceError"}:
        return StoreUnavailable(f"the database cannot be reached: {error}")
    return None


def sqlstate(error: BaseException) -> str | None:
    """The code the server sent, wherever the driver keeps it."""
    for holder in (error, getattr(error, "orig", None)):
        for name in ("sqlstate", "pgcode"):
            code = getattr(holder, name, None)
            if isinstance(code, str):
                return code
    return None


def from_sqlstate(code: str, message: str) -> WindrowError:
    if code in _NO_TABLES:
        return SchemaOutdated(0, latest_version(PACKAGE))
    if code == _TOO_DEEP:
        return InvalidJob(f"the JSON is nested too deeply for the database: {message}")
    if code in _BAD_VALUES:
        return InvalidJob(f"the database cannot hold this: {message}")
    kind = _CODES.get(code) or _CLASSES.get(code[:2]) or StoreError
    made = kind(f"{message} (SQLSTATE {code})")
    if code in _REFUSED_LOGINS:
        made.hint = "see whether WINDROW_DATABASE_URL has the right user, password and database"
    return made


def _from_interface_error(error: Exception) -> StoreError:
    text = str(error)
    if any(word in text for word in ("closed", "closing", "released", "terminated")):
        return StoreUnavailable(f"the database cannot be reached: {text}")
    return StoreError(text)
