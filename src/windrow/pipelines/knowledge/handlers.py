"""`knowledge_handlers`: the handlers of the items of the unified queue, bound to one queue.

Worker(queue, knowledge_handlers(Knowledge(queue)))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from windrow.pipelines.knowledge.context import Item, Knowledge, is_orphan, orphan
from windrow.pipelines.knowledge.files import BATCH, delete_files, ingest_files
from windrow.pipelines.knowledge.folders import (
    delete_folder,
    delete_project,
    scan_folder,
    scan_project,
)
from windrow.pipelines.knowledge.handing import (
    FEED,
    SESSION,
    HandedPayload,
    SessionPayload,
    feed,
)
from windrow.pipelines.knowledge.items import (
    MAX_ATTEMPTS,
    PAYLOADS,
    QUEUE,
    FilePayload,
    ItemType,
    Operation,
    kind_of,
)
from windrow.pipelines.knowledge.libraries import delete_library, ingest_library
from windrow.pipelines.knowledge.notes import drop_note, keep_note
from windrow.pipelines.knowledge.refreshing import REFRESH, RefreshPayload, refresh
from windrow.pipelines.knowledge.removing import delete_document, delete_tenant
from windrow.pipelines.knowledge.renaming import rename
from windrow.pipelines.knowledge.trouble import BACKOFF, PROBE_SECONDS, Storage, outcome_of
from windrow.queue.job import Job
from windrow.queue.outcome import Done, Outcome, Snooze
from windrow.worker.registry import Handler, handler

T = TypeVar("T")
One = Callable[[Knowledge, Job, Any], Awaitable[Outcome]]
Many = Callable[[Knowledge, Sequence[Job], Sequence[FilePayload]], Awaitable[list[Outcome]]]

ONE_BY_ONE: Mapping[tuple[ItemType, Operation], One] = {
    ("content", "ingest"): keep_note,
    ("content", "update"): keep_note,
    ("content", "delete"): drop_note,
    ("folder", "ingest"): scan_folder,
    ("folder", "scan"): scan_folder,
    ("folder", "delete"): delete_folder,
    ("project", "ingest"): scan_project,
    ("project", "scan"): scan_project,
    ("project", "delete"): delete_project,
    ("library", "ingest"): ingest_library,
    ("library", "update"): ingest_library,
    ("library", "delete"): delete_library,
    ("delete_tenant", "delete"): delete_tenant,
    ("delete_document", "delete"): delete_document,
    ("rename", "update"): rename,
}
IN_BATCHES: Mapping[tuple[ItemType, Operation], Many] = {
    ("file", "ingest"): ingest_files,
    ("file", "update"): ingest_files,
    ("file", "delete"): delete_files,
}


def knowledge_handlers(
    knowledge: Knowledge, *, leases: Mapping[ItemType, int] | None = None
) -> list[Handler]:
    """A handler for each of the eighteen pairs, and those of refreshes and of what is handed in.
    `leases` are in seconds, by type; the default is the worker's, which is
    short: it is renewed while the handler runs, and bounds the wait after a worker was killed."""
    seconds = leases or {}
    storage = Storage(knowledge.queue)
    single = [
        _single(pair, function, knowledge, storage, seconds.get(pair[0]))
        for pair, function in ONE_BY_ONE.items()
    ]
    batched = [
        _batched(pair, function, knowledge, storage, seconds.get(pair[0]))
        for pair, function in IN_BATCHES.items()
    ]
    return [*single, *batched, _refreshing(knowledge), _feeding(knowledge, storage), _recording()]


def _refreshing(knowledge: Knowledge) -> Handler:
    @handler(REFRESH, queue=QUEUE, max_attempts=MAX_ATTEMPTS, backoff=BACKOFF)
    async def run(job: Job, payload: RefreshPayload) -> Outcome:
        return await refresh(knowledge.queue, job, payload)

    return run


def _feeding(knowledge: Knowledge, storage: Storage) -> Handler:
    @handler(FEED, queue=QUEUE, max_attempts=MAX_ATTEMPTS, backoff=BACKOFF)
    async def run(job: Job, payload: HandedPayload) -> Outcome:
        if await storage.is_away():
            return Snooze(PROBE_SECONDS)
        try:
            outcome = await feed(knowledge.queue, job, payload)
        except Exception as error:
            storage.note(error)
            return outcome_of(error)
        storage.note(None)
        return outcome

    return run


def _recording() -> Handler:
    """Of a crawl elsewhere: there is nothing to do, as its pages are handed in."""

    @handler(SESSION, queue=QUEUE)
    async def run(job: Job, payload: SessionPayload) -> Outcome:
        return Done(None)

    return run


def _single(
    pair: tuple[ItemType, Operation],
    function: One,
    knowledge: Knowledge,
    storage: Storage,
    lease: int | None,
) -> Handler:
    payload_type = PAYLOADS[pair[0]]

    @handler(kind_of(*pair), queue=QUEUE, lease=lease, max_attempts=MAX_ATTEMPTS, backoff=BACKOFF)
    async def run(job: Job, payload: payload_type) -> Outcome:  # type: ignore[valid-type]
        if await storage.is_away():
            return Snooze(PROBE_SECONDS)
        try:
            named = getattr(payload, "source", None)
            if await is_orphan(knowledge, Item.of(job), named):
                return orphan(named)
            outcome = await function(knowledge, job, payload)
        except Exception as error:
            storage.note(error)
            return outcome_of(error)
        storage.note(None)
        return outcome

    return run


def _batched(
    pair: tuple[ItemType, Operation],
    function: Many,
    knowledge: Knowledge,
    storage: Storage,
    lease: int | None,
) -> Handler:
    @handler(
        kind_of(*pair),
        queue=QUEUE,
        lease=lease,
        max_attempts=MAX_ATTEMPTS,
        backoff=BACKOFF,
        batch=BATCH,
    )
    async def run(jobs: list[Job], payloads: list[FilePayload]) -> list[Outcome]:
        if await storage.is_away():
            return [Snooze(PROBE_SECONDS)] * len(jobs)
        try:
            outcomes = await function(knowledge, jobs, payloads)
        except Exception as error:
            storage.note(error)
            if len(jobs) > 1 and not getattr(error, "transient", False):
                raise  # the worker finds the one that it is about
            return [outcome_of(error)] * len(jobs)
        storage.note(None)
        return outcomes

    return run
