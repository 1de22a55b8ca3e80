"""`Retry-After`: seconds or a date, as seconds from now."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_SECONDS: Final = 86_400.0  # nobody may park a host for longer


def parse_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """The seconds a server asks for; None if it says nothing that can be understood."""
    value = (value or "").strip()
    if not value:
        return None
    try:
        seconds = float(value) if value.isascii() and value[0].isdigit() else _until(value, now)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_SECONDS)


def _until(date: str, now: datetime | None) -> float:
    at = parsedate_to_datetime(date)
    if at.tzinfo is None:  # "-0000": UTC by what HTTP says
        at = at.replace(tzinfo=UTC)
    return (at - (now or datetime.now(UTC))).total_seconds()
