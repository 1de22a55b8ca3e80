"""What becomes of an item that something stood in the way of.

- gone (no such file, no permission, no such source): dropped, with a note in the result;
- bad data (a payload that does not fit, a broken file): failed at once;
- asked too often, a part of the system is away: parked for a while, no attempt used;
- the database or disk is away: the same, and after a few in a row this worker begins nothing more
  before a look at the database has succeeded;
- anything else: tried again, as the back-off says.
"""

from __future__ import annotations

import time
from typing import Final

from windrow.catalog import Catalog
from windrow.errors import (
    EmbedderUnavailable,
    FileGone,
    FileRefused,
    IndexUnavailable,
    RateLimited,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    WindrowError,
)
from windrow.queue.outcome import Done, Fail, Outcome, Retry, Snooze
from windrow.queue.policy import exponential
from windrow.queue.queue import Queue

PARK_SECONDS: Final = 60.0
PROBE_SECONDS: Final = 5.0
IN_A_ROW: Final = 5
STORAGE: Final = (StoreUnavailable, StoreFull, StoreReadOnly)
BACKOFF: Final = exponential(base=60.0, cap=3600.0)


def outcome_of(error: Exception) -> Outcome:
    """The outcome of an item whose handler raised."""
    match error:
        case FileGone() | FileRefused():
            return Done({"dropped": str(error)})
        case RateLimited():
            wait = PARK_SECONDS if error.retry_after is None else error.retry_after
            return Snooze(wait)
        case EmbedderUnavailable() | IndexUnavailable():
            return Snooze(PARK_SECONDS)
        case StoreUnavailable() | StoreFull() | StoreReadOnly():
            return Snooze(PROBE_SECONDS)
        case WindrowError() if not error.transient:
            return Fail(error)
    return Retry(error)


class Storage:
    """Whether the database can be written. While it cannot, a look now and then costs less than
    items that find out one by one."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._failed = 0
        self._next_probe = 0.0

    def note(self, error: Exception | None) -> None:
        """What came of a run."""
        self._failed = self._failed + 1 if isinstance(error, STORAGE) else 0

    async def is_away(self) -> bool:
        """Whether nothing should be begun."""
        if self._failed < IN_A_ROW:
            return False
        if time.monotonic() < self._next_probe:
            return True
        self._next_probe = time.monotonic() + PROBE_SECONDS
        try:
            await Catalog(self._queue.database).collections.find("", "")
        except StoreError:
            return True
        self._failed = 0
        return False
