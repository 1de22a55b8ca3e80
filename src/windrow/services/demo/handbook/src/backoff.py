"""How long to wait before a failed job is tried again."""

from __future__ import annotations


def wait_seconds(attempt: int, first: float = 30.0, longest: float = 600.0) -> float:
    """Twice as long each time, but never longer than the longest."""
    return min(first * 2.0 ** (attempt - 1), longest)
