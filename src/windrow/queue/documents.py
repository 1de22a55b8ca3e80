"""What was ingested and can be found: collections, sources, documents and their contents.

A document names the content that is searchable now, and the one that will be once the index has it
(`pending`). Whatever the index has that no document names is not shown: the row is the switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, Literal

import msgspec

from windrow.db.codec import encode
from windrow.ids import named_id

SourceKind = Literal[
    "site", "page", "folder", "file", "note", "project", "library", "upload", "call", "video"
]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

# Statements and their values, to be run in one transaction.
Steps = list[tuple[str, dict[str, Any]]]


class Collection(msgspec.Struct, frozen=True):
    """Documents that are searched as one. While another generation is being built, with a model of
    its own perhaps, searches read the one there is."""

    tenant: str | None
    name: str
    embedder: str
    dimension: int
    generation: int
    created_at: datetime
    next_embedder: str | None = None
    next_dimension: int | None = None
    next_generation: int | None = None


class SourceRow(msgspec.Struct, frozen=True):
    """Where documents come from. The id is unique among those of its tenant."""

    tenant: str | None
    id: str
    collection: str
    kind: SourceKind
    uri: str
    title: str = ""
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)
    tags: tuple[str, ...] = ()
    refresh_seconds: int | None = None  # None: only when somebody asks for it


class SourceNote(msgspec.Struct, frozen=True):
    """What came of a look at a source. With an error, what was known of it before stays."""

    tenant: str | None
    id: str
    error: str | None = None
    etag: str | None = None
    last_modified: str | None = None


class Source(SourceRow, frozen=True, kw_only=True):
    created_at: datetime
    refreshed_at: datetime | None
    etag: str | None
    last_modified: str | None
    error: str | None


class DocumentRow(msgspec.Struct, frozen=True):
    """A document to be put where it belongs: one that is there keeps its id. `pending` is the
    content it is to be searched by; without one it is not found (`skipped` says why). With both,
    the index has refused what is pending."""

    id: str
    tenant: str | None
    collection: str
    source: str
    uri: str  # a URL, or the path below the source
    branch: str = ""
    title: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)
    content_hash: str = ""
    pending: str | None = None
    size: int = 0
    skipped: str | None = None
    dated_at: datetime | None = None  # of the document itself: published, modified


class DocumentInfo(DocumentRow, frozen=True, kw_only=True):
    content: str | None  # what is searchable now
    created_at: datetime
    changed_at: datetime

    @property
    def is_searchable(self) -> bool:
        """Whether what was put last is what is found."""
        return self.content is not None and self.pending is None

    def is_settled_with(self, content: str | None) -> bool:
        """Whether the index has nothing to do for this content: it is found by it, or the index has
        refused it."""
        if self.pending is None:
            return self.content is not None and self.content == content
        return self.pending == content and self.skipped is not None


# No more than a search needs: each one makes ten.
class NamedDocument(msgspec.Struct, frozen=True):
    """A document as a search shows it, by the content that it names now."""

    id: str
    tenant: str | None
    collection: str
    source: str
    uri: str
    branch: str
    title: str
    language: str
    tags: tuple[str, ...]
    content: str
    dated_at: datetime | None


class ContentRow(msgspec.Struct, frozen=True):
    id: str
    tenant: str | None
    collection: str
    text: str


class ContentInfo(ContentRow, frozen=True, kw_only=True):
    chunks: int
    space: str | None  # where in the index its chunks were written last
    dropped_at: datetime | None
    created_at: datetime


class Written(msgspec.Struct, frozen=True):
    """A content that the index has now."""

    id: str
    chunks: int
    space: str


class Awaited(msgspec.Struct, frozen=True):
    """A content that documents wait for."""

    id: str
    tenant: str | None


class Refused(msgspec.Struct, frozen=True):
    """A content that the index does not take."""

    id: str
    why: str


class Dropped(msgspec.Struct, frozen=True):
    """A content that a document has let go of."""

    id: str
    tenant: str | None
    collection: str
    space: str | None
    is_named: bool  # by another document


class Move(msgspec.Struct, frozen=True):
    """A document and where it is to be; what it is searched by stays."""

    id: str
    uri: str
    title: str | None = None  # None: as it was


class SourceCounts(msgspec.Struct, frozen=True):
    tenant: str | None
    collection: str
    source: str
    documents: int  # without skipped files, of which there is no text
    searchable: int
    pending: int  # without those that were refused
    skipped: int  # with those that were refused
    size: int
    chunks: int


class Pending(msgspec.Struct, frozen=True):
    """Documents, and those of them that are not found by what was put last."""

    documents: int = 0
    waiting: int = 0
    contents: tuple[str, ...] = ()  # some that are waited for, and that were not refused
    refused: int = 0  # of those that wait
    why: str | None = None  # one of them was refused


class Place(msgspec.Struct, frozen=True):
    """Where the next page of documents begins: behind this one."""

    source: str = ""
    uri: str = ""
    branch: str = ""


def content_id(document_id: str, content_hash: str) -> str:
    """The id of what a document says: the same for the same words, so a retry doubles nothing."""
    return named_id(document_id, content_hash)


def put_steps(documents: Sequence[DocumentRow], contents: Sequence[ContentRow]) -> Steps:
    """Of two for the same place the later one counts: no statement changes a row twice."""
    last = {(d.tenant, d.collection, d.source, d.uri, d.branch): d for d in documents}
    sources = {document.pending: document.source for document in documents}
    each = {one.id: {**_plain(one), "source": sources.get(one.id)} for one in contents}
    given = {"rows": _rows(list(last.values()), "documents")}
    return [
        ("drop_superseded", given),
        ("put_contents", {"rows": encode(list(each.values()), "contents").json.decode()}),
        ("put_documents", given),
    ]


def switch_steps(written: Sequence[Written]) -> Steps:
    """Contents are locked before documents, as by `put_steps`."""
    given = {"rows": _rows(written, "contents")}
    return [("drop_switched", given), ("note_written", given), ("switch_documents", given)]


def note_steps(written: Sequence[Written]) -> Steps:
    return [("note_written", {"rows": _rows(written, "contents")})]


def refuse_steps(refused: Sequence[Refused]) -> Steps:
    return [("refuse_documents", {"rows": _rows(refused, "contents")})]


def source_steps(rows: Sequence[SourceRow | SourceNote], *, are_known: bool) -> Steps:
    described = [row for row in rows if isinstance(row, SourceRow)]
    noted = [row for row in rows if isinstance(row, SourceNote)]
    steps: list[tuple[str, Sequence[Any]]] = [
        ("change_sources" if are_known else "put_sources", described),
        ("note_sources", noted),
    ]
    return [(name, {"rows": _rows(some, "sources")}) for name, some in steps if some]


def move_values(moves: Sequence[Move]) -> dict[str, Any]:
    return {"rows": _rows(moves, "documents")}


def read_pending(rows: Sequence[Mapping[str, Any]]) -> Pending:
    """What `count_pending` gives back."""
    if not rows:
        return Pending()
    contents = tuple(str(row["pending"]) for row in rows if row["pending"] is not None)
    first = rows[0]
    return Pending(first["documents"], first["waiting"], contents, first["refused"], first["why"])


def page_values(crawls: Mapping[str, str | None]) -> dict[str, Any]:
    rows = [{"id": id, "crawl": crawl} for id, crawl in crawls.items()]
    return {"rows": encode(rows, "documents").json.decode()}


def tenant_text(tenant: str | None) -> str:
    return tenant or ""


@cache
def _names(row: type[Any]) -> tuple[str, ...]:
    return tuple(one.name for one in msgspec.structs.fields(row))


def _rows(rows: Sequence[Any], what: str) -> str:
    return encode([_plain(row) for row in rows], what).json.decode()


def _plain(row: Any) -> dict[str, Any]:
    # Not asdict, which copies what is inside: it would be half of what a put costs. What is left
    # out is NULL, as None is, which would have to be told from a number that is none.
    names = _names(row.__class__)
    plain = {name: value for name in names if (value := getattr(row, name)) is not None}
    if "tenant" in names:
        plain["tenant"] = tenant_text(row.tenant)
    if isinstance(row, DocumentRow) and row.dated_at is not None:
        plain["dated_at"] = (row.dated_at - _EPOCH) // _MICROSECOND
    return plain
