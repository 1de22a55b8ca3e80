"""Jobs page by page, for somebody who will not wait: a filter that no index serves looks back for a
moment, says how far it came, and goes on from there when asked to."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from windrow.queue.job import FINAL, Job, JobState
from windrow.services.tenant_queue import TenantQueue

WINDOW: Final = 10_000  # jobs looked through at once
PATIENCE_SECONDS: Final = 0.04

_UNINDEXED: Final = ("queue", "kind", "tag", "error", "text")
_INDEXED_STATES: Final = (JobState.FAILED, JobState.CANCELLED, JobState.ACTIVE)


@dataclass(frozen=True, slots=True)
class Page:
    jobs: list[Job]
    after: str | None  # where the next page begins, if there is one
    is_cut_short: bool = False  # older ones were not looked at yet


async def list_page(
    jobs: TenantQueue, wanted: Mapping[str, Any], *, after: str | None, limit: int
) -> Page:
    """The next jobs, newest first; the filters are those of `Queue.list`."""
    if not _is_walked(wanted):
        found = await jobs.list(**wanted, after=after, limit=limit)
        return Page(found, found[-1].id if len(found) == limit else None)
    store, is_finished = jobs.queue.store, _is_finished(wanted.get("state"))
    found = []
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        since = await store.find_earlier(after, WINDOW, is_finished=is_finished)
        found += await jobs.list(**wanted, since=since, after=after, limit=limit - len(found))
        if len(found) == limit:
            return Page(found, found[-1].id)
        if since is None:
            return Page(found, None)
        after = since
        if time.monotonic() > until:
            return Page(found, after, is_cut_short=True)


def _is_finished(state: JobState | Collection[JobState] | None) -> bool | None:
    """Whether only jobs that have ended are wanted, or only others; None: both."""
    if state is None:
        return None
    ends = {one in FINAL for one in ([state] if isinstance(state, str) else state)}
    return ends.pop() if len(ends) == 1 else None


def _is_walked(wanted: Mapping[str, Any]) -> bool:
    """Whether jobs are read one after the other to find those that match."""
    state = wanted.get("state")
    return any(name in wanted for name in _UNINDEXED) or (
        state is not None and state not in _INDEXED_STATES
    )
