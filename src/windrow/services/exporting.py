"""Sources on their way out and in: one line of JSON for each source and document, or a folder of
Markdown files."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo, Place
from windrow.catalog.sources import SourceRow
from windrow.catalog.writer import SourceText
from windrow.errors import InvalidOptions
from windrow.pipelines.knowledge.feeding import write_jobs
from windrow.queue.job import Priority
from windrow.queue.queue import Queue

T = TypeVar("T")

PAGE: Final = 200
_Entry = dict[str, dict[str, Any]]
_SOURCE: Final = ("id", "collection", "kind", "uri", "title", "options", "tags", "refresh_seconds")
_DOCUMENT: Final = (
    "uri",
    "branch",
    "title",
    "language",
    "tags",
    "metadata",
    "content_hash",
    "size",
    "dated_at",
)


class _Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """A document as a line has it."""

    uri: Annotated[str, msgspec.Meta(min_length=1)]
    text: str
    branch: str = ""
    title: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    content_hash: str = ""
    size: Annotated[int, msgspec.Meta(ge=0)] = 0
    dated_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


async def export_lines(queue: Queue, source: SourceRow) -> AsyncIterator[dict[str, Any]]:
    """The source, then its documents with their texts."""
    plain = msgspec.structs.asdict(source)
    yield {"source": {name: plain[name] for name in _SOURCE}}
    async for document, text in iterate_documents(queue, source):
        plain = msgspec.structs.asdict(document)
        yield {"document": {name: plain[name] for name in _DOCUMENT} | {"text": text}}


async def export_folder(queue: Queue, source: SourceRow, folder: Path) -> int:
    """A file for each document, with what is known of it at its top; how many."""
    count = 0
    for_names: set[str] = set()
    async for document, text in iterate_documents(queue, source):
        name = _file_name(document, for_names)
        head = {
            "title": document.title,
            "uri": document.uri,
            "tags": list(document.tags),
            **({} if document.dated_at is None else {"date": document.dated_at}),
        }
        lines = "".join(
            f"{key}: {msgspec.json.encode(value).decode()}\n" for key, value in head.items()
        )
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\n{lines}---\n\n{text}\n", "utf-8", "replace")
        count += 1
    return count


async def iterate_documents(
    queue: Queue, source: SourceRow
) -> AsyncIterator[tuple[DocumentInfo, str]]:
    """The documents of a source that can be found, with their texts."""
    after: Place | None = None
    catalog = Catalog(queue.database)
    while page := await catalog.documents.page(
        source.tenant, source.collection, source.id, after=after, limit=PAGE
    ):
        after = Place(page[-1].source, page[-1].uri, page[-1].branch)
        wanted = [one.content for one in page if one.content is not None]
        contents = {one.id: one.text for one in await catalog.contents.get(wanted)}
        for document in page:
            if document.content is not None and document.content in contents:
                yield document, contents[document.content]


async def import_lines(
    queue: Queue, lines: Iterable[str | bytes], *, tenant: str | None = None
) -> tuple[int, int]:
    """Sources and documents as `export_lines` wrote them; how many of each. What is there already
    is changed, and text that is the same is not indexed again. Raises InvalidOptions, which names
    the line."""
    sources = documents = 0
    source: SourceRow | None = None
    batch: list[_Document] = []
    for number, line in enumerate(lines, 1):
        entry = _entry(line, number)
        if entry is None:
            continue
        if "source" in entry:
            documents += await _store(queue, source, batch)
            source = _source(entry["source"], tenant, number)
            await Catalog(queue.database).sources.put([source])
            sources += 1
        elif source is None:
            raise InvalidOptions(f"line {number}: a document before any source")
        else:
            batch.append(_converted(entry["document"], _Document, number))
            if len(batch) >= PAGE:
                documents += await _store(queue, source, batch)
    documents += await _store(queue, source, batch)
    return sources, documents


async def _store(queue: Queue, source: SourceRow | None, batch: list[_Document]) -> int:
    if source is None or not batch:
        return 0
    texts = [_text(source, one) for one in batch]
    put = await Catalog(queue.database).writer.put(texts, with_known_contents=False)
    # Also what is known in the same words: its labels in the index may be others now.
    new = [one.document.pending for one in put]
    await queue.enqueue_many(write_jobs(new, tenant=source.tenant, priority=Priority.BULK))
    count = len(batch)
    batch.clear()
    return count


def _text(source: SourceRow, given: _Document) -> SourceText:
    return SourceText(
        tenant=source.tenant,
        collection=source.collection,
        source=source.id,
        uri=given.uri,
        branch=given.branch,
        text=given.text,
        title=given.title,
        language=given.language,
        tags=given.tags,
        metadata=given.metadata,
        dated_at=given.dated_at,
        content_hash=given.content_hash or None,
        size=given.size,
    )


def _entry(line: str | bytes, number: int) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        entry: dict[str, dict[str, Any]] = msgspec.json.decode(line, type=_Entry)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidOptions(f"line {number}: {error}") from None
    if entry.keys().isdisjoint({"source", "document"}):
        raise InvalidOptions(f"line {number}: neither a source nor a document")
    return entry


def _source(given: dict[str, Any], tenant: str | None, number: int) -> SourceRow:
    fields: dict[str, Any] = {name: given[name] for name in _SOURCE if name in given}
    fields["tenant"] = tenant
    return _converted(fields, SourceRow, number)


def _converted(given: dict[str, Any], kind: type[T], number: int) -> T:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InvalidOptions(f"line {number}: {error}") from None


def _file_name(document: DocumentInfo, taken: set[str]) -> str:
    """A name below the folder, never outside of it, and no other's."""
    parts = list(_parts(document.uri)) or ["document"]
    if document.branch:
        parts = [*_parts(document.branch), *parts]
    name = os.path.join(*parts)
    name = name if name.endswith((".md", ".markdown")) else f"{name}.md"
    stem, number = name.removesuffix(".md"), 1
    while name.lower() in taken:
        number += 1
        name = f"{stem}-{number}.md"
    taken.add(name.lower())
    return name


def _parts(text: str) -> Iterator[str]:
    for part in text.replace("://", "/").replace(":", "_").split("/"):
        clean = "".join(one if one.isprintable() else "_" for one in part)[:150]
        if clean.strip(". "):
            yield clean
