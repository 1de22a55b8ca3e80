"""`file.ingest`, `file.update` and `file.delete`: many files in one go.

The rows of a batch are written before its jobs are completed, in one transaction for all jobs that
were claimed together, and only if their lease still holds: a worker that was stopped for too long
writes nothing over what another found since. A run that dies before the completion is run again and
writes the same; what the index is to do is enqueued by the completion.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo
from windrow.catalog.sources import SourceRow
from windrow.catalog.writer import PutText, SourceText
from windrow.errors import (
    ConversionError,
    FileGone,
    FileRefused,
    IngestError,
    LeaseLost,
    UnsupportedFormat,
)
from windrow.ingest.files.content import FileContent, FileText, FileTooLarge, SizeLimits, read_file
from windrow.ingest.files.content import to_text as text_of
from windrow.ingest.files.ignore import Judge
from windrow.ingest.files.names import to_normal_path, to_path, to_text
from windrow.ingest.files.walk import SECRET_NAME, WalkOptions
from windrow.pipelines.index.tidying import tidy_job
from windrow.pipelines.knowledge.context import (
    FOLDERS,
    SECRETS_MARK,
    Item,
    Knowledge,
    branch_of,
    enclosing,
    get_source,
    includes_secrets,
    is_orphan,
    options_of,
    orphan,
    path_below,
    secrets_mark,
    source_id,
    sources_of,
    uri_below,
)
from windrow.pipelines.knowledge.feeding import write_jobs
from windrow.pipelines.knowledge.items import FilePayload
from windrow.pipelines.knowledge.trouble import outcome_of
from windrow.queue.job import Job
from windrow.queue.outcome import Done, Fail, Outcome, Snooze
from windrow.redaction import is_secret_file, is_secret_text, redact_secrets

BATCH: Final = 64
CONFIG_LANGUAGES: Final = frozenset({"hcl", "dockerfile", "bash"})  # beside those of type "config"
SourceKey = tuple[str | None, str]  # a tenant, and the id of one of its sources
IGNORED: Final = "ignored by the rules of its folder"
SECRET_CONTENT: Final = "secret: it holds little but secrets"  # noqa: S105 - no password
EMPTY: Final = "empty"
LINKED: Final = "a symbolic link, or behind one: these are not followed"


@dataclass(slots=True)
class Wanted:
    """A file that is to be read."""

    index: int  # in the batch
    job: Job
    item: Item
    path: Path
    source: SourceRow
    uri: str
    branch: str


@dataclass(slots=True)
class Read:
    wanted: Wanted
    content: FileContent | None = None
    text: FileText | None = None
    error: IngestError | None = None  # why it has no text
    secret: str | None = None  # why it is left out as a secret
    redacted: Mapping[str, int] = field(default_factory=dict)  # secrets that were hidden, by kind
    ignored: str | None = None  # why it was not looked at


async def ingest_files(
    knowledge: Knowledge, jobs: Sequence[Job], payloads: Sequence[FilePayload]
) -> list[Outcome]:
    outcomes: list[Outcome] = [orphan(payload.source) for payload in payloads]
    wanted = await _wanted(knowledge, jobs, payloads)
    read = await asyncio.to_thread(_read_all, knowledge, wanted)
    for some in _by_source(read):
        try:
            await _store(knowledge, some, outcomes)
        except LeaseLost:
            # Somebody else has these jobs by now; whatever is said of them here is refused.
            for one in some:
                outcomes[one.wanted.index] = Snooze(0)
    return outcomes


async def delete_files(
    knowledge: Knowledge, jobs: Sequence[Job], payloads: Sequence[FilePayload]
) -> list[Outcome]:
    """Remove what is known of files: of the branch that is checked out, as the others have them
    still."""
    outcomes: list[Outcome] = [orphan(payload.source) for payload in payloads]
    wanted = await _wanted(knowledge, jobs, payloads)
    gone: list[str] = []
    for some in _by_source([Read(one) for one in wanted]):
        found = await _known(knowledge, some)
        known = {(document.uri, document.branch): document.id for document in found}
        for one in some:
            outcomes[one.wanted.index] = Done({"deleted": 0})
            id = known.get((one.wanted.uri, one.wanted.branch))
            if id is not None:
                gone.append(id)
                outcomes[one.wanted.index] = Done({"deleted": 1}, then=[tidy_job()])
    if gone:
        await Catalog(knowledge.queue.database).documents.delete(gone)
    return outcomes


async def _wanted(
    knowledge: Knowledge, jobs: Sequence[Job], payloads: Sequence[FilePayload]
) -> list[Wanted]:
    """Where each file belongs. One that is in no folder that is a source is a source of its own;
    one whose source was removed belongs nowhere."""
    known: dict[tuple[str | None, str], Any] = {}
    by_id: dict[tuple[str | None, str], SourceRow | None] = {}
    branches: dict[tuple[str, str], str] = {}
    wanted: list[Wanted] = []
    made: dict[tuple[str | None, str], SourceRow] = {}
    for index, (job, payload) in enumerate(zip(jobs, payloads, strict=True)):
        item = Item.of(job)
        path = to_normal_path(payload.file_path)
        source: SourceRow | None = None
        if payload.source is not None:
            key = (item.tenant, payload.source)
            if key not in by_id:
                by_id[key] = await get_source(knowledge, item, payload.source)
            source = by_id[key]
            if source is None:
                continue
        if source is None:
            place = (item.tenant, item.collection)
            if place not in known:
                known[place] = await sources_of(knowledge, item)
            source = enclosing(known[place], path)
        if source is None:
            source = _own_source(item, path)
            made[item.tenant, source.id] = source
        around = (os.path.dirname(path), item.branch)
        if around not in branches:
            branches[around] = branch_of(path, item.branch)
        uri = uri_below(source, path)
        wanted.append(Wanted(index, job, item, path, source, uri, branches[around]))
    if made:
        await Catalog(knowledge.queue.database).sources.put(list(made.values()))
    return wanted


def _own_source(item: Item, path: Path) -> SourceRow:
    uri = to_text(path)
    return SourceRow(
        tenant=item.tenant,
        id=source_id(uri),
        collection=item.collection,
        kind="file",
        uri=uri,
        title=to_text(path.name),
    )


def _read_all(knowledge: Knowledge, wanted: Sequence[Wanted]) -> list[Read]:
    # What is found out once for all files of a source, or of a folder of it.
    judges: dict[SourceKey, Judge] = {}
    inside: dict[tuple[SourceKey, str], bool] = {}
    limits: dict[SourceKey, SizeLimits] = {}
    read: list[Read] = []
    for one in wanted:
        source = (one.source.tenant, one.source.id)
        # The rules may have changed since the folder was looked at, and a file's place may have
        # been taken by a link. A file that somebody named itself is wanted whatever they say.
        if one.source.kind in ("folder", "project"):
            if source not in judges:
                judges[source] = Judge(to_path(one.source.uri), knowledge.ignore_files)
            if judges[source].leaves_out(path_below(one.source, one.path)):
                read.append(Read(one, ignored=IGNORED))
                continue
            around = (source, os.path.dirname(one.path))
            if around not in inside:
                inside[around] = _is_reached_without_links(one.path.parent, one.source)
            if not inside[around] or (not _follows(one.source) and os.path.islink(one.path)):
                read.append(Read(one, ignored=LINKED))
                continue
        if source not in limits:
            limits[source] = _limits_of(one.source)
        read.append(_read(one, limits[source]))
    return read


def _limits_of(source: SourceRow) -> SizeLimits:
    options = options_of(source) if source.kind in FOLDERS else WalkOptions()
    return options.limits()


def _is_reached_without_links(folder: Path, source: SourceRow) -> bool:
    """Whether no folder between the top and a file is a link, if links are not followed: one could
    lead to anything that this process may read."""
    if _follows(source):
        return True
    top = to_path(source.uri)
    below = folder.relative_to(top)
    return Path(os.path.realpath(folder)) == Path(os.path.realpath(top)) / below


def _follows(source: SourceRow) -> bool:
    return bool(source.options.get("follow_symlinks"))


def _read(wanted: Wanted, limits: SizeLimits) -> Read:
    read = Read(wanted)
    name = wanted.path.name
    try:
        read.content = read_file(wanted.path, limits.of_name(name))
        if not includes_secrets(wanted.source) and is_secret_file(to_text(name)):
            read.secret = SECRET_NAME
            return read
        read.text = text_of(to_text(name), read.content)
    except IngestError as error:
        read.error = error
    if read.text is not None and not includes_secrets(wanted.source):
        _hide_secrets(read, read.text)
    return read


def _hide_secrets(read: Read, text: FileText) -> None:
    described = text.described
    if is_secret_text(text.text, is_data=described.type not in ("document", "code")):
        read.secret, read.text = SECRET_CONTENT, None
        return
    is_config = described.type == "config" or described.language in CONFIG_LANGUAGES
    hidden = redact_secrets(text.text, is_config=is_config)
    if hidden.found:
        read.text, read.redacted = replace(text, text=hidden.text), hidden.found


def _by_source(read: Sequence[Read]) -> list[list[Read]]:
    """What is written together: of one source, by jobs of one claim."""
    by_source: dict[tuple[str | None, ...], list[Read]] = defaultdict(list)
    for one in read:
        wanted = one.wanted
        place = (wanted.item.tenant, wanted.item.collection, wanted.source.id)
        by_source[(*place, wanted.job.lease_token)].append(one)
    return list(by_source.values())


async def _known(knowledge: Knowledge, some: Sequence[Read]) -> list[DocumentInfo]:
    """What is known of these files, of all branches."""
    first = some[0].wanted
    uris = [one.wanted.uri for one in some]
    return await Catalog(knowledge.queue.database).documents.find(
        first.item.tenant, first.source.collection, first.source.id, uris
    )


async def _store(knowledge: Knowledge, some: Sequence[Read], outcomes: list[Outcome]) -> None:
    """Write what was read of one source, and say of each file what came of it."""
    found = await _known(knowledge, some)
    known = {(document.uri, document.branch): document for document in found}
    kept: list[tuple[Read, SourceText]] = []
    gone: list[str] = []
    for one in some:
        wanted = one.wanted
        before = known.get((wanted.uri, wanted.branch))
        if one.ignored or isinstance(one.error, FileGone):
            if before is not None:
                gone.append(before.id)
            outcomes[wanted.index] = _dropped(one, was_known=before is not None)
        elif one.error is not None and one.error.transient:
            # Nothing is noted: what is known stays, and a scan brings the file again.
            outcomes[wanted.index] = outcome_of(one.error)
        else:
            kept.append((one, _text(one)))
    catalog = Catalog(knowledge.queue.database)
    if kept:
        transaction = some[0].wanted.job.tx
        texts = [text for _, text in kept]
        put = await catalog.writer.put(
            texts, known=found, with_known_contents=False, tx=transaction
        )
        await transaction.save()
        source = some[0].wanted.source.id
        if await is_orphan(knowledge, some[0].wanted.item, source):
            # It was removed while its files were read: nothing was put.
            for one in some:
                outcomes[one.wanted.index] = orphan(source)
            return
        for (one, _), result in zip(kept, put, strict=True):
            outcomes[one.wanted.index] = _outcome(one, result)
    if gone:
        await catalog.documents.delete(gone)


def _digest(read: Read, content: FileContent) -> str:
    """The hash of the text that is kept: other rules for secrets make another text of a file."""
    if not read.redacted or read.text is None:
        return content.sha256
    return hashlib.sha256(read.text.text.encode("utf-8", "surrogatepass")).hexdigest()


def _text(read: Read) -> SourceText:
    """A file to be put, with its text or the reason why it has none."""
    wanted = read.wanted
    content, text = read.content, read.text
    modified_ns = content.modified_ns if content else _mtime(wanted.path)
    mtime_ns = content.mtime_ns if content else modified_ns
    if isinstance(read.error, FileRefused):
        mtime_ns = 0  # who may read it changes without its time: the next scan tries again
    metadata: dict[str, Any] = {"mtime_ns": mtime_ns, SECRETS_MARK: secrets_mark(wanted.source)}
    if read.redacted:
        metadata["redacted"] = dict(read.redacted)
    if text is not None:
        metadata["file_type"] = text.described.type
    title = (text.title if text else None) or wanted.uri.rpartition("/")[2]
    skipped = _why_skipped(read)
    return SourceText(
        tenant=wanted.item.tenant,
        collection=wanted.source.collection,
        source=wanted.source.id,
        uri=wanted.uri,
        branch=wanted.branch,
        text=text.text if text and skipped is None else None,
        skipped=skipped,
        title=title,
        language=(text.described.language or "") if text else "",
        tags=wanted.source.tags,
        metadata=metadata,
        dated_at=datetime.fromtimestamp(modified_ns / 1e9, UTC) if modified_ns > 0 else None,
        content_hash=_digest(read, content) if content else "",
        size=len(content.body) if content else _size(wanted.path),
    )


def _why_skipped(read: Read) -> str | None:
    if read.error is not None:
        return str(read.error)
    if read.secret is not None:
        return read.secret
    if read.text is None or read.content is None:
        raise RuntimeError(f"{read.wanted.path} was neither read nor refused")
    return None if read.text.text.strip() else EMPTY


def _outcome(read: Read, put: PutText) -> Outcome:
    """What is said of a file that was put."""
    if read.error is not None:
        return _skipped(read.error)
    if read.secret is not None:
        return Done({"skipped": read.secret}, then=[tidy_job()])
    document = put.document
    if document.pending is None:
        return Done({"skipped": document.skipped})
    if put.awaited is None:
        return Done({"document": document.id, "unchanged": True})
    item = read.wanted.item
    then = write_jobs([put.awaited], tenant=item.tenant, priority=item.priority)
    return Done({"document": document.id, "content": put.awaited}, then=then)


def _dropped(read: Read, *, was_known: bool) -> Outcome:
    why = read.ignored or str(read.error)
    return Done({"dropped": why}, then=[tidy_job()] if was_known else [])


def _skipped(error: IngestError) -> Outcome:
    """A file without a text is no failure; one that is broken is. Both are remembered, so that no
    scan brings them again before they change; one that may not be read is tried at each scan."""
    if isinstance(error, ConversionError) and not isinstance(error, FileTooLarge):
        return Fail(error)
    if isinstance(error, UnsupportedFormat | FileTooLarge | FileRefused):
        return Done({"skipped": str(error)})
    return outcome_of(error)


def _mtime(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
