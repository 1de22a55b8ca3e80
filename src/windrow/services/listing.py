"""Jobs page by page, for somebody who will not wait: a filter that no index serves looks back for a
moment, says how far it came, and goes on from there when asked to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from windrow.queue.job import Job, JobState
from windrow.queue.looking import make_filter
from windrow.queue.records import LINES, JobFilter, is_bad_end
from windrow.services.tenant_queue import TenantQueue

PATIENCE_SECONDS: Final = 0.03
# Jobs looked through at once. How long some take is not known before: few at first, then as many
# as there is time for, so that no single look takes longer than somebody waits.
FIRST: Final = 250
FEWEST: Final = 50
MOST: Final = 10_000
# Of a tenant or group fewer: each may lie on a page of its own that is still to be read from disk.
FIRST_APART: Final = 100
MOST_APART: Final = 500
GROWTH: Final = 4

_UNINDEXED: Final = ("queue", "kind", "tag", "error", "text")


class Page(msgspec.Struct, frozen=True):
    jobs: list[Job]
    after: str | None  # where the next page begins, if there is one
    is_cut_short: bool = False  # older ones were not looked at yet


async def list_page(
    jobs: TenantQueue, wanted: Mapping[str, Any], *, after: str | None, limit: int
) -> Page:
    """The next jobs, newest first; the filters are those of `Queue.list`."""
    line = make_filter(**{**wanted, "tenant": jobs.narrow(wanted.get("tenant"))})
    if not _is_walked(line):
        found = await jobs.list(**wanted, after=after, limit=limit)
        return Page(found, found[-1].id if len(found) == limit else None)
    window, most = (FIRST, MOST) if _is_together(line) else (FIRST_APART, MOST_APART)
    found = []
    looked = time.monotonic()
    until = looked + PATIENCE_SECONDS
    while True:
        since = await jobs.queue.store.find_earlier(line, window, after=after)
        found += await jobs.list(**wanted, since=since, after=after, limit=limit - len(found))
        if len(found) == limit:
            return Page(found, found[-1].id)
        if since is None:
            return Page(found, None)
        began, looked = looked, time.monotonic()
        window = min(next_window(window, looked - began, until - looked), most)
        after = since
        if window < FEWEST:
            return Page(found, after, is_cut_short=True)


def next_window(window: int, took: float, left: float) -> int:
    """How many jobs can be looked through in the time that is left, if so many took this long."""
    fitting = window * left / max(took, 1e-6)
    return int(min(fitting, window * GROWTH))


def _is_together(line: JobFilter) -> bool:
    """Whether the jobs that are counted lie one behind the other."""
    return all(getattr(line, name) is None for name in LINES) and not is_bad_end(line.states)


def _is_walked(wanted: JobFilter) -> bool:
    """Whether jobs are read one after the other to find those that match."""
    if wanted.states == (JobState.ACTIVE,):
        return False  # the leases name them
    if any(getattr(wanted, name) is not None for name in _UNINDEXED):
        return True
    lines = sum(getattr(wanted, name) is not None for name in LINES)
    if wanted.states is None:
        return lines > 1
    return lines > 0 or not is_bad_end(wanted.states)
