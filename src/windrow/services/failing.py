"""Failed jobs by their error: counted, and tried again together."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from windrow.queue.job import Job, JobState
from windrow.queue.records import ErrorCount
from windrow.services.tenant_queue import TenantQueue

NEWEST: Final = 20_000  # failed jobs that are counted while somebody waits for it
NEWEST_OF_TENANT: Final = 1_000  # these are read to be counted
PAGE: Final = 1_000
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


async def count_errors(jobs: TenantQueue, *, limit: int) -> tuple[list[ErrorCount], int]:
    """The most frequent errors of the newest failed jobs, and of how many these are at most."""
    if jobs.tenant is None:
        return await jobs.queue.errors(limit=limit, newest=NEWEST), NEWEST
    failed = await jobs.list(state=JobState.FAILED, limit=NEWEST_OF_TENANT)
    return _count(failed)[:limit], NEWEST_OF_TENANT


def _count(failed: Iterable[Job]) -> list[ErrorCount]:
    by_error: dict[str, list[Job]] = {}
    for job in failed:
        by_error.setdefault(job.error or "", []).append(job)
    counted = [
        ErrorCount(error, len(same), min(times), max(times), same[0].id)
        for error, same in by_error.items()
        if (times := [job.finished_at or _LONG_AGO for job in same])
    ]
    return sorted(counted, key=lambda one: (one.count, one.last_at), reverse=True)


async def retry_error(jobs: TenantQueue, error: str) -> int:
    """Run every failed job with just this error again, not those that say more; how many."""
    count, after = 0, None
    while page := await jobs.list(
        state=JobState.FAILED, error=error or None, after=after, limit=PAGE
    ):
        after = page[-1].id
        same = [job.id for job in page if (job.error or "") == error]
        changes = await jobs.queue.store.retry_jobs(same) if same else {}
        count += sum(not one.is_refused for one in changes.values() if one.before)
    return count
