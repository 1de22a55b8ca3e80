"""Time. The database's clock is the truth; tests put a fake one in its place.

`Clock.now()` returns None for "ask the database": statements take it as a parameter and fall back
to the database's own clock. `FakeClock` returns a fixed time that only moves when told to.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class Clock:
    """The database's own time."""

    def now(self) -> datetime | None:
        return None


class FakeClock(Clock):
    """A clock that stands still until `advance` is called."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 1, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        """The time it stands at."""
        return self._now

    def advance(self, seconds: float) -> datetime:
        """Let so much time pass."""
        self._now += timedelta(seconds=seconds)
        return self._now
