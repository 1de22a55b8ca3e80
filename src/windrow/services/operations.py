"""What is being done for what people know, as somebody sees it who waits: crawls of sources, files
that were handed in. An operation is known by the id of its first job.

Everything is read from rows: the job, its group, the documents that wait for the index. So it is
the same after a restart, on any server, and as long as the job is kept. The percentage never goes
back: the pages' is kept with the job, and the documents' are those of this operation alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.documents import Pending
from windrow.errors import GroupNotFound, IllegalTransition, JobNotFound, WaitTimeout
from windrow.pipelines.index.payloads import WRITE
from windrow.pipelines.knowledge.handing import FEED, HandedPayload
from windrow.pipelines.web.failures import why_failed
from windrow.pipelines.web.feeding import NOTHING, why_nothing
from windrow.pipelines.web.payloads import CRAWL, SCRAPE, FeedPayload
from windrow.queue.job import LIVE, Job, JobState
from windrow.queue.queue import Queue
from windrow.queue.records import Group
from windrow.services.web.crawls import cancel_crawl, get_errors

Status = Literal[
    "starting",
    "crawling",
    "processing",
    "document_storage",
    "paused",
    "completed",
    "failed",
    "cancelled",
]
Kind = Literal["crawl", "page", "upload", "other"]
ENDED: Final[frozenset[Status]] = frozenset({"completed", "failed", "cancelled"})

# Where the parts of an operation end, in percent of the whole.
BEGUN: Final = 4
FETCHED: Final = 80
ALMOST: Final = 99
NEWEST: Final = 50  # that have ended and are looked at, whether their documents can be found
LOOKED_AT: Final = 20  # contents that documents wait for
LOGGED: Final = 20  # pages that failed
BEGIN_SECONDS: Final = 10.0  # that a pause waits for a crawl which is just beginning
LOOK_SECONDS: Final = 0.05
SOURCE_TAG: Final = "source:"


@dataclass(frozen=True, slots=True)
class Operation:
    id: str
    kind: Kind
    status: Status
    percent: int
    message: str
    tenant: str | None
    source: str | None
    title: str  # the address, or the name of a file
    created_at: datetime
    ended_at: datetime | None
    error: str | None = None
    pages: int = 0  # that are known
    fetched: int = 0  # those of them that have ended
    failed: int = 0
    documents: int = 0
    stored: int = 0  # of the documents: those that can be found
    lost: int = 0  # of the documents: those that the index did not take
    current_url: str | None = None
    log: Sequence[str] = ()

    @property
    def is_ended(self) -> bool:
        return self.status in ENDED


async def get_operation(queue: Queue, id: str, *, tenant: str | None = None) -> Operation:
    """How far an operation is. Raises JobNotFound."""
    return await _describe(queue, await _find(queue, id, tenant))


async def list_operations(
    queue: Queue, *, tenant: str | None = None, with_failed: bool = False
) -> list[Operation]:
    """Those that have not ended, newest first; with `with_failed`, the newest that failed, too."""
    found: list[Operation] = []
    for kind in (CRAWL, FEED):
        live = await queue.list(kind=kind, state=list(LIVE), tenant=tenant, limit=1000)
        over = [JobState.COMPLETED] + ([JobState.FAILED] if with_failed else [])
        ended = [
            job
            for state in over
            for job in await queue.list(kind=kind, state=state, tenant=tenant, limit=NEWEST)
        ]
        of_sources = [job for job in (*live, *ended) if _is_operation(job)]
        found += [await _describe(queue, job) for job in of_sources]
    wanted = [one for one in found if not one.is_ended or (with_failed and one.status == "failed")]
    return sorted(wanted, key=lambda one: one.id, reverse=True)


async def find_running(queue: Queue, tenant: str | None, source: str) -> str | None:
    """The operation that fetches a source already, if one does."""
    tag = f"{SOURCE_TAG}{source}"
    for kind in (CRAWL, SCRAPE):
        for job in await queue.list(kind=kind, tag=tag, tenant=tenant, state=list(LIVE)):
            if job.tenant == tenant and _is_operation(job):
                return job.id
    return None


async def stop(queue: Queue, id: str, *, tenant: str | None = None) -> None:
    """Cancel what waits, tell what runs. Raises JobNotFound, IllegalTransition."""
    job = await _find(queue, id, tenant)
    if job.kind == CRAWL:
        await cancel_crawl(queue, id, reason="stopped", tenant=tenant)
    else:
        await queue.cancel(id, reason="stopped")


async def pause(queue: Queue, id: str, *, tenant: str | None = None) -> None:
    """Begin nothing more of it; what runs goes on. Raises JobNotFound, IllegalTransition, and
    WaitTimeout if it is just beginning and takes too long for that."""
    give_up_at = time.monotonic() + BEGIN_SECONDS
    while True:
        job = await _find(queue, id, tenant)
        if job.is_finished:
            raise IllegalTransition(id, job.state, "paused")
        if job.root_of is not None:
            await queue.pause_group(job.root_of)
            return
        is_beginning = job.kind == CRAWL and job.state is JobState.ACTIVE
        if not is_beginning and (await queue.pause_job(id)).after is JobState.PAUSED:
            return
        # It runs: a crawl has a group in a moment, and then nothing of it has to run again.
        if time.monotonic() > give_up_at:
            raise WaitTimeout(id)
        await asyncio.sleep(LOOK_SECONDS)


async def resume(queue: Queue, id: str, *, tenant: str | None = None) -> None:
    job = await _find(queue, id, tenant)
    if job.is_finished:
        raise IllegalTransition(id, job.state, "resumed")
    if job.root_of is not None:
        await queue.resume_group(job.root_of)
    if job.state is JobState.PAUSED or job.root_of is None:
        await queue.resume_job(id)


async def is_awaited(queue: Queue, contents: Sequence[str]) -> bool:
    """Whether the index is still to write one of these. What it has given up is not."""
    for content in contents:
        if await queue.list(unique=f"{WRITE}:{content}", state=list(LIVE), limit=1):
            return True
    return False


async def look_at_pending(
    queue: Queue, count: Callable[[], Awaitable[Pending]]
) -> tuple[Pending, bool]:
    """What waits for the index, and whether it is still to write some of it. Counted again where
    it is not: it may have been written between the two looks."""
    pending = await count()
    while pending.waiting and not await is_awaited(queue, pending.contents):
        again = await count()
        if again == pending:
            return pending, False
        pending = again
    return pending, pending.waiting > 0


async def _find(queue: Queue, id: str, tenant: str | None) -> Job:
    job = await queue.get(id)
    if (tenant is not None and job.tenant != tenant) or not _is_operation(job):
        raise JobNotFound(id)
    return job


def _is_operation(job: Job) -> bool:
    if job.kind in (CRAWL, SCRAPE):
        return (
            isinstance(job.payload, dict)
            and job.payload.get("feed") is not None
            and not (job.kind == SCRAPE and job.group is not None)
        )
    return job.kind == FEED or any(tag.startswith(SOURCE_TAG) for tag in job.tags)


async def _describe(queue: Queue, job: Job) -> Operation:
    if job.kind == CRAWL:
        return await _crawl(queue, job)
    if job.kind == SCRAPE:
        return await _page(queue, job)
    if job.kind == FEED:
        return await _upload(queue, job)
    return _other(job)


async def _crawl(queue: Queue, job: Job) -> Operation:
    feed = msgspec.convert(job.payload["feed"], FeedPayload)
    group = await _group(queue, job)
    counters = _counters(job, group)
    share = job.progress.percent if job.progress else 0
    known: dict[str, Any] = {
        "pages": counters["total"],
        "fetched": counters["completed"] + counters["failed"],
        "failed": counters["failed"],
        "documents": counters["completed"],
    }
    has_begun = group is not None or (job.is_finished and job.started_at is not None)
    percent = _between(BEGUN, FETCHED, share / 100) if has_begun else 0
    said = f"{known['fetched']} of {known['pages']} pages"
    if known["failed"]:
        known["log"] = await _log(queue, job, group)
    if job.state is JobState.COMPLETED:
        if not counters["completed"]:
            error = NOTHING if group is None else await why_nothing(queue, job.id)
            return _made(job, "crawl", "failed", percent, error, feed.source, error=error, **known)
        count = partial(_count_fed, queue, job, feed)
        return await _stored(queue, job, "crawl", count, FETCHED, feed.source, known)
    if job.is_finished:
        return _ended(job, "crawl", percent, feed.source, **known)
    if job.state is JobState.PAUSED or (group is not None and group.is_paused):
        return _made(job, "crawl", "paused", percent, f"Paused: {said}", feed.source, **known)
    if group is None:
        return _made(job, "crawl", "starting", percent, "Waits to begin", feed.source, **known)
    url = await _current(queue, group)
    told = f"Crawling: {said}"
    return _made(job, "crawl", "crawling", percent, told, feed.source, current_url=url, **known)


async def _page(queue: Queue, job: Job) -> Operation:
    feed = msgspec.convert(job.payload["feed"], FeedPayload)
    known = {"pages": 1, "current_url": job.payload.get("url")}
    if job.state is JobState.COMPLETED:
        more = {**known, "fetched": 1, "documents": 1}
        count = partial(_count_fed, queue, job, feed)
        return await _stored(queue, job, "page", count, FETCHED, feed.source, more)
    if job.is_finished:
        return _ended(job, "page", 0, feed.source, **known)
    status, said = _waiting(job, "crawling")
    return _made(job, "page", status, 0, said, feed.source, **known)


async def _upload(queue: Queue, job: Job) -> Operation:
    payload = msgspec.convert(job.payload, HandedPayload)
    source = payload.sources[0] if len(payload.sources) == 1 else None
    known = {"documents": len(payload.documents) + payload.unchanged}
    if job.state is JobState.COMPLETED:
        count = partial(_count_handed, queue, payload)
        return await _stored(queue, job, "upload", count, BEGUN, source, known)
    if job.is_finished:
        return _ended(job, "upload", 0, source, **known)
    status, said = _waiting(job, "processing")
    return _made(job, "upload", status, 0, said, source, **known)


def _other(job: Job) -> Operation:
    tag = next(one for one in job.tags if one.startswith(SOURCE_TAG))
    source = tag.removeprefix(SOURCE_TAG)
    if job.is_finished:
        return _ended(job, "other", 0, source)
    status, said = _waiting(job, "processing")
    return _made(job, "other", status, 0, said, source)


async def _count_fed(queue: Queue, job: Job, feed: FeedPayload) -> Pending:
    return await Catalog(queue.database).documents.count_pending(
        job.tenant, feed.collection, feed.source, run=job.id, limit=LOOKED_AT
    )


async def _count_handed(queue: Queue, payload: HandedPayload) -> Pending:
    found = await Catalog(queue.database).documents.get(list(payload.documents))
    waiting = [one.pending for one in found if payload.awaits(one)]
    there = len(found) + payload.unchanged
    return Pending(there, len(waiting), tuple(filter(None, waiting[:LOOKED_AT])))


async def _stored(
    queue: Queue,
    job: Job,
    kind: Kind,
    count: Callable[[], Awaitable[Pending]],
    begun: int,
    source: str | None,
    known: Mapping[str, Any],
) -> Operation:
    """Of one whose job has ended well: whether its documents can be found by now."""
    pending, is_coming = await look_at_pending(queue, count)
    expected = max(known["documents"], pending.waiting, 1)
    stored = max(0, pending.documents - pending.waiting)
    more = {**known, "documents": pending.documents, "stored": stored}
    if is_coming:
        percent = _between(begun, ALMOST, 1 - pending.waiting / expected)
        said = f"Indexing: {stored} of {pending.documents} documents can be found"
        return _made(job, kind, "document_storage", percent, said, source, **more)
    said = f"{stored} documents can be found"
    if pending.waiting:
        said += f"; {pending.waiting} could not be indexed"
    is_lost = pending.waiting > 0 and not stored
    status: Status = "failed" if is_lost else "completed"
    error = said if is_lost else None
    return _made(job, kind, status, 100, said, source, error=error, lost=pending.waiting, **more)


async def _group(queue: Queue, job: Job) -> Group | None:
    if job.root_of is None:
        return None
    try:
        return await queue.group(job.root_of)
    except GroupNotFound:
        return None  # it has expired


def _counters(job: Job, group: Group | None) -> dict[str, int]:
    """Of a group that has expired, as it was at its end."""
    names = ("completed", "failed", "total")
    if group is None:
        kept = job.progress.counters if job.progress else {}
        return {name: int(kept.get(name, 0)) for name in names}
    counts = [group.counts.get(state, 0) for state in (JobState.COMPLETED, JobState.FAILED)]
    return dict(zip(names, [*counts, group.members], strict=True))


async def _log(queue: Queue, job: Job, group: Group | None) -> list[str]:
    if group is None:
        return []
    found = await get_errors(queue, job.id, limit=LOGGED)
    return [f"{one.url}: {one.error}" for one in found.errors]


async def _current(queue: Queue, group: Group) -> str | None:
    for page in await queue.list(group=group.id, kind=SCRAPE, state=JobState.ACTIVE, limit=1):
        url: str | None = page.payload.get("url")
        return url
    return None


def _waiting(job: Job, running: Status) -> tuple[Status, str]:
    match job.state:
        case JobState.PAUSED:
            return "paused", "Paused"
        case JobState.ACTIVE | JobState.WAITING:
            return running, "Runs"
        case _:
            return "starting", "Waits to begin"


def _ended(job: Job, kind: Kind, percent: int, source: str | None, **known: Any) -> Operation:
    match job.state:
        case JobState.FAILED:
            said = why_failed(job)[1]
            return _made(job, kind, "failed", percent, said, source, error=said, **known)
        case JobState.CANCELLED:
            said = job.error or "cancelled"
            return _made(job, kind, "cancelled", percent, said, source, **known)
        case _:
            return _made(job, kind, "completed", 100, "Done", source, **known)


def _made(
    job: Job, kind: Kind, status: Status, percent: int, said: str, source: str | None, **known: Any
) -> Operation:
    payload = job.payload if isinstance(job.payload, dict) else {}
    return Operation(
        id=job.id,
        kind=kind,
        status=status,
        percent=percent,
        message=said,
        tenant=job.tenant,
        source=source,
        title=str(payload.get("url") or payload.get("title") or job.kind),
        created_at=job.created_at,
        ended_at=job.finished_at,
        **known,
    )


def _between(least: int, most: int, share: float) -> int:
    return least + int((most - least) * min(1.0, max(0.0, share)))
