"""Documents that somebody hands in: files that are uploaded, pages that another crawler fetched.

Their rows are written by whoever takes them in, so that no payload has to hold a text; then this
job, which can be followed, gives them to the index.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo
from windrow.catalog.sources import SourceNote, SourceRow
from windrow.catalog.writer import SourceText
from windrow.ids import new_id
from windrow.ingest.web.urls import origin_of
from windrow.pipelines.index.sessions import Indexed, is_opened, note_indexed, open_session
from windrow.pipelines.knowledge.context import source_id
from windrow.pipelines.knowledge.feeding import write_jobs
from windrow.pipelines.knowledge.items import QUEUE
from windrow.pipelines.knowledge.sites import KEPT_SECONDS
from windrow.queue.job import Job, NewJob, Priority
from windrow.queue.outcome import Done
from windrow.queue.queue import Queue

FEED: Final = "source.feed"
SESSION: Final = "source.session"
COLLECTION: Final = "default"  # where pages and files go that name no collection
SESSION_SECONDS: Final = 30 * 86_400  # that a session is kept, from its beginning

# Where the ids of crawls elsewhere become ids of sessions.
_SESSIONS: Final = uuid.UUID("3e2c9a57-7c55-5f0b-9a53-1d1f9f6f0c21")


class HandedPayload(msgspec.Struct, frozen=True):
    """Documents, and the contents they are to be found by."""

    documents: dict[str, str]
    title: str = ""
    sources: tuple[str, ...] = ()
    unchanged: int = 0

    def awaits(self, document: DocumentInfo) -> bool:
        """Whether a document still waits for what it was handed in with."""
        return document.pending is not None and document.pending == self.documents[document.id]


class SessionPayload(msgspec.Struct, frozen=True):
    """A crawl that goes on elsewhere, and whose pages are handed in."""

    crawl: str  # as it is called there


@dataclass(frozen=True, slots=True)
class Handed:
    """A text that was handed in for a source."""

    source: SourceRow
    uri: str
    text: str
    title: str = ""
    language: str = "markdown"
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    dated_at: datetime | None = None


def pages_source(
    tenant: str | None,
    address: str,
    collection: str = COLLECTION,
    options: Mapping[str, Any] | None = None,
) -> SourceRow:
    """The source of a site's pages that were not crawled for a source of their own: handed in by
    another crawler, or scraped, crawled or batched here. `address` is a normalised URL."""
    origin = origin_of(address)
    return SourceRow(
        tenant=tenant,
        id=source_id(f"handed:{collection}/{origin}"),
        collection=collection,
        kind="upload",
        uri=origin,
        title=origin,
        options=options or {},
    )


def session_id(tenant: str | None, crawl: str) -> str:
    """The session of a crawl elsewhere; two tenants may name theirs alike."""
    return str(uuid.uuid5(_SESSIONS, f"{tenant or ''}\n{crawl}"))


def session_tag(id: str) -> str:
    return f"session:{id}"


async def open_handed(queue: Queue, tenant: str | None, crawl: str) -> str:
    """The id of the session of a crawl elsewhere, which is there from now on. Done twice, or by two
    at once, it is one. The job is its record; the group, which ends at once so that it expires even
    if nobody tells of the crawl's end, holds its notes."""
    id = session_id(tenant, crawl)
    if await is_opened(queue, id):
        return id
    await queue.create_group(id=id, hold=True, tenant=tenant, retention=SESSION_SECONDS)
    await queue.close_group(id)
    record = NewJob(
        SESSION,
        msgspec.to_builtins(SessionPayload(crawl)),
        queue=QUEUE,
        priority=Priority.SCAN,
        tenant=tenant,
        id=id,
        retention=SESSION_SECONDS,
    )
    await queue.enqueue_many([record])
    await open_session(queue, id)
    return id


async def hand_in(
    queue: Queue,
    tenant: str | None,
    texts: Sequence[Handed],
    *,
    title: str,
    id: str | None = None,
    session: str | None = None,
) -> str:
    """Keep texts as documents, and enqueue what makes them searchable; the id of that job. Their
    sources are there already. What is known in the same words is not written again."""
    sources = {one.source.id: one.source for one in texts}
    catalog = Catalog(queue.database)
    put = await catalog.writer.put([_text(one) for one in texts])
    documents = {one.document.id: one.awaited for one in put if one.awaited is not None}
    unchanged = [one for one in put if one.awaited is None]
    await catalog.sources.put([SourceNote(one.tenant, one.id) for one in sources.values()])
    if session is not None:
        found = [one for one in unchanged if one.before is not None and one.before.is_searchable]
        await note_indexed(queue, [Indexed(session, one.document.uri) for one in found])
    payload = HandedPayload(documents, title, tuple(sources), len(unchanged))
    tags = [f"source:{one}" for one in sources] if len(sources) == 1 else []
    job = NewJob(
        FEED,
        msgspec.to_builtins(payload),
        queue=QUEUE,
        priority=Priority.NOTE,
        tenant=tenant,
        id=id or new_id(),
        tags=tags if session is None else [*tags, session_tag(session)],
        retention=KEPT_SECONDS,
    )
    [inserted] = await queue.enqueue_many([job])
    return inserted.id


async def feed(queue: Queue, job: Job, payload: HandedPayload) -> Done:
    """Give to the index what is still there and still waits for the same words."""
    found = await Catalog(queue.database).documents.get(list(payload.documents))
    waiting = [payload.documents[one.id] for one in found if payload.awaits(one)]
    then = write_jobs(waiting, tenant=job.tenant, priority=job.priority)
    return Done({"documents": len(payload.documents), "written": len(then)}, then=then)


def _text(one: Handed) -> SourceText:
    source = one.source
    return SourceText(
        tenant=source.tenant,
        collection=source.collection,
        source=source.id,
        uri=one.uri,
        text=one.text,
        title=one.title or one.uri,
        language=one.language,
        tags=tuple(dict.fromkeys([*source.tags, *one.tags])),
        metadata=one.metadata,
        dated_at=one.dated_at,
    )
