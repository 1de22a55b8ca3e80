"""`library.ingest`, `library.update` and `library.delete`: the documentation of a package, by name
and version: at an address (crawled), in a folder (scanned), or of an installed distribution."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.sources import SourceNote, SourceRow
from windrow.catalog.writer import SourceText
from windrow.ingest.files.names import to_normal_path, to_text
from windrow.ingest.files.walk import WalkOptions
from windrow.ingest.library import LibraryPage, read_distribution
from windrow.pipelines.index.tidying import tidy_job
from windrow.pipelines.knowledge.context import Item, Knowledge, documents_of, get_source, source_id
from windrow.pipelines.knowledge.feeding import write_jobs
from windrow.pipelines.knowledge.folders import scan
from windrow.pipelines.knowledge.items import LibraryPayload
from windrow.pipelines.knowledge.refreshing import unplan_refresh
from windrow.pipelines.knowledge.sites import crawl_job, find_crawl
from windrow.queue.job import Job
from windrow.queue.outcome import Done

PATTERNS: Final = ("*.md", "*.markdown", "*.rst", "*.txt", "*.html", "*.htm", "*.pdf", "*.epub")
DEPTH: Final = 2  # links from the address of a library
MOST_PAGES: Final = 50


async def ingest_library(knowledge: Knowledge, job: Job, payload: LibraryPayload) -> Done:
    item = Item.of(job)
    known = await get_source(knowledge, item, library_id(payload))
    source = _source(item, payload, known)
    is_known = known is not None or payload.source is not None  # which was removed just now
    if source.uri.startswith(("http://", "https://")):
        return await _crawl(knowledge, job, item, source, is_known=is_known)
    if source.uri.startswith(("/", "file:/")):
        return await scan(knowledge, job, source, to_normal_path(source.uri), is_known=is_known)
    pages = await asyncio.to_thread(
        read_distribution, payload.library_name, payload.library_version
    )
    return await _store(knowledge, item, source, pages, is_known=is_known)


async def delete_library(knowledge: Knowledge, job: Job, payload: LibraryPayload) -> Done:
    item = Item.of(job)
    source = await get_source(knowledge, item, library_id(payload))
    if source is None:
        return Done({"dropped": f"there is no library {payload.library_name}"})
    documents = await documents_of(knowledge, source)
    await unplan_refresh(knowledge.queue, source)
    await Catalog(knowledge.queue.database).sources.delete(item.tenant, [source.id])
    return Done({"deleted": len(documents)}, then=[tidy_job()])


def library_id(payload: LibraryPayload) -> str:
    return payload.source or source_id(f"{payload.library_name}:{payload.library_version}")


def _source(item: Item, payload: LibraryPayload, known: SourceRow | None) -> SourceRow:
    """The source of a library, as it is said to be now."""
    name = f"{payload.library_name} {payload.library_version}".strip()
    uri = payload.source_url or (known.uri if known else f"library:{name}")
    if uri.startswith(("/", "file:/")):
        uri = to_text(to_normal_path(uri))
    options = dict(known.options) if known else msgspec.to_builtins(WalkOptions(patterns=PATTERNS))
    return SourceRow(
        tenant=item.tenant,
        id=library_id(payload),
        collection=item.collection,
        kind="library",
        uri=uri,
        title=name,
        options=options
        | {"library_name": payload.library_name, "library_version": payload.library_version},
        tags=known.tags if known else (payload.library_name,),
        refresh_seconds=known.refresh_seconds if known else None,
    )


async def _crawl(
    knowledge: Knowledge, job: Job, item: Item, source: SourceRow, *, is_known: bool
) -> Done:
    running = await find_crawl(knowledge.queue, item.tenant, source.id)
    if running is not None:
        return Done({"crawl": running})
    options = {"limit": MOST_PAGES, "maxDiscoveryDepth": DEPTH}
    crawl = crawl_job(source, {**options, **source.options.get("crawl", {})})
    await Catalog(knowledge.queue.database).sources.put([source], are_known=is_known, tx=job.tx)
    return Done({"crawl": crawl.id}, then=[crawl])


async def _store(
    knowledge: Knowledge,
    item: Item,
    source: SourceRow,
    pages: Sequence[LibraryPage],
    *,
    is_known: bool,
) -> Done:
    """The pages of a distribution; those that are known and not among them are gone."""
    known = await documents_of(knowledge, source)
    uris = {page.uri for page in pages}
    gone = [document.id for document in known if document.uri not in uris]
    note = SourceNote(source.tenant, source.id)
    catalog = Catalog(knowledge.queue.database)
    await catalog.sources.put([source, note], are_known=is_known)
    put = await catalog.writer.put([_text(source, page) for page in pages], known=known)
    if gone:
        await catalog.documents.delete(gone)
    new = [one.awaited for one in put if one.awaited is not None]
    then = write_jobs(new, tenant=item.tenant, priority=item.priority)
    if gone:
        then.append(tidy_job())
    return Done({"documents": len(pages), "new": len(new), "gone": len(gone)}, then=then)


def _text(source: SourceRow, page: LibraryPage) -> SourceText:
    return SourceText(
        tenant=source.tenant,
        collection=source.collection,
        source=source.id,
        uri=page.uri,
        text=page.text,
        title=page.title,
        language="markdown",
        tags=source.tags,
    )
