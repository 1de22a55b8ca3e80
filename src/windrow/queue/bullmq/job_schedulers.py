"""BullMQ's job schedulers: whoever takes a tick makes the next, as BullMQ's own workers do.

The script makes the next tick only while the given job is the current one, so it is idempotent: a
tick that was taken by a worker that died makes the next one when it is taken again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bullmq.job import optsFromJSON
from bullmq.job_scheduler import JobScheduler

from windrow.queue.bullmq.connection import Links, RawScripts
from windrow.queue.bullmq.failures import wrapped_errors

logger = logging.getLogger(__name__)

# Keys of the repeatable jobs that BullMQ had before schedulers: name, id, end, time zone, pattern.
# BullMQ for Python knows nothing of them.
LEGACY_PARTS: Final = 5


class _Queue:
    """What BullMQ's scheduler asks of a queue."""

    qualifiedName = ""  # noqa: N815

    def __init__(self, scripts: RawScripts) -> None:
        self.backend = scripts


async def make_next_ticks(
    links: Links, queue: str, found: Sequence[tuple[str, str, Mapping[str, str]]]
) -> set[str]:
    """Make the next tick of each claimed job (token, id, hash) that a scheduler made. Return the
    tokens of those whose next tick cannot be made here: only a worker in Node can run them."""
    scheduler = JobScheduler(_Queue(links.scripts(queue)))
    foreign: set[str] = set()
    for token, job_id, fields in found:
        if (key := fields.get("rjk")) and not await _make_next(scheduler, key, job_id, fields):
            foreign.add(token)
    return foreign


async def _make_next(
    scheduler: JobScheduler, key: str, job_id: str, fields: Mapping[str, str]
) -> bool:
    options: dict[str, Any] = optsFromJSON(json.loads(fields.get("opts") or "{}"))
    if len(key.split(":")) >= LEGACY_PARTS:
        logger.warning("job %s is a repeatable job of an old BullMQ: left to Node", job_id)
        return False
    try:
        with wrapped_errors():
            await scheduler.upsertJobScheduler(
                key, options.get("repeat"), fields["name"], None, options, False, job_id
            )
    except (ValueError, KeyError, TypeError) as error:  # what only Node knows, as a time zone
        logger.warning("the next run of scheduler %s is left to Node: %s", key, error)
        return False
    return True
