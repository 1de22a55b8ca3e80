"""Documents that somebody hands in: files that are uploaded, pages that another crawler fetched.

Their rows are written by whoever takes them in, so that no payload has to hold a text; then this
job, which can be followed, gives them to the index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from windrow.pipelines.knowledge.feeding import write_jobs
from windrow.pipelines.knowledge.items import QUEUE
from windrow.pipelines.knowledge.sites import KEPT_SECONDS
from windrow.queue.documents import (
    ContentRow,
    DocumentInfo,
    DocumentRow,
    SourceNote,
    SourceRow,
    content_id,
)
from windrow.queue.ids import new_id
from windrow.queue.job import Job, NewJob, Priority
from windrow.queue.outcome import Done
from windrow.queue.queue import Queue

FEED: Final = "source.feed"


class HandedPayload(msgspec.Struct, frozen=True):
    """Documents, and the contents they are to be found by."""

    documents: dict[str, str]
    title: str = ""
    sources: tuple[str, ...] = ()
    unchanged: int = 0

    def awaits(self, document: DocumentInfo) -> bool:
        """Whether a document still waits for what it was handed in with."""
        return document.pending is not None and document.pending == self.documents[document.id]


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


async def hand_in(
    queue: Queue, tenant: str | None, texts: Sequence[Handed], *, title: str, id: str | None = None
) -> str:
    """Keep texts as documents, and enqueue what makes them searchable; the id of that job. Their
    sources are there already. What is known in the same words is not written again."""
    sources = {one.source.id: one.source for one in texts}
    documents: dict[str, str] = {}
    unchanged = 0
    rows, contents = [], []
    for one in texts:
        before = await _before(queue, one)
        row, content = _row(one, before)
        if before is not None and before.is_settled_with(row.pending):
            unchanged += 1
        else:
            documents[row.id] = content.id
        rows.append(row)
        contents.append(content)
    await queue.store.put_documents(rows, contents)
    await queue.store.put_sources([SourceNote(one.tenant, one.id) for one in sources.values()])
    payload = HandedPayload(documents, title, tuple(sources), unchanged)
    job = NewJob(
        FEED,
        msgspec.to_builtins(payload),
        queue=QUEUE,
        priority=Priority.NOTE,
        tenant=tenant,
        id=id or new_id(),
        tags=[f"source:{one}" for one in sources] if len(sources) == 1 else [],
        retention=KEPT_SECONDS,
    )
    [inserted] = await queue.enqueue_many([job])
    return inserted.id


async def feed(queue: Queue, job: Job, payload: HandedPayload) -> Done:
    """Give to the index what is still there and still waits for the same words."""
    found = await queue.store.get_documents(list(payload.documents))
    waiting = [payload.documents[one.id] for one in found if payload.awaits(one)]
    then = write_jobs(waiting, tenant=job.tenant, priority=job.priority)
    return Done({"documents": len(payload.documents), "written": len(then)}, then=then)


async def _before(queue: Queue, one: Handed) -> DocumentInfo | None:
    source = one.source
    found = await queue.store.find_documents(source.tenant, source.collection, source.id, [one.uri])
    return found[0] if found else None


def _row(one: Handed, before: DocumentInfo | None) -> tuple[DocumentRow, ContentRow]:
    encoded = one.text.encode("utf-8", "replace")
    digest = hashlib.sha256(encoded).hexdigest()
    id = before.id if before else new_id()
    shared = None
    if before is not None and before.content_hash == digest:
        shared = before.pending or before.content
    pending = shared or content_id(id, digest)
    source = one.source
    row = DocumentRow(
        id=id,
        tenant=source.tenant,
        collection=source.collection,
        source=source.id,
        uri=one.uri,
        title=one.title or one.uri,
        language=one.language,
        tags=tuple(dict.fromkeys([*source.tags, *one.tags])),
        metadata=one.metadata,
        content_hash=digest,
        pending=pending,
        size=len(encoded),
        dated_at=one.dated_at,
    )
    return row, ContentRow(pending, source.tenant, source.collection, one.text)
