"""Reading what was ingested: a document's text as it is found now, or a part of it."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo
from windrow.errors import DocumentNotFound
from windrow.ids import is_id
from windrow.queue.queue import Queue


@dataclass(frozen=True, slots=True)
class Reading:
    """A part of a document's text, from `start` up to `end`, of so many characters in all."""

    document: DocumentInfo
    text: str
    start: int
    end: int
    characters: int


async def read_document(
    queue: Queue,
    named: str,
    *,
    tenant: str | None = None,
    source: str | None = None,
    branch: str | None = None,
    start: int = 0,
    length: int | None = None,
) -> Reading:
    """A document by its id, or by its address or path below its source. Raises DocumentNotFound,
    also for one that is another tenant's."""
    document = await find_document(queue, named, tenant=tenant, source=source, branch=branch)
    if document.content is None:
        raise DocumentNotFound(named, document.skipped or "it is not indexed yet")
    contents = await Catalog(queue.database).contents.get([document.content])
    text = contents[0].text if contents else ""
    start = min(max(start, 0), len(text))
    end = len(text) if length is None else min(start + length, len(text))
    return Reading(document, text[start:end], start, end, len(text))


async def find_document(
    queue: Queue,
    named: str,
    *,
    tenant: str | None = None,
    source: str | None = None,
    branch: str | None = None,
) -> DocumentInfo:
    """The same, whether it can be found yet or not."""
    catalog = Catalog(queue.database)
    if is_id(named):
        found = await catalog.documents.get([named])
    else:
        found = await catalog.documents.find_at(named, tenant)
    found = [
        one
        for one in found
        if tenant in (None, one.tenant)
        and source in (None, one.source)
        and branch in (None, one.branch)
    ]
    if len({one.source for one in found}) > 1:
        ids = ", ".join(sorted(one.id for one in found))
        raise DocumentNotFound(named, f"it is in several sources: {ids}")
    if not found:
        raise DocumentNotFound(named)
    return max(found, key=lambda one: (one.is_searchable, one.changed_at))
