"""The part of `Queue` that is about limits and bounds: it checks, calls a store verb, and lets jobs
go for which there is room now."""

from __future__ import annotations

import builtins
from datetime import datetime, timedelta

from windrow.errors import InvalidJob
from windrow.queue.checks import check_bound, check_limit, check_name, check_seconds
from windrow.queue.limits import make_room
from windrow.queue.records import LimitInfo, OnFull
from windrow.queue.store import Store


class Limiting:
    store: Store

    async def set_limit(
        self,
        key: str,
        *,
        active: int | None = None,
        per_second: float | None = None,
        burst: int | None = None,
    ) -> None:
        """Allow jobs with this key `active` at once, and so many starts `per_second` with a
        `burst` (one second's worth if not given). What is not given is not limited. Takes effect
        at once: ready jobs over the limit are held again, running ones go on.
        """
        row = check_limit(key, active, per_second, burst)
        await self.store.set_limit(row)
        await make_room(self.store, [[row.key]])

    async def remove_limit(self, key: str) -> bool:
        """Limit the key no longer; whether it was. It is no longer parked either."""
        was_set = await self.store.remove_limit(check_name(key, "limit key"))
        await make_room(self.store, [[key]])
        return was_set

    async def limits(self) -> builtins.list[LimitInfo]:
        """Every key with a limit or with jobs: its settings, what is in use, what is held."""
        return await self.store.list_limits()

    async def park_key(self, key: str, until: datetime | float | timedelta | None) -> None:
        """Start no job with this key until a time, or for so many seconds: for an API that says
        429. No job is touched; running ones go on. `None` ends it at once."""
        checked = check_name(key, "limit key")
        if isinstance(until, datetime):
            if until.tzinfo is None:
                raise InvalidJob(f"until must be a datetime with a time zone, not {until!r}")
            await self.store.park_key(checked, until=until)
        else:
            await self.store.park_key(checked, seconds=check_seconds(until, "until"))
        if until is None:
            await make_room(self.store, [[checked]])

    async def set_queue(
        self, name: str, *, max_depth: int | None = None, on_full: OnFull = "reject"
    ) -> None:
        """Let at most `max_depth` jobs wait in a queue. When it is full, enqueueing raises
        QueueFull (`"reject"`), waits for room (`"block"`), or the oldest of the least urgent jobs
        are cancelled (`"drop_oldest"`). Jobs that follow others, or come back to wait, are always
        taken."""
        depth = check_bound(max_depth, on_full)
        await self.store.set_queue(check_name(name, "queue"), depth, on_full)
