"""What an error of Redis means to us."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from redis import exceptions

from windrow.errors import (
    NotAllowed,
    StoreConflict,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

# The first that fits: some are kinds of others.
_MEANINGS: Final[tuple[tuple[type[Exception], type[StoreError]], ...]] = (
    (exceptions.AuthenticationError, NotAllowed),
    (exceptions.NoPermissionError, NotAllowed),
    (exceptions.ReadOnlyError, StoreReadOnly),
    (exceptions.OutOfMemoryError, StoreFull),
    (exceptions.WatchError, StoreConflict),
    (exceptions.ConnectionError, StoreUnavailable),
    (exceptions.TimeoutError, StoreUnavailable),
    (OSError, StoreUnavailable),
    (exceptions.RedisError, StoreError),
)


@contextmanager
def wrapped_errors() -> Iterator[None]:
    """Let nothing of the driver out: every error of Redis becomes one of ours."""
    try:
        yield
    except (exceptions.RedisError, OSError) as error:
        kind = next(ours for theirs, ours in _MEANINGS if isinstance(error, theirs))
        raise kind(f"Redis: {error or type(error).__name__}") from error
