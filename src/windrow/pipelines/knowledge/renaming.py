"""`rename.update`: a file or folder is somewhere else now. Paths are rewritten, and nothing is
embedded again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo, Move
from windrow.catalog.sources import Source
from windrow.errors import IngestError
from windrow.ingest.files.content import DEFAULT, read_file
from windrow.ingest.files.names import to_normal_path, to_text
from windrow.pipelines.knowledge.context import (
    Item,
    Knowledge,
    branch_of,
    documents_of,
    enclosing,
    path_of,
    prefix_of,
    sources_of,
    uri_below,
)
from windrow.pipelines.knowledge.feeding import label_jobs
from windrow.pipelines.knowledge.items import FilePayload, RenamePayload
from windrow.queue.job import Job, NewJob
from windrow.queue.outcome import Done


async def rename(knowledge: Knowledge, job: Job, payload: RenamePayload) -> Done:
    item = Item.of(job)
    old = to_normal_path(payload.old_path)
    new = to_normal_path(payload.new_path)
    sources = await sources_of(knowledge, item)
    before, after = enclosing(sources, old), enclosing(sources, new)
    if before is None or before.kind == "file":
        # A file of its own is known by its path alone.
        return Done({"moved": 0}, then=_anew(item, payload, is_known=before is not None))
    if after is None or after.id != before.id:
        return Done({"moved": 0}, then=_anew(item, payload, is_known=True))
    moves = await _moves(knowledge, item, before, old, new, is_folder=payload.is_folder)
    contents = await Catalog(knowledge.queue.database).documents.move([move for move, _ in moves])
    then = label_jobs(contents, tenant=item.tenant, priority=item.priority)
    if not payload.is_folder:
        then += await _changed_too(item, before, new, [document for _, document in moves])
    return Done({"moved": len(moves)}, then=then)


async def _moves(
    knowledge: Knowledge, item: Item, source: Source, old: Path, new: Path, *, is_folder: bool
) -> list[tuple[Move, DocumentInfo]]:
    branch = await asyncio.to_thread(branch_of, new, item.branch)
    if is_folder:
        old_prefix, new_prefix = prefix_of(source, old), prefix_of(source, new)
        documents = await documents_of(knowledge, source, prefix=old_prefix, branch=branch)
        return [
            (
                Move(one.id, to_text(new_prefix + path_of(one).removeprefix(old_prefix))),
                one,
            )
            for one in documents
        ]
    found = await Catalog(knowledge.queue.database).documents.find(
        source.tenant, source.collection, source.id, [uri_below(source, old)]
    )
    uri = uri_below(source, new)
    return [(_move(one, uri), one) for one in found if one.branch == branch]


def _move(document: DocumentInfo, uri: str) -> Move:
    """A title that was the name of the file is the new name."""
    is_named = document.title == document.uri.rpartition("/")[2]
    return Move(document.id, uri, title=uri.rpartition("/")[2] if is_named else None)


async def _changed_too(
    item: Item, source: Source, new: Path, moved: list[DocumentInfo]
) -> list[NewJob]:
    """A file that is not what it was before it was moved, or was not known, is ingested."""
    try:
        content = await asyncio.to_thread(read_file, new, DEFAULT)
    except IngestError:
        return []
    if any(one.content_hash == content.sha256 for one in moved):
        return []
    payload = FilePayload(source=source.id, file_path=to_text(new))
    return [item.follow_up("file", "ingest", payload, priority=item.priority)]


def _anew(item: Item, payload: RenamePayload, *, is_known: bool) -> list[NewJob]:
    """From one source to another: gone there, new here."""
    if payload.is_folder:
        jobs = [item.follow_up("folder", "scan", {"folder_path": payload.new_path})]
        if is_known:
            jobs.append(item.follow_up("folder", "delete", {"folder_path": payload.old_path}))
        return jobs
    jobs = [item.follow_up("file", "ingest", FilePayload(file_path=payload.new_path))]
    if is_known:
        jobs.append(item.follow_up("file", "delete", FilePayload(file_path=payload.old_path)))
    return jobs
