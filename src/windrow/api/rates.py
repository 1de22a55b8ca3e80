"""How often one key may ask: a bucket of requests for each, which fills again over a minute."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

from windrow.api.errors import ApiError

KEPT: Final = 10_000  # keys, those that asked last


class RateLimit:
    """So many requests a minute for each key, in this process; 0 is no limit."""

    def __init__(self, per_minute: int) -> None:
        self._most = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, key: str) -> None:
        """One more request. Raises ApiError 429, with when to come again."""
        if not self._most:
            return
        now = time.monotonic()
        left, at = self._buckets.get(key, (float(self._most), now))
        left = min(self._most, left + (now - at) * self._most / 60)
        if left < 1:
            wait = (1 - left) * 60 / self._most
            said = f"Rate limit exceeded: {self._most} requests a minute; retry after {wait:.1f} s"
            headers = {"Retry-After": str(int(wait) + 1)}
            raise ApiError(429, "RATE_LIMITED", said, headers=headers)
        self._buckets[key] = (left - 1, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > KEPT:
            self._buckets.popitem(last=False)
