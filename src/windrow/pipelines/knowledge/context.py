"""What the handlers of items share: the queue, rules that hold in every folder, and how an item is
joined to the source it is of."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo, Place
from windrow.catalog.sources import Source, SourceKind, SourceRow
from windrow.errors import InvalidJob
from windrow.ingest.files.names import to_path, to_text
from windrow.ingest.files.walk import WalkOptions
from windrow.ingest.project import find_repository
from windrow.pipelines.knowledge.items import ItemType, Operation, new_item
from windrow.queue.job import Job, NewJob
from windrow.queue.outcome import Done
from windrow.queue.queue import Queue

ID_DIGITS: Final = 16
PAGE: Final = 1000
# In the metadata of a document that is a file: under which rules its secrets were looked for. New
# rules get a new number, and files are read again.
SECRETS_MARK: Final = "secrets_rules"
SECRETS_RULES: Final = 3
# Sources whose documents are files below a folder.
FOLDERS: Final = frozenset({"folder", "project", "library"})


@dataclass(frozen=True, slots=True)
class Knowledge:
    queue: Queue
    ignore_files: Sequence[Path] = field(default_factory=tuple)  # rules that hold everywhere


@dataclass(frozen=True, slots=True)
class Item:
    """Whose an item is, and where it belongs."""

    tenant: str | None
    collection: str
    branch: str
    priority: int

    @classmethod
    def of(cls, job: Job) -> Item:
        collection = job.headers.get("collection")
        if not isinstance(collection, str) or not collection:
            raise InvalidJob(f"job {job.id} has no collection among its headers")
        return cls(job.tenant, collection, str(job.headers.get("branch") or ""), job.priority)

    def follow_up(self, item_type: ItemType, op: Operation, payload: Any, **more: Any) -> NewJob:
        """Another item of the same tenant and collection."""
        return new_item(item_type, op, self.collection, payload, tenant=self.tenant, **more)


def source_id(uri: str) -> str:
    """The id of what is at an address or a path."""
    return hashlib.sha256(uri.encode("utf-8", "surrogatepass")).hexdigest()[:ID_DIGITS]


def folder_source(item: Item, top: Path, kind: SourceKind, options: WalkOptions) -> SourceRow:
    uri = to_text(top)
    return SourceRow(
        tenant=item.tenant,
        id=source_id(uri),
        collection=item.collection,
        kind=kind,
        uri=uri,
        title=to_text(top.name) or uri,
        options=msgspec.to_builtins(options),
    )


def options_of(source: SourceRow) -> WalkOptions:
    """Which files of a source are wanted; what else is kept with it is of no interest here."""
    return msgspec.convert(dict(source.options), WalkOptions)


def includes_secrets(source: SourceRow) -> bool:
    return bool(source.options.get("include_secrets"))


def secrets_mark(source: SourceRow) -> int:
    return 0 if includes_secrets(source) else SECRETS_RULES


async def get_source(knowledge: Knowledge, item: Item, id: str) -> Source | None:
    found = await Catalog(knowledge.queue.database).sources.get(item.tenant or "", [id])
    return found[0] if found else None


async def is_orphan(knowledge: Knowledge, item: Item, source: str | None) -> bool:
    """Whether an item names a source that was removed: what is left to be done for that is not."""
    return source is not None and await get_source(knowledge, item, source) is None


def orphan(source: str | None) -> Done:
    return Done({"dropped": f"its source {source} was removed"})


async def sources_of(knowledge: Knowledge, item: Item) -> list[Source]:
    """All sources of the item's tenant and collection."""
    found: list[Source] = []
    after = ("", "")
    while True:
        page = await Catalog(knowledge.queue.database).sources.page(
            item.tenant or "", item.collection, after=after, limit=PAGE
        )
        found += page
        if len(page) < PAGE:
            return found
        after = (page[-1].tenant or "", page[-1].id)


def enclosing(sources: Sequence[Source], path: Path) -> Source | None:
    """The source whose folder a path is in, the innermost of several; or the file's own."""
    best: Source | None = None
    for source in sources:
        if source.kind == "file":
            if to_path(source.uri) == path:
                return source
        elif source.kind in FOLDERS and _is_folder(source):
            top = to_path(source.uri)
            is_inner = best is None or len(source.uri) > len(best.uri)
            if is_inner and path.is_relative_to(top):
                best = source
    return best


async def documents_of(
    knowledge: Knowledge, source: SourceRow, *, prefix: str = "", branch: str | None = None
) -> list[DocumentInfo]:
    """The documents of a source, of one branch or of all; with `prefix`, a path on the disk with a
    slash at its end, those of files below it."""
    found: list[DocumentInfo] = []
    after: Place | None = None
    while True:
        page = await Catalog(knowledge.queue.database).documents.page(
            source.tenant, source.collection, source.id, after=after, limit=PAGE
        )
        found += [
            document
            for document in page
            if branch in (None, document.branch)
            and (not prefix or path_of(document).startswith(prefix))
        ]
        if len(page) < PAGE:
            return found
        after = Place(page[-1].source, page[-1].uri, page[-1].branch)


def path_of(document: DocumentInfo) -> str:
    """Of a file: its path on the disk below its source."""
    return os.fspath(to_path(document.uri))


def prefix_of(source: SourceRow, folder: Path) -> str:
    """The path of a folder below its source, with a slash at its end; nothing for the source
    itself."""
    top = to_path(source.uri)
    return "" if folder == top else f"{os.fspath(folder.relative_to(top))}/"


def uri_below(source: SourceRow, path: Path) -> str:
    """What a file is called in its source. Raises InvalidJob for one that is not in it."""
    return source.uri if source.kind == "file" else to_text(path_below(source, path))


def path_below(source: SourceRow, path: Path) -> str:
    """The path of a file from the folder that is its source. Raises InvalidJob for one that is not
    in it."""
    top, found = _top_of(source.uri), os.fspath(path)
    if found == top:
        return "."
    prefix = top if top.endswith("/") else f"{top}/"
    if not found.startswith(prefix):
        raise InvalidJob(f"{to_text(path)} is not in {source.uri}")
    return found.removeprefix(prefix)


@lru_cache(64)
def _top_of(uri: str) -> str:
    return os.fspath(to_path(uri))


def branch_of(path: Path, said: str) -> str:
    """The branch a file is of: of a file in a repository the one that is checked out, whatever is
    said, as the name `main` is often only a default."""
    repository = find_repository(path)
    if repository is not None:
        return repository.branch
    return "" if said == "main" else said


def _is_folder(source: Source) -> bool:
    return source.uri.startswith(("/", "file:/"))
