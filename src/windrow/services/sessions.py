"""Crawls as far as they fed the index: pages, how many can be found, and what took how long.

A crawl of Windrow's own is known by its id, one that goes on elsewhere by the id it has there.
Everything is read from the crawl's job and the notes of its group, so it is the same on any server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, Literal

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.documents import Pending
from windrow.errors import JobNotFound
from windrow.ids import is_id
from windrow.pipelines.index.sessions import Spent, Subject, is_opened, read_notes
from windrow.pipelines.knowledge.handing import (
    SESSION,
    SessionPayload,
    pages_source,
    session_id,
    session_tag,
)
from windrow.pipelines.web.payloads import BATCH, CRAWL, SCRAPE
from windrow.queue.job import LIVE, Job, JobState
from windrow.queue.queue import Queue
from windrow.services.knowledge import COLLECTION
from windrow.services.operations import LOOKED_AT, get_operation, look_at_pending
from windrow.services.web import count_raced, get_crawl

Status = Literal["crawling", "indexing", "completed", "failed", "cancelled"]
ENDED: Final[frozenset[Status]] = frozenset({"completed", "failed", "cancelled"})
FETCH: Final = "fetch"  # by the clock, from the beginning to the last page; other steps add up
MOST: Final = 100
LOOKED_THROUGH: Final = 1000  # crawls, for those that fed the index
PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    crawl: str  # as whoever began it calls it
    is_handed: bool  # the crawl goes on elsewhere
    status: Status
    url: str | None
    sources: Sequence[str]
    pages: int
    indexed: int  # pages that could be found, if only until others took their place
    failed: int  # pages that could not be had, had no text, or were not taken by the index
    started_at: datetime
    ended_at: datetime | None
    seconds: Mapping[str, float] = field(default_factory=dict)  # by step


async def get_session(queue: Queue, id: str, *, tenant: str | None = None) -> Session:
    """The session of a crawl, by its own id or, of one elsewhere, by the one it has there. Raises
    JobNotFound."""
    ids = [id, session_id(tenant, id)] if is_id(id) else [session_id(tenant, id)]
    found = await queue.get_many(ids)
    for one in ids:
        job = found.get(one)
        if job is not None and (tenant is None or job.tenant == tenant):
            session = await _describe(queue, job)
            if session is not None:
                return session
    raise JobNotFound(id)


async def list_sessions(
    queue: Queue, *, tenant: str | None = None, limit: int = MOST
) -> list[Session]:
    """The newest first."""
    found: list[Session] = []
    for kind in (CRAWL, BATCH, SESSION):
        jobs = await queue.list(kind=kind, tenant=tenant, limit=LOOKED_THROUGH)
        jobs = sorted(jobs, key=lambda job: job.created_at, reverse=True)
        of_kind: list[Session] = []
        for job in jobs:
            if len(of_kind) == limit:
                break
            session = await _describe(queue, job)
            if session is not None:
                of_kind.append(session)
        found += of_kind
    return sorted(found, key=lambda one: one.started_at, reverse=True)[:limit]


async def _describe(queue: Queue, job: Job) -> Session | None:
    if job.kind == SESSION:
        return await _handed(queue, job)
    if job.kind == CRAWL and isinstance(job.payload, dict) and job.payload.get("feed"):
        return await _own(queue, job)
    if job.kind in (CRAWL, BATCH) and await is_opened(queue, job.id):
        return await _unfed(queue, job)
    return None


async def _own(queue: Queue, job: Job) -> Session | None:
    if job.state is JobState.COMPLETED and not await is_opened(queue, job.id):
        return None  # nothing was noted of it: it is older than this
    crawl = await get_operation(queue, job.id)
    raced = await count_raced(queue, job.id) if crawl.failed else 0
    indexed = await read_notes(queue, job.id, "indexed")
    refused = await _without(queue, job.id, "failed", indexed)
    spent = await _spent(queue, job.id)
    status: Status = "crawling"
    if crawl.status in ("completed", "failed", "cancelled"):
        status = crawl.status
    elif crawl.status == "document_storage":
        status = "indexing"
    started_at = job.started_at or job.created_at
    return Session(
        id=job.id,
        crawl=job.id,
        is_handed=False,
        status=status,
        url=crawl.title,
        sources=[crawl.source] if crawl.source else [],
        pages=crawl.pages - raced,
        indexed=len(indexed),
        failed=crawl.failed - raced + len(refused) + crawl.lost,
        started_at=started_at,
        ended_at=_last(job.finished_at, spent) if status in ENDED else None,
        seconds=_by_step(spent, started_at, job.finished_at),
    )


async def _unfed(queue: Queue, job: Job) -> Session:
    """A crawl or batch for no source of its own: its pages are of the sources of their sites."""
    crawl = await get_crawl(queue, job.id)
    raced = await count_raced(queue, job.id) if crawl.failed else 0
    indexed = await read_notes(queue, job.id, "indexed")
    refused = await _without(queue, job.id, "failed", indexed)
    spent = await _spent(queue, job.id)
    sources = await read_notes(queue, job.id, "source")
    waiting, is_coming = await _waiting(queue, job, sources)
    status: Status = "crawling" if crawl.status == "scraping" else crawl.status
    if status == "completed" and is_coming:
        status = "indexing"
    started_at = job.started_at or job.created_at
    return Session(
        id=job.id,
        crawl=job.id,
        is_handed=False,
        status=status,
        url=crawl.url,
        sources=sources,
        pages=crawl.completed + crawl.failed - raced + crawl.pending,
        indexed=len(indexed),
        failed=crawl.failed - raced + len(refused) + (0 if is_coming else waiting),
        started_at=started_at,
        ended_at=_last(crawl.ended_at, spent) if status in ENDED else None,
        seconds=_by_step(spent, started_at, crawl.ended_at),
    )


async def is_indexing(queue: Queue, job: Job) -> bool:
    """Whether a page, or pages of a crawl or batch, are still to be written to the index."""
    if job.kind == SCRAPE:
        result = job.result or {}
        url = result.get("metadata", {}).get("url") or job.payload["url"]
        sources = [pages_source(job.tenant, url).id]
    else:
        sources = await read_notes(queue, job.id, "source")
    looks = [await look_at_pending(queue, partial(_count, queue, job, one)) for one in sources]
    return any(is_coming for _, is_coming in looks)


async def _handed(queue: Queue, job: Job) -> Session:
    crawl = msgspec.convert(job.payload, SessionPayload).crawl
    pages = await read_notes(queue, job.id, "page")
    indexed = await read_notes(queue, job.id, "indexed")
    failed = await _without(queue, job.id, "failed", pages)
    sources = await read_notes(queue, job.id, "source")
    spent = await _spent(queue, job.id)
    events = await _events(queue, job.id)
    over: dict[str, datetime] = {name: at for name, at in events.items() if name in ENDED}
    ended_at = min(over.values(), default=None)
    waiting, is_coming = await _waiting(queue, job, sources)
    status: Status = "crawling"
    if ended_at is not None:
        status = "indexing" if is_coming else _worst(over)
    started_at = min([job.created_at, *events.values()])
    return Session(
        id=job.id,
        crawl=crawl,
        is_handed=True,
        status=status,
        url=None,
        sources=sources,
        pages=len(pages) + len(failed),
        indexed=len(indexed),
        failed=len(failed) + (0 if is_coming else waiting),
        started_at=started_at,
        ended_at=_last(ended_at, spent) if status in ENDED else None,
        seconds=_by_step(spent, started_at, ended_at),
    )


async def _waiting(queue: Queue, job: Job, sources: Sequence[str]) -> tuple[int, bool]:
    """How many pages wait for the index, and whether it is still to come to some of them."""
    # First: what feeds the index has enqueued what writes it once it has ended.
    is_fed = not await queue.list(tag=session_tag(job.id), state=list(LIVE), limit=1)
    looks = [await look_at_pending(queue, partial(_count, queue, job, one)) for one in sources]
    waiting = sum(pending.waiting for pending, _ in looks)
    return waiting, waiting > 0 and (not is_fed or any(is_coming for _, is_coming in looks))


async def _count(queue: Queue, job: Job, source: str) -> Pending:
    return await Catalog(queue.database).documents.count_pending(
        job.tenant, COLLECTION, source, run=job.id, limit=LOOKED_AT
    )


async def _without(queue: Queue, id: str, subject: Subject, others: Sequence[str]) -> set[str]:
    """What was noted on a subject and not among others: a page that failed may have come later."""
    return set(await read_notes(queue, id, subject)) - set(others)


async def _events(queue: Queue, id: str) -> dict[str, datetime]:
    """When something was told of a crawl elsewhere for the first time."""
    told: dict[str, datetime] = {}
    for said in await read_notes(queue, id, "event"):
        name, _, text = said.partition(" ")
        at = datetime.fromisoformat(text)
        told[name] = min(at, told.get(name, at))
    return told


async def _spent(queue: Queue, id: str) -> list[Spent]:
    noted = await read_notes(queue, id, "seconds")
    return [msgspec.json.decode(said, type=Spent) for said in noted]


def _by_step(
    spent: Sequence[Spent], started_at: datetime, fetched_at: datetime | None
) -> dict[str, float]:
    seconds: defaultdict[str, float] = defaultdict(float)
    if fetched_at is not None:
        seconds[FETCH] = max(0.0, (fetched_at - started_at).total_seconds())
    for one in spent:
        for step, part in one.seconds.items():
            seconds[step] += part
    return {step: round(total, 4) for step, total in seconds.items()}


def _last(ended_at: datetime | None, spent: Sequence[Spent]) -> datetime | None:
    """The end of a crawl, or of the last that the index did for it."""
    return max([one.ended_at for one in spent] + ([ended_at] if ended_at else []), default=None)


def _worst(over: Mapping[str, datetime]) -> Status:
    return "failed" if "failed" in over else "cancelled" if "cancelled" in over else "completed"
