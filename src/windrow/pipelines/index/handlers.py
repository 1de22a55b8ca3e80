"""`index_handlers`: the handlers of the index, for the worker that has it open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windrow.errors import EmbeddingRefused
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
from windrow.queue.outcome import Done, Fail
from windrow.worker.registry import Handler, handler

BATCH: Final = 64  # contents that are embedded and written together
BATCH_SECONDS: Final = 0.02  # how long a batch waits to become full
BACKOFF: Final = (1.0, 5.0, 30.0, 120.0)
ATTEMPTS: Final = 5
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
    async def write_(jobs: list[Job], payloads: list[WritePayload]) -> list[Done | Fail]:
        return await _write_what_is_taken(indexing, payloads)

    @handler(TIDY, queue=QUEUE, max_attempts=ATTEMPTS, backoff=BACKOFF)
    async def tidy_(job: Job) -> Done:
        return await tidy(indexing)

    @handler(
        BUILD,
        queue=QUEUE,
        max_attempts=ATTEMPTS,
        max_crashes=CRASHES,
        backoff=BACKOFF,
    )
    async def build_(job: Job, payload: BuildPayload) -> Done:
        return await build(indexing, payload)

    @handler(
        SWITCH,
        queue=QUEUE,
        max_attempts=ATTEMPTS,
        max_crashes=CRASHES,
        backoff=BACKOFF,
    )
    async def switch_(job: Job, payload: SwitchPayload) -> Done:
        return await switch(indexing, payload)

    return [write_, tidy_, build_, switch_]


async def _write_what_is_taken(
    indexing: Indexing, payloads: Sequence[WritePayload]
) -> list[Done | Fail]:
    """One text that the embedder does not take fails its own job, not those beside it."""
    try:
        return [*await write(indexing, payloads)]
    except EmbeddingRefused as error:
        if len(payloads) == 1:
            return [Fail(error)]
    middle = len(payloads) // 2
    first = await _write_what_is_taken(indexing, payloads[:middle])
    return first + await _write_what_is_taken(indexing, payloads[middle:])
