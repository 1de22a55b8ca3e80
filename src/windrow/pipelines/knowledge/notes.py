"""`content.ingest`, `content.update` and `content.delete`: texts that somebody hands in."""

from __future__ import annotations

import re
from typing import Final

from windrow.catalog import Catalog
from windrow.catalog.contents import content_id
from windrow.catalog.documents import DocumentInfo
from windrow.catalog.sources import SourceRow
from windrow.catalog.writer import SourceText, hash_text
from windrow.pipelines.index.tidying import tidy_job
from windrow.pipelines.knowledge.context import Item, Knowledge, get_source, source_id
from windrow.pipelines.knowledge.feeding import write_jobs
from windrow.pipelines.knowledge.items import ContentPayload
from windrow.queue.job import Job
from windrow.queue.outcome import Done

TITLE_CHARACTERS: Final = 80
_MARKS: Final = re.compile(r"^[#>*\-\s]+")


async def keep_note(knowledge: Knowledge, job: Job, payload: ContentPayload) -> Done:
    item = Item.of(job)
    source = await _source(knowledge, item, payload)
    before = await _find(knowledge, item, source, payload)
    if not payload.content.strip():
        return Done({"dropped": "there is nothing in it"})
    digest = hash_text(payload.content)
    tags = _tags(source, payload)
    if before is not None and before.content_hash == digest:
        tags = tuple(dict.fromkeys([*before.tags, *tags]))  # said again, it keeps what it has
    if (
        before is not None
        and before.is_settled_with(content_id(before.id, digest))
        and before.tags == tags
    ):
        return Done({"document": before.id, "unchanged": True})
    text = SourceText(
        tenant=item.tenant,
        collection=source.collection,
        source=source.id,
        uri=before.uri if before else _uri(payload.content),
        text=payload.content,
        title=payload.title or title_of(payload.content),
        language="markdown",
        tags=tags,
        metadata={"source_type": payload.source_type},
        dated_at=job.created_at,
        content_hash=digest,
        id=before.id if before else None,
    )
    writer = Catalog(knowledge.queue.database).writer
    [put] = await writer.put([text], known=[before] if before else [])
    # Also where the content is known: its labels in the index may be others now.
    then = write_jobs([put.document.pending], tenant=item.tenant, priority=item.priority)
    return Done({"document": put.document.id, "content": put.document.pending}, then=then)


async def drop_note(knowledge: Knowledge, job: Job, payload: ContentPayload) -> Done:
    item = Item.of(job)
    source = await _source(knowledge, item, payload)
    before = await _find(knowledge, item, source, payload)
    if before is None:
        return Done({"dropped": "there is no such note"})
    await Catalog(knowledge.queue.database).documents.delete([before.id])
    return Done({"deleted": 1}, then=[tidy_job()])


def title_of(text: str) -> str:
    """The beginning of the first line that says something."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    line = _MARKS.sub("", first).strip()
    if len(line) <= TITLE_CHARACTERS:
        return line
    return line[:TITLE_CHARACTERS].rsplit(" ", 1)[0] + "…"


async def _source(knowledge: Knowledge, item: Item, payload: ContentPayload) -> SourceRow:
    """Notes from one place are one source, by its name."""
    if payload.source is not None:
        named = await get_source(knowledge, item, payload.source)
        if named is not None:
            return named
    uri = f"note:{item.collection}/{payload.source_type}"
    id = payload.source or source_id(uri)
    known = await get_source(knowledge, item, id)
    if known is not None:
        return known
    row = SourceRow(item.tenant, id, item.collection, "note", uri, title=payload.source_type)
    await Catalog(knowledge.queue.database).sources.put([row])
    return row


async def _find(
    knowledge: Knowledge, item: Item, source: SourceRow, payload: ContentPayload
) -> DocumentInfo | None:
    """The note as it is known: the one that was named, or the one with this text."""
    catalog = Catalog(knowledge.queue.database)
    if payload.document_id is not None:
        found = await catalog.documents.get([payload.document_id])
    else:
        found = await catalog.documents.find(
            item.tenant, source.collection, source.id, [_uri(payload.content)]
        )
    return next((one for one in found if (one.tenant or "") == (item.tenant or "")), None)


def _uri(text: str) -> str:
    return f"note:{hash_text(text)[:16]}"


def _tags(source: SourceRow, payload: ContentPayload) -> tuple[str, ...]:
    given = (*source.tags, payload.main_tag, payload.full_tag, *payload.tags)
    return tuple(dict.fromkeys(tag for tag in given if tag))
