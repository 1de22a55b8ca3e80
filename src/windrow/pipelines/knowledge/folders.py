"""`folder.ingest`, `folder.scan`, `folder.delete` and the same of projects.

One job looks at the whole folder and enqueues what differs from what is known: files that are new
or changed, that are gone, or that were moved. Those it can do nothing with it notes with the
reason. All of this is written by the transaction that completes it, so a run that dies has done
nothing, and a second look at an unchanged folder finds nothing to do.
"""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo
from windrow.catalog.sources import SourceNote, SourceRow
from windrow.catalog.writer import SourceText
from windrow.errors import FileGone
from windrow.ingest.files.names import to_normal_path, to_path, to_text
from windrow.ingest.files.walk import (
    Changes,
    KnownFile,
    SkippedFile,
    Walk,
    WalkOptions,
    compare,
    walk,
)
from windrow.ingest.project import find_repository, without_credentials
from windrow.pipelines.index.tidying import tidy_job
from windrow.pipelines.knowledge.context import (
    SECRETS_MARK,
    Item,
    Knowledge,
    branch_of,
    documents_of,
    enclosing,
    folder_source,
    get_source,
    options_of,
    path_of,
    prefix_of,
    secrets_mark,
    sources_of,
)
from windrow.pipelines.knowledge.items import FilePayload, FolderPayload, ProjectPayload
from windrow.pipelines.knowledge.refreshing import unplan_refresh
from windrow.queue.job import Job, NewJob, Priority
from windrow.queue.outcome import Done


async def scan_folder(knowledge: Knowledge, job: Job, payload: FolderPayload) -> Done:
    item = Item.of(job)
    top = to_normal_path(payload.folder_path)
    source, is_known = await _folder_source(knowledge, item, top, payload)
    return await scan(knowledge, job, source, top, is_known=is_known)


async def delete_folder(knowledge: Knowledge, job: Job, payload: FolderPayload) -> Done:
    """Forget a folder: the source, if it is one; else the files below it."""
    item = Item.of(job)
    return await _forget(knowledge, item, to_normal_path(payload.folder_path))


async def scan_project(knowledge: Knowledge, job: Job, payload: ProjectPayload) -> Done:
    item = Item.of(job)
    top = to_normal_path(payload.project_root)
    known = {source.uri: source for source in await sources_of(knowledge, item)}
    source: SourceRow | None = known.get(to_text(top))
    is_known = source is not None or payload.source is not None  # which was removed just now
    if source is None:
        source = folder_source(item, top, "project", WalkOptions())
    repository = await asyncio.to_thread(find_repository, top)
    remote = payload.git_remote or (repository.remote if repository else None)
    options = dict(source.options)
    if remote:
        options["git_remote"] = without_credentials(remote)
    if payload.project_type:
        options["project_type"] = payload.project_type
    source = replace(_plain(source), options=options)
    if repository is not None:
        await _forget_branches(knowledge, source, await asyncio.to_thread(repository.branches))
    return await scan(knowledge, job, source, top, is_known=is_known)


async def delete_project(knowledge: Knowledge, job: Job, payload: ProjectPayload) -> Done:
    item = Item.of(job)
    return await _forget(knowledge, item, to_normal_path(payload.project_root))


async def scan(
    knowledge: Knowledge, job: Job, source: SourceRow, top: Path, *, is_known: bool
) -> Done:
    """Look at a folder of a source, and enqueue what differs from what is known of it. A source
    that was known and is removed meanwhile does not come back."""
    item = Item.of(job)
    options = options_of(source)
    root = to_path(source.uri)
    prefix = prefix_of(source, top)
    catalog = Catalog(knowledge.queue.database)
    try:
        found = await asyncio.to_thread(
            walk, top, options, ignore_files=knowledge.ignore_files, root=root
        )
    except FileGone as gone:
        if top == root:
            # A disk that is not mounted looks like this too: what is known of it stays.
            note = SourceNote(source.tenant, source.id, error=str(gone))
            await Catalog(knowledge.queue.database).sources.put([note])
            raise
        found = Walk()
    branch = await asyncio.to_thread(branch_of, top, item.branch)
    documents = await documents_of(knowledge, source, prefix=prefix, branch=branch)
    known = {path_of(document).removeprefix(prefix): document for document in documents}
    changes = _compare(found, known, secrets_mark(source))
    refused = [one for one in found.skipped if not _is_noted(one, known.get(one.path))]
    # From here on a transaction may be open: nothing slow comes after this.
    note = SourceNote(source.tenant, source.id)
    await catalog.sources.put([source, note], are_known=is_known, tx=job.tx)
    texts = [_skipped_text(source, branch, prefix, one) for one in refused]
    put = await catalog.writer.put(texts, known=documents, tx=job.tx)
    then = _jobs(item, job, source, top, branch, changes)
    if any(one.before is not None and one.before.content for one in put):
        then.append(tidy_job())
    return Done(_report(changes, found), then=then)


def _compare(found: Walk, known: dict[str, DocumentInfo], mark: int) -> Changes:
    """What has changed. What the walk skipped is there, and noted anew. What was read under other
    rules for secrets is read again."""
    skipped = {skipped.path for skipped in found.skipped}
    files = {}
    for path, document in known.items():
        if path in skipped:
            continue
        is_settled = document.is_searchable or document.skipped is not None
        is_settled &= document.metadata.get(SECRETS_MARK, 0) == mark
        mtime_ns = int(document.metadata.get("mtime_ns") or 0)
        files[path] = KnownFile(path, document.size, mtime_ns, is_settled)
    return compare(found.files, files, unread=found.unread)


def _jobs(
    item: Item, job: Job, source: SourceRow, top: Path, branch: str, changes: Changes
) -> list[NewJob]:
    """An item for each difference: of a scan nobody waits for, as background work."""
    priority = Priority.SCAN if job.kind.endswith(".scan") else item.priority

    def file_item(op: Any, path: str) -> NewJob:
        payload = FilePayload(source=source.id, file_path=_text_below(top, path))
        return item.follow_up("file", op, payload, branch=branch, priority=priority)

    moved = [
        item.follow_up(
            "rename",
            "update",
            {
                "source": source.id,
                "old_path": _text_below(top, before),
                "new_path": _text_below(top, after.path),
            },
            branch=branch,
            priority=priority,
        )
        for before, after in changes.moved
    ]
    return [
        *moved,
        *(file_item("delete", path) for path in changes.gone),
        *(file_item("ingest", file.path) for file in changes.new),
        *(file_item("update", file.path) for file in changes.changed),
    ]


def _report(changes: Changes, found: Walk) -> dict[str, Any]:
    return {
        "new": len(changes.new),
        "changed": len(changes.changed),
        "gone": len(changes.gone),
        "moved": len(changes.moved),
        "unchanged": changes.unchanged,
        "skipped": len(found.skipped),
        "unread": [to_text(folder) for folder in found.unread],
        "left_out": dict(found.left_out),
    }


def _is_noted(skipped: SkippedFile, document: DocumentInfo | None) -> bool:
    return document is not None and (document.skipped, document.size) == (
        skipped.reason,
        skipped.size,
    )


def _skipped_text(source: SourceRow, branch: str, prefix: str, skipped: SkippedFile) -> SourceText:
    """A file that is not read, and why."""
    uri = to_text(prefix + skipped.path)
    return SourceText(
        tenant=source.tenant,
        collection=source.collection,
        source=source.id,
        uri=uri,
        branch=branch,
        skipped=skipped.reason,
        title=uri.rpartition("/")[2],
        tags=source.tags,
        metadata={"mtime_ns": skipped.mtime_ns, SECRETS_MARK: secrets_mark(source)},
        dated_at=datetime.fromtimestamp(skipped.mtime_ns / 1e9, UTC) if skipped.mtime_ns else None,
        size=skipped.size,
    )


async def _folder_source(
    knowledge: Knowledge, item: Item, top: Path, payload: FolderPayload
) -> tuple[SourceRow, bool]:
    """The source a folder is of: named, its own, or one that it is in; else a new one. Whether it
    is known."""
    sources = await sources_of(knowledge, item)
    found: SourceRow | None = None
    if payload.source is not None:
        found = await get_source(knowledge, item, payload.source)
    if found is None:
        found = enclosing(sources, top)
    if found is None:
        new = folder_source(item, top, "folder", _given(payload, WalkOptions()))
        return new, payload.source is not None  # which was removed just now
    if found.uri != to_text(top):
        return _plain(found), True
    given = msgspec.to_builtins(_given(payload, options_of(found)))
    return replace(_plain(found), options={**found.options, **given}), True


def _given(payload: FolderPayload, options: WalkOptions) -> WalkOptions:
    said: dict[str, Any] = {
        "recursive": payload.recursive,
        "max_depth": payload.recursive_depth,
        "patterns": payload.patterns,
        "ignore_patterns": payload.ignore_patterns,
    }
    changes = {name: value for name, value in said.items() if value is not None}
    return msgspec.structs.replace(options, **changes)


async def _forget(knowledge: Knowledge, item: Item, top: Path) -> Done:
    sources = await sources_of(knowledge, item)
    source = enclosing(sources, top)
    if source is None:
        return Done({"dropped": f"{to_text(top)} is in no source"})
    catalog = Catalog(knowledge.queue.database)
    if source.uri == to_text(top):
        documents = await documents_of(knowledge, source)
        await unplan_refresh(knowledge.queue, source)
        await catalog.sources.delete(source.tenant, [source.id])
    else:
        documents = await documents_of(knowledge, source, prefix=prefix_of(source, top))
        await catalog.documents.delete([document.id for document in documents])
    return Done({"deleted": len(documents)}, then=[tidy_job()])


async def _forget_branches(knowledge: Knowledge, source: SourceRow, branches: set[str]) -> None:
    """Documents of branches that are no more."""
    documents = await documents_of(knowledge, source)
    gone = [one.id for one in documents if one.branch and one.branch not in branches]
    if gone:
        await Catalog(knowledge.queue.database).documents.delete(gone)
        await knowledge.queue.enqueue_many([tidy_job()])


def _plain(source: SourceRow) -> SourceRow:
    """A source as it is put, without what was noted of it."""
    names = SourceRow.__struct_fields__
    return SourceRow(**{name: getattr(source, name) for name in names})


def _text_below(top: Path, path: str) -> str:
    return to_text(os.path.join(top, path))
