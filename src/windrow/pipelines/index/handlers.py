"""`index_handlers`: the handlers of the index, for the worker that has it open.

While the embedder, the index or the database is away, is full, or asks for patience, jobs are
parked and use no attempts; those that have been for a day are tried as if something were wrong with
them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Final

from windrow.errors import (
    EmbedderUnavailable,
    IndexUnavailable,
    RateLimited,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from windrow.pipelines.index.building import build, switch
from windrow.pipelines.index.context import Indexing
from windrow.pipelines.index.payloads import (
    BUILD,
    QUEUE,
    SWITCH,
    TIDY,
    WRITE,
    BuildPayload,
    SwitchPayload,
    WritePayload,
)
from windrow.pipelines.index.tidying import tidy
from windrow.pipelines.index.writing import write
from windrow.queue.job import Job
from windrow.queue.outcome import Done, Outcome, Retry, Snooze
from windrow.worker.registry import Handler, handler

logger = logging.getLogger(__name__)

BATCH: Final = 256  # contents that are claimed and ended together
PART: Final = 64  # of them, that are embedded and written together
PARTS_AT_ONCE: Final = 3  # one is cut or embedded elsewhere while another is written
BATCH_SECONDS: Final = 0.02  # how long a batch waits to become full
BACKOFF: Final = (1.0, 5.0, 30.0, 120.0)
ATTEMPTS: Final = 5
AWAY: Final = (
    EmbedderUnavailable,
    IndexUnavailable,
    RateLimited,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
PARK_SECONDS: Final = 15.0
LONGEST_PARKED: Final = timedelta(days=1)
CRASHES: Final = 20  # nothing else ends the group of a generation whose jobs were given up


def index_handlers(indexing: Indexing) -> list[Handler]:
    @handler(
        WRITE,
        queue=QUEUE,
        batch=BATCH,
        batch_wait=BATCH_SECONDS,
        max_attempts=ATTEMPTS,
        backoff=BACKOFF,
    )
    async def write_(jobs: list[Job], payloads: list[WritePayload]) -> list[Outcome]:
        places = asyncio.Semaphore(PARTS_AT_ONCE)

        async def write_part(start: int) -> list[Outcome]:
            some = slice(start, start + PART)
            async with places:
                try:
                    return [*await write(indexing, payloads[some])]
                except AWAY as error:
                    return [_parked(job, error) for job in jobs[some]]

        # All of them end before this does: whatever is done here can be done again.
        parts = await asyncio.gather(
            *(write_part(start) for start in range(0, len(jobs), PART)), return_exceptions=True
        )
        return [outcome for part in parts for outcome in _unless_raised(part)]

    @handler(TIDY, queue=QUEUE, max_attempts=ATTEMPTS, backoff=BACKOFF)
    async def tidy_(job: Job) -> Outcome:
        return await _or_parked(job, tidy(indexing))

    @handler(
        BUILD,
        queue=QUEUE,
        max_attempts=ATTEMPTS,
        max_crashes=CRASHES,
        backoff=BACKOFF,
    )
    async def build_(job: Job, payload: BuildPayload) -> Outcome:
        return await _or_parked(job, build(indexing, payload))

    @handler(
        SWITCH,
        queue=QUEUE,
        max_attempts=ATTEMPTS,
        max_crashes=CRASHES,
        backoff=BACKOFF,
    )
    async def switch_(job: Job, payload: SwitchPayload) -> Outcome:
        return await _or_parked(job, switch(indexing, payload))

    return [write_, tidy_, build_, switch_]


def _unless_raised(part: list[Outcome] | BaseException) -> list[Outcome]:
    if isinstance(part, BaseException):
        raise part
    return part


async def _or_parked(job: Job, work: Awaitable[Done]) -> Outcome:
    try:
        return await work
    except AWAY as error:
        return _parked(job, error)


def _parked(job: Job, error: Exception) -> Outcome:
    if datetime.now(UTC) - job.created_at > LONGEST_PARKED:
        return Retry(error)
    wait = error.retry_after if isinstance(error, RateLimited) else None
    logger.warning("job %s (%s) is parked: %s", job.id, job.kind, error)
    return Snooze(PARK_SECONDS if wait is None else wait)
