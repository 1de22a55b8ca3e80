"""`index.write`: contents become chunks, vectors and points, many of them at once; then documents
are switched to them.

Every step can be done again: points have the ids they had, and a switch that was done finds nothing
left to switch. So a run that was killed, whenever it was, leaves the old content searchable or the
new one, never half of it. A content is in the current space before documents are switched to it;
the space of a generation that is being built comes after that, and if only this fails, only this
is done again.

A text that the embedder does not take keeps no other from being written. Its documents go on
waiting for it, and say why.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from windrow.catalog import Catalog
from windrow.catalog.contents import ContentInfo, Refused, Written
from windrow.catalog.documents import DocumentInfo
from windrow.catalog.sources import Collection
from windrow.errors import EmbeddingRefused, IndexUnavailable
from windrow.index.home import Labels, Point, Space
from windrow.pipelines.index.context import Chunk, Cut, Embedder, Indexing, next_space_of, space_of
from windrow.pipelines.index.payloads import WritePayload
from windrow.pipelines.index.sessions import Indexed, note_indexed
from windrow.queue.outcome import Done, Fail

EMBED_AT_ONCE: Final = 256
WRITE_AT_ONCE: Final = 512

T = TypeVar("T", str, float)
# What the embedder said of texts that it does not take, by their contents.
Refusals = dict[str, EmbeddingRefused]


@dataclass(slots=True)
class Content:
    """A content, the documents that name it, and what became of it."""

    info: ContentInfo
    documents: list[DocumentInfo]
    chunks: Sequence[Chunk] | None = None

    @property
    def labels(self) -> Labels:
        """Of all its documents: they are the same file in several branches, where it may have been
        moved."""
        first = self.documents[0]
        date = _date(first)
        dates = {found for one in self.documents if (found := _date(one)) is not None}
        return Labels(
            collection=first.collection,
            source=first.source,
            uri=first.uri,
            tenant=first.tenant or "",
            branches=tuple(sorted({one.branch for one in self.documents})),
            language=first.language,
            tags=tuple(sorted({tag for one in self.documents for tag in one.tags})),
            date=date,
            title=first.title,
            other_uris=_besides(first.uri, {one.uri for one in self.documents}),
            other_languages=_besides(first.language, {one.language for one in self.documents}),
            other_dates=_besides(date, dates),
        )


@dataclass(slots=True)
class Timings:
    """Seconds by step, of a whole batch."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _since: float = field(default_factory=time.perf_counter)

    def ended(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] += now - self._since
        self._since = now

    def plain(self) -> dict[str, float]:
        return {step: round(seconds, 6) for step, seconds in self.seconds.items()}


@dataclass(slots=True)
class Ended:
    """What became of the contents of a batch: those that documents are switched to, and those that
    the embedder does not take."""

    switched: list[Content] = field(default_factory=list)
    refused: Refusals = field(default_factory=dict)


async def write(indexing: Indexing, payloads: Sequence[WritePayload]) -> list[Done | Fail]:
    timings = Timings()
    ended = Ended()
    found = await load(indexing, [payload.content for payload in payloads])
    timings.ended("read")
    for (tenant, name), contents in _by_collection(found.values()).items():
        collection = await indexing.collection(tenant, name)
        await _write_collection(indexing, collection, contents, timings, ended)
    said = timings.plain()
    await note_indexed(indexing.queue, _pages(ended.switched), said)
    return [
        Fail(ended.refused[payload.content])
        if payload.content in ended.refused
        else Done(_told(found.get(payload.content), said, len(payloads)))
        for payload in payloads
    ]


async def load(indexing: Indexing, ids: Iterable[str]) -> dict[str, Content]:
    """Those contents that are there and that documents name."""
    wanted = list(dict.fromkeys(ids))
    catalog = Catalog(indexing.queue.database)
    infos = {info.id: info for info in await catalog.contents.get(wanted)}
    naming: defaultdict[str, list[DocumentInfo]] = defaultdict(list)
    for document in await catalog.documents.find_naming(wanted):
        for name in infos.keys() & {document.content, document.pending}:
            naming[name].append(document)
    return {i: Content(info, naming[i]) for i, info in infos.items() if naming[i]}


async def _write_collection(
    indexing: Indexing,
    collection: Collection,
    contents: Sequence[Content],
    timings: Timings,
    ended: Ended,
) -> None:
    current, following = space_of(collection), next_space_of(collection)
    embedder = await indexing.find_embedder(collection.embedder)
    if embedder is not None:
        refused = await _write_space(indexing, current, embedder, contents, following, timings)
        await Catalog(indexing.queue.database).contents.switch(_written(contents, current, refused))
        await refuse(indexing, refused)
        ended.refused |= refused
        ended.switched += [one for one in contents if one.info.id not in refused]
        timings.ended("switch")
    elif following is None:
        raise IndexUnavailable(f"no embedder for the model {collection.embedder!r} is configured")
    if following is not None:
        await write_next(indexing, collection, contents, timings)


async def write_next(
    indexing: Indexing, collection: Collection, contents: Sequence[Content], timings: Timings
) -> Refusals:
    """Write contents into the generation that is being built. Documents that wait for one which
    only that has are switched when it is. What its model does not take is found by the old one
    until then."""
    space = next_space_of(collection)
    embedder = await indexing.find_embedder(collection.next_embedder)
    if space is None or embedder is None:
        return {}
    refused = await _write_space(indexing, space, embedder, contents, None, timings)
    await Catalog(indexing.queue.database).contents.note(_written(contents, space, refused))
    timings.ended("switch")
    return refused


async def refuse(indexing: Indexing, refused: Refusals) -> None:
    """Remember of documents that the index does not have them, and why."""
    if refused:
        await Catalog(indexing.queue.database).contents.refuse(
            [
                Refused(content, f"the embedder does not take it: {error.why}")
                for content, error in refused.items()
            ]
        )


async def _write_space(
    indexing: Indexing,
    space: Space,
    embedder: Embedder,
    contents: Sequence[Content],
    following: Space | None,
    timings: Timings,
) -> Refusals:
    """Contents that were written there get their labels anew, the others are embedded. What is in
    the next space is in this one too. Those that the embedder does not take."""
    there = {space.name} | ({following.name} if following else set())
    written = [one for one in contents if one.info.space in there]
    new = [one for one in contents if one.info.space not in there]
    await indexing.index.relabel(space, {one.info.id: one.labels for one in written})
    timings.ended("label")
    await _cut(new, indexing.cut)
    timings.ended("chunk")
    return await _write_what_is_taken(indexing, space, embedder, new, timings)


async def _write_what_is_taken(
    indexing: Indexing,
    space: Space,
    embedder: Embedder,
    contents: Sequence[Content],
    timings: Timings,
) -> Refusals:
    """Halved until the texts are found that the embedder does not take: the others are written."""
    try:
        await _write_points(indexing, space, embedder, contents, timings)
        return {}
    except EmbeddingRefused as error:
        if len(contents) == 1:
            return {contents[0].info.id: error}
    middle = len(contents) // 2
    first = await _write_what_is_taken(indexing, space, embedder, contents[:middle], timings)
    return first | await _write_what_is_taken(indexing, space, embedder, contents[middle:], timings)


async def _write_points(
    indexing: Indexing,
    space: Space,
    embedder: Embedder,
    contents: Sequence[Content],
    timings: Timings,
) -> None:
    points = [(one, part) for one in contents for part in one.chunks or ()]
    for start in range(0, len(points), WRITE_AT_ONCE):
        some = points[start : start + WRITE_AT_ONCE]
        made = await _points(embedder, some, timings)
        await indexing.index.write(space, made)
        timings.ended("write")


async def _points(
    embedder: Embedder, some: Sequence[tuple[Content, Chunk]], timings: Timings
) -> list[Point]:
    each = {one.info.id: one for one, _ in some}
    labels = {name: one.labels for name, one in each.items()}
    texts = [part.in_context(labels[one.info.id].title) for one, part in some]
    points: list[Point] = []
    for start in range(0, len(texts), EMBED_AT_ONCE):
        vectors = await embedder.embed(texts[start : start + EMBED_AT_ONCE])
        for (one, part), vector in zip(some[start:], vectors, strict=False):
            points.append(
                Point(
                    content=one.info.id,
                    ordinal=part.ordinal,
                    vector=vector,
                    text=part.text,
                    labels=labels[one.info.id],
                    headings=part.headings,
                    start=part.start,
                    end=part.end,
                )
            )
    timings.ended("embed")
    return points


async def _cut(contents: Sequence[Content], cut: Cut) -> None:
    whole = [one for one in contents if one.chunks is None]
    texts = [(one.info.text, language_of(one.documents[0])) for one in whole]
    for one, chunks in zip(whole, await cut(texts), strict=True):
        one.chunks = chunks


def language_of(document: DocumentInfo) -> str:
    """How to cut it. What a web page says is the language of its readers: it is markdown."""
    if document.uri.startswith(("http://", "https://")):
        return "markdown"
    return document.language or "markdown"


def _date(document: DocumentInfo) -> float | None:
    return None if document.dated_at is None else document.dated_at.timestamp()


def _besides(first: T | None, all: set[T]) -> tuple[T, ...]:
    return tuple(sorted(all - {first})) if len(all) > 1 or first not in all else ()


def _written(contents: Sequence[Content], space: Space, refused: Refusals) -> list[Written]:
    return [
        Written(one.info.id, _count(one), space.name)
        for one in contents
        if one.info.id not in refused
    ]


def _pages(contents: Iterable[Content]) -> list[Indexed]:
    """The pages of crawls that are found by these now. One that has come again since waits for
    other words."""
    return [
        Indexed(str(document.metadata["crawl"]), document.uri, one.chunks is not None)
        for one in contents
        for document in one.documents
        if document.metadata.get("crawl") and document.pending in (None, one.info.id)
    ]


def _count(content: Content) -> int:
    return content.info.chunks if content.chunks is None else len(content.chunks)


def _by_collection(
    contents: Iterable[Content],
) -> dict[tuple[str | None, str], list[Content]]:
    grouped: defaultdict[tuple[str | None, str], list[Content]] = defaultdict(list)
    for one in contents:
        grouped[one.info.tenant, one.info.collection].append(one)
    return grouped


def _told(content: Content | None, seconds: dict[str, float], batch: int) -> dict[str, object]:
    if content is None:
        return {"dropped": "no document names it any more"}
    return {
        "chunks": _count(content),
        "embedded": content.chunks is not None,
        "batch": batch,
        "seconds": seconds,
    }
