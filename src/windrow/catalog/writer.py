"""Texts become documents: the one place that makes the rows of documents and their contents.

A text in the same words keeps the content it has, so that the index has nothing to do for it, and
a run that is repeated writes the same. The catalog knows no jobs: the caller enqueues an index job
for each content that is awaited, when its own job is completed.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from windrow.catalog.contents import ContentRow, content_id
from windrow.catalog.documents import DocumentCatalog, DocumentInfo, DocumentRow
from windrow.db.codec import clean_text
from windrow.ids import new_id

_Source = tuple[str | None, str, str]  # tenant, collection and id
_Place = tuple[_Source, str, str]  # with uri and branch


class SourceText(msgspec.Struct, frozen=True, kw_only=True):
    """A text to be put as the document at its place. Without a text the document is not found, and
    `skipped` says why."""

    tenant: str | None
    collection: str
    source: str
    uri: str
    branch: str = ""
    text: str | None = None
    skipped: str | None = None
    title: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)
    dated_at: datetime | None = None
    content_hash: str | None = None  # of what the text was made from; None: of the text itself
    size: int | None = None  # of what the text was made from, in bytes; None: of the text itself
    id: str | None = None  # of the document, where none is known at its place; None: a new id


class PutText(msgspec.Struct, frozen=True):
    """A text that was put: its document, and what was known at its place before."""

    document: DocumentRow
    before: DocumentInfo | None

    @property
    def awaited(self) -> str | None:
        """The content that the index has still to write, if any."""
        pending = self.document.pending
        is_settled = self.before is not None and self.before.is_settled_with(pending)
        return None if is_settled else pending


class DocumentWriter:
    def __init__(self, documents: DocumentCatalog) -> None:
        self._documents = documents

    async def put(
        self,
        texts: Sequence[SourceText],
        *,
        known: Iterable[DocumentInfo] | None = None,
        with_known_contents: bool = True,
        tx: Any = None,
    ) -> list[PutText]:
        """Put texts as documents, with `tx` if and only if that job is completed; what became of
        each. A document that is known keeps its id, and its content while the hash is the same. Of
        two texts for one place the later one is put, and stands for both.

        `known`: the documents at these places, if the caller has looked them up; else they are
        looked up here, by one query for each source. `with_known_contents`: give known contents
        along too, as they may have been dropped and deleted since the lookup. Not where branches
        share them: one that another branch has dropped is still to be labelled anew in the index,
        and giving it would take that mark back.
        """
        if not texts:
            return []
        if known is None:
            known = await self._find(texts)
        branches: defaultdict[tuple[_Source, str], dict[str, DocumentInfo]] = defaultdict(dict)
        for document in known:
            branches[_source_of(document), document.uri][document.branch] = document
        put: dict[_Place, PutText] = {}
        contents: list[ContentRow] = []
        for place, text in {_place_of(text): text for text in texts}.items():
            source, uri, branch = place
            digest = _digest(text)
            at_uri = branches[source, uri]
            before = at_uri.get(branch)
            content = _known_content(digest, [before, *at_uri.values()])
            is_given = content is None or with_known_contents
            put[place] = PutText(_row(text, place, digest, before, content), before)
            pending = put[place].document.pending
            if text.text is not None and pending is not None and is_given:
                contents.append(ContentRow(pending, text.tenant, text.collection, text.text))
        await self._documents.put([one.document for one in put.values()], contents, tx=tx)
        return [put[_place_of(text)] for text in texts]

    async def _find(self, texts: Iterable[SourceText]) -> list[DocumentInfo]:
        uris: defaultdict[_Source, dict[str, None]] = defaultdict(dict)
        for source, uri, _ in map(_place_of, texts):
            uris[source][uri] = None
        found: list[DocumentInfo] = []
        for source, some in uris.items():
            found += await self._documents.find(*source, list(some))
        return found


def hash_text(text: str) -> str:
    return hashlib.sha256(_encode(text)).hexdigest()


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _source_of(one: SourceText | DocumentInfo) -> _Source:
    return one.tenant or None, one.collection, one.source


def _place_of(text: SourceText) -> _Place:
    # As every database can hold it, so that the document is found there again.
    return _source_of(text), clean_text(text.uri), clean_text(text.branch)


def _digest(text: SourceText) -> str:
    if text.content_hash is not None:
        return text.content_hash
    return "" if text.text is None else hash_text(text.text)


def _known_content(digest: str, known: Iterable[DocumentInfo | None]) -> str | None:
    """The content of the first document in the same words: the one at the same place, or of another
    branch."""
    for one in known:
        if one is not None and one.content_hash == digest:
            content = one.pending or one.content
            if content is not None:
                return content
    return None


def _row(
    text: SourceText, place: _Place, digest: str, before: DocumentInfo | None, content: str | None
) -> DocumentRow:
    _, uri, branch = place
    id = before.id if before else text.id or new_id()
    pending = None if text.text is None else content or content_id(id, digest)
    size = text.size
    if size is None:
        size = 0 if text.text is None else len(_encode(text.text))
    return DocumentRow(
        id=id,
        tenant=text.tenant,
        collection=text.collection,
        source=text.source,
        uri=uri,
        branch=branch,
        title=text.title,
        language=text.language,
        tags=text.tags,
        metadata=text.metadata,
        content_hash=digest,
        pending=pending,
        size=size,
        skipped=text.skipped,
        dated_at=text.dated_at,
    )
