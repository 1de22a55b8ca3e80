"""How fast a worker works: what it may claim ahead of its free places."""

from __future__ import annotations

import time
from typing import Final

# Jobs that will be started within so many seconds, going by those of late, may be claimed ahead.
AHEAD_SECONDS: Final = 0.1
MOST_AHEAD: Final = 2000
# A worker that has just begun goes by less than that, but not by a few jobs in no time.
FIRST_SECONDS: Final = 0.02


class Pace:
    """How many runs ended in the last moments."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._count = 0
        self._rate = 0.0

    def count(self) -> None:
        self._count += 1

    def ahead(self) -> int:
        """The jobs that would be started in the next moment if it goes on like this."""
        now = time.monotonic()
        passed = now - self._since
        if passed >= AHEAD_SECONDS:
            self._rate = self._count / passed
            self._since, self._count = now, 0
            rate = self._rate
        else:
            rate = max(self._rate, self._count / max(passed, FIRST_SECONDS))
        return min(MOST_AHEAD, int(rate * AHEAD_SECONDS))
