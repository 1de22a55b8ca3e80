"""Calls that may be repeated when the database was away: their effect, if any, is recognised."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from windrow.errors import StoreUnavailable

RETRY_WAITS: Final = (0.1, 0.3, 0.9)  # seconds

T = TypeVar("T")


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call, and again after a while if the database cannot be reached."""
    for wait in RETRY_WAITS:
        try:
            return await call()
        except StoreUnavailable:
            await asyncio.sleep(wait)
    return await call()
