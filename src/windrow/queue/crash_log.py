"""The log of crashes: one record for each job whose lease expired before its run had ended."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from windrow.errors import StoreError
from windrow.logging import event
from windrow.queue.job import Job, JobState
from windrow.queue.records import Change
from windrow.queue.store import Store

logger = logging.getLogger(__name__)

# When a worker with very many jobs dies, the first are described and the others counted.
MAX_DESCRIBED: Final = 20


async def rescue_jobs(store: Store, limit: int) -> list[Change]:
    """Retry or fail jobs of expired leases, as the store does, and log each crash."""
    rescued = await store.rescue_jobs(limit)
    if rescued and logger.isEnabledFor(logging.ERROR):
        await _log_crashes(store, rescued)
    return rescued


async def _log_crashes(store: Store, rescued: Sequence[Change]) -> None:
    try:
        jobs = await store.get_jobs([change.id for change in rescued[:MAX_DESCRIBED]])
    except StoreError:
        jobs = {}  # they are rescued all the same, and counted below
    for change in rescued:
        if change.id in jobs:
            _log_crash(jobs[change.id], change.after)
    if others := len(rescued) - len(jobs):
        logger.warning(
            "%d %sjobs crashed and were taken back: their leases expired",
            others,
            "more " if jobs else "",
            extra=event("jobs.rescued", count=others),
        )


def _log_crash(job: Job, state: JobState | None) -> None:
    crashes = [error.message for error in job.errors if error.reason == "crash"]
    fields = {
        "job_id": job.id,
        "kind": job.kind,
        "queue": job.queue,
        "tenant": job.tenant,
        "crashes": job.crashes,
        "max_crashes": job.max_crashes,
        "error": crashes[-1] if crashes else "the lease ran out",
    }
    said = (job.id, job.kind, job.crashes, job.max_crashes, fields["error"])
    if state is JobState.FAILED:
        logger.error(
            "job %s %s failed, crash %d of %d: %s; no crash is left",
            *said,
            extra=event("job.failed", **fields),
        )
    else:
        logger.warning(
            "job %s %s crashed, crash %d of %d: %s; it is %s",
            *said,
            state,
            extra=event("job.crashed", **fields),
        )
