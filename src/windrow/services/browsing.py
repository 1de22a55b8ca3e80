"""Looking through what was ingested: the documents of a source, their chunks, the code in them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo, Place
from windrow.catalog.sources import Source
from windrow.errors import SourceNotFound
from windrow.index.home import point_id
from windrow.pipelines.index.writing import language_of
from windrow.queue.queue import Queue
from windrow.services.indexing import cut

PAGE: Final = 1000
TEXTS: Final = 50  # read at once
LEAST_CODE: Final = 100  # characters of a block that is an example
CONTEXT: Final = 300  # characters before it that say what it is
_FENCED: Final = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^\n]*\n(?P<code>.*?)\n(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SourceChunk:
    """A chunk as the index has it."""

    id: str
    document: DocumentInfo
    ordinal: int
    text: str
    headings: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ChunkPage:
    chunks: Sequence[SourceChunk]
    total: int


@dataclass(frozen=True, slots=True)
class CodeExample:
    id: str
    document: DocumentInfo
    language: str
    code: str
    context: str  # the words before it
    start: int


@dataclass(frozen=True, slots=True)
class Code:
    """A block of code in a text."""

    language: str
    code: str
    context: str
    start: int


async def own_source(queue: Queue, id: str, tenant: str | None) -> Source:
    """A source of a tenant's (None: whoever's it is). Raises SourceNotFound."""
    catalog = Catalog(queue.database)
    for source in await catalog.sources.get(tenant or "", [id]):
        return source
    if tenant is None:
        for source in await catalog.sources.get(None, [id]):
            return source
    raise SourceNotFound(id)


async def iterate_documents(queue: Queue, source: Source) -> AsyncIterator[list[DocumentInfo]]:
    """The documents of a source, page by page."""
    after: Place | None = None
    while True:
        page = await Catalog(queue.database).documents.page(
            source.tenant, source.collection, source.id, after=after, limit=PAGE
        )
        if page:
            yield page
        if len(page) < PAGE:
            return
        after = Place(page[-1].source, page[-1].uri, page[-1].branch)


async def list_source_documents(
    queue: Queue, source: Source, *, title: str | None, limit: int, offset: int
) -> tuple[list[DocumentInfo], int]:
    """Some of the documents of a source, by their addresses, and how many there are."""
    found: list[DocumentInfo] = []
    total = 0
    async for page in iterate_documents(queue, source):
        fitting = [one for one in page if title in (None, one.title)]
        before, total = total, total + len(fitting)
        found += fitting[max(0, offset - before) : max(0, offset + limit - before)]
    return found, total


async def list_chunks(
    queue: Queue, source: Source, *, domain: str | None, limit: int, offset: int
) -> ChunkPage:
    """Some of the chunks that can be found, in the order of their documents."""
    wanted: list[tuple[DocumentInfo, int, int]] = []  # of a document: the first, and how many
    total = 0
    async for page in iterate_documents(queue, source):
        named = [one for one in page if one.content and _is_of(one, domain)]
        counts = await Catalog(queue.database).contents.count_chunks(
            [one.content or "" for one in named]
        )
        for one in named:
            count = counts.get(one.content or "", 0)
            first = max(0, offset - total)
            last = min(count, offset + limit - total)
            if first < last:
                wanted.append((one, first, last))
            total += count
    chunks: list[SourceChunk] = []
    for start in range(0, len(wanted), TEXTS):
        some = wanted[start : start + TEXTS]
        texts = await _texts(queue, [one for one, _, _ in some])
        chunks += await asyncio.to_thread(_cut, some, texts)
    return ChunkPage(chunks, total)


async def list_code(
    queue: Queue, source: Source, *, limit: int, offset: int
) -> tuple[list[CodeExample], int]:
    """Some of the blocks of code in a source's documents, and how many there are."""
    found: list[CodeExample] = []
    total = 0
    async for page in iterate_documents(queue, source):
        for start in range(0, len(page), TEXTS):
            some = [one for one in page[start : start + TEXTS] if one.content]
            texts = await _texts(queue, some)
            for document in some:
                for block in find_code(texts.get(document.content or "", "")):
                    if offset <= total < offset + limit:
                        found.append(_example(document, block))
                    total += 1
    return found, total


def find_code(text: str) -> list[Code]:
    """The blocks of code in a Markdown text that are long enough to show something."""
    return [
        Code(
            match["language"],
            match["code"],
            text[max(0, match.start() - CONTEXT) : match.start()].strip(),
            match.start(),
        )
        for match in _FENCED.finditer(text)
        if len(match["code"]) >= LEAST_CODE
    ]


def _example(document: DocumentInfo, block: Code) -> CodeExample:
    id = f"{document.id}:{block.start}"
    return CodeExample(id, document, block.language, block.code, block.context, block.start)


def _cut(
    wanted: Sequence[tuple[DocumentInfo, int, int]], texts: dict[str, str]
) -> list[SourceChunk]:
    made: list[SourceChunk] = []
    for document, first, last in wanted:
        content = document.content or ""
        for one in cut(texts.get(content, ""), language_of(document))[first:last]:
            id = point_id(content, one.ordinal)
            made.append(
                SourceChunk(id, document, one.ordinal, one.text, one.headings, one.start, one.end)
            )
    return made


async def _texts(queue: Queue, documents: Sequence[DocumentInfo]) -> dict[str, str]:
    ids = [one.content for one in documents if one.content]
    return {one.id: one.text for one in await Catalog(queue.database).contents.get(ids)}


def _is_of(document: DocumentInfo, domain: str | None) -> bool:
    return domain is None or host_of(document.uri) == domain.lower()


def host_of(uri: str) -> str:
    """The host of an address; nothing of a path."""
    try:
        return urlsplit(uri).hostname or ""
    except ValueError:
        return ""
