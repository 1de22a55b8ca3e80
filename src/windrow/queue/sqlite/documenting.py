"""Collections, sources, documents and contents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from windrow.db.statements import load_statements
from windrow.queue.documents import (
    Awaited,
    Collection,
    ContentInfo,
    DocumentInfo,
    Dropped,
    Move,
    NamedDocument,
    Pending,
    Place,
    Source,
    SourceCounts,
    SourceRow,
    Steps,
    move_values,
    page_values,
    read_pending,
    tenant_text,
)
from windrow.queue.sqlite.rows import to_json, to_optional_time, to_tags, to_time
from windrow.queue.sqlite.work import PACKAGE, Work, statement

_NUMBER: Final = re.compile(r"\$(\d+)")


def run_steps(work: Work, steps: Steps) -> None:
    for name, values in steps:
        work.run(name, {**values, "now": work.now})


def by_place(name: str, values: dict[str, Any]) -> tuple[Any, ...]:
    """A statement and its values as a job's transaction takes them: by place, not by name."""
    found = load_statements(PACKAGE)[name]
    return _NUMBER.sub(r"?\1", found.numbered), *found.bind(values)


def ensure_collection(
    work: Work, tenant: str | None, name: str, embedder: str, dimension: int
) -> Collection:
    values = {"embedder": embedder, "dimension": dimension, "now": work.now}
    work.run("ensure_collection", {"tenant": tenant_text(tenant), "name": name, **values})
    [collection] = list_collections(work, tenant_text(tenant), name)
    return collection


def list_collections(work: Work, tenant: str | None, name: str | None) -> list[Collection]:
    found = _rows(work, "list_collections", {"tenant": tenant, "name": name})
    return [Collection(**_fields(row)) for row in found]


def begin_generation(
    work: Work, tenant: str | None, name: str, embedder: str, dimension: int
) -> Collection | None:
    values = {"embedder": embedder, "dimension": dimension}
    work.run("begin_generation", {"tenant": tenant_text(tenant), "name": name, **values})
    return next(iter(list_collections(work, tenant_text(tenant), name)), None)


def switch_generation(work: Work, tenant: str | None, name: str, generation: int) -> bool:
    values = {"tenant": tenant_text(tenant), "name": name, "generation": generation}
    return bool(work.rows("switch_generation", values))


def get_sources(work: Work, tenant: str | None, ids: Sequence[str]) -> list[Source]:
    values = {"tenant": tenant, "ids": to_json(list(ids))}
    return [_source(row) for row in _rows(work, "get_sources", values)]


def list_sources(
    work: Work,
    tenant: str | None,
    collection: str | None,
    after: tuple[str, str],
    limit: int,
) -> list[Source]:
    values = {
        "tenant": tenant,
        "collection": collection,
        "after_tenant": after[0],
        "after_id": after[1],
        "limit": limit,
    }
    return [_source(row) for row in _rows(work, "list_sources", values)]


def delete_sources(work: Work, tenant: str | None, ids: Sequence[str]) -> int:
    own = tenant_text(tenant)
    for source in get_sources(work, own, ids):
        values = {"tenant": own, "collection": source.collection, "source": source.id}
        work.run("let_go_of_source_documents", {**values, "now": work.now})
        work.rows("delete_source_documents", values)
    return len(work.rows("delete_sources", {"tenant": own, "ids": to_json(list(ids))}))


def delete_tenant(work: Work, tenant: str) -> int:
    work.run("let_go_of_tenant_documents", {"tenant": tenant, "now": work.now})
    gone = work.rows("delete_tenant_documents", {"tenant": tenant})
    work.rows("delete_sources", {"tenant": tenant, "ids": None})
    work.run("delete_collections", {"tenant": tenant})
    return len(gone)


def find_documents(
    work: Work, tenant: str | None, collection: str, source: str, uris: Sequence[str]
) -> list[DocumentInfo]:
    place = {"tenant": tenant_text(tenant), "collection": collection, "source": source}
    return _documents(work, "find_documents", {**place, "uris": to_json(list(uris))})


def get_documents(work: Work, ids: Sequence[str]) -> list[DocumentInfo]:
    return _documents(work, "get_documents", {"ids": to_json(list(ids))})


def find_named(work: Work, contents: Sequence[str], tenant: str | None) -> list[NamedDocument]:
    values = {"ids": to_json(list(contents)), "tenant": tenant}
    return [_named(row) for row in work.named_rows(statement("find_named"), values)]


def find_naming(work: Work, contents: Sequence[str]) -> list[DocumentInfo]:
    return _documents(work, "find_naming", {"ids": to_json(list(contents))})


def list_documents(
    work: Work,
    tenant: str | None,
    collection: str,
    source: str | None,
    after: Place,
    limit: int,
    *,
    only_noted: bool,
) -> list[DocumentInfo]:
    values = {
        "tenant": tenant_text(tenant),
        "collection": collection,
        "source": source,
        "after_source": after.source,
        "after_uri": after.uri,
        "after_branch": after.branch,
        "limit": limit,
        "only_noted": only_noted,
    }
    return _documents(work, "list_documents", values)


def count_documents(work: Work, tenant: str | None, collection: str | None) -> list[SourceCounts]:
    found = _rows(work, "count_documents", {"tenant": tenant, "collection": collection})
    return [SourceCounts(**{**row, "tenant": row["tenant"] or None}) for row in found]


def count_sources(
    work: Work, sources: Sequence[SourceRow], most: int | None, chunks: bool
) -> list[SourceCounts]:
    counted = []
    for one in sources:
        place = {"tenant": tenant_text(one.tenant), "collection": one.collection, "source": one.id}
        [row] = _rows(work, "count_sources", {**place, "most": most, "with_chunks": chunks})
        counted.append(SourceCounts(one.tenant, one.collection, one.id, **row))
    return counted


def find_at(work: Work, uri: str, tenant: str | None, limit: int) -> list[DocumentInfo]:
    return _documents(work, "find_at", {"uri": uri, "tenant": tenant, "limit": limit})


def count_pending(
    work: Work, tenant: str | None, collection: str, source: str, run: str | None, limit: int
) -> Pending:
    place = {"tenant": tenant_text(tenant), "collection": collection, "source": source}
    return read_pending(_rows(work, "count_pending", {**place, "run": run, "limit": limit}))


def count_chunks(work: Work, contents: Sequence[str]) -> dict[str, int]:
    found = _rows(work, "count_chunks", {"ids": to_json(list(contents))})
    return {row["id"]: row["chunks"] for row in found}


def delete_documents(work: Work, ids: Sequence[str]) -> int:
    values = {"ids": to_json(list(ids))}
    work.run("let_go_of_documents", {**values, "now": work.now})
    return len(work.rows("delete_documents", values))


def delete_pages(work: Work, crawls: Mapping[str, str | None]) -> int:
    # What another crawl has put meanwhile is let go of, too: those who tidy see that it is named.
    work.run("let_go_of_documents", {"ids": to_json(list(crawls)), "now": work.now})
    return len(work.rows("delete_pages", page_values(crawls)))


def move_documents(work: Work, moves: Sequence[Move]) -> list[str]:
    values = move_values(moves)
    delete_documents(work, [row["id"] for row in _rows(work, "find_in_the_way", values)])
    work.run("lift_documents", values)
    return [row["content"] for row in _rows(work, "move_documents", values) if row["content"]]


def get_contents(work: Work, ids: Sequence[str]) -> list[ContentInfo]:
    found = _rows(work, "get_contents", {"ids": to_json(list(ids))})
    return [ContentInfo(**_fields(row)) for row in found]


def list_contents(
    work: Work, tenant: str | None, collection: str, space: str | None, after: str, limit: int
) -> list[str]:
    place = {"tenant": tenant_text(tenant), "collection": collection, "space": space}
    return [i for (i,) in work.rows("list_contents", {**place, "after": after, "limit": limit})]


def list_awaited(
    work: Work, place: Mapping[str, str | None], after: str, limit: int
) -> list[Awaited]:
    return [
        Awaited(row["id"], row["tenant"] or None)
        for row in _rows(work, "list_awaited", {**place, "after": after, "limit": limit})
    ]


def find_dropped(work: Work, limit: int) -> list[Dropped]:
    return [
        Dropped(**{**row, "tenant": row["tenant"] or None, "is_named": bool(row["is_named"])})
        for row in _rows(work, "find_dropped", {"limit": limit})
    ]


def keep_contents(work: Work, ids: Sequence[str]) -> None:
    work.run("keep_contents", {"ids": to_json(list(ids))})


def delete_contents(work: Work, ids: Sequence[str]) -> list[str]:
    return [i for (i,) in work.rows("delete_contents", {"ids": to_json(list(ids))})]


def forget_spaces(
    work: Work, tenant: str | None, collection: str | None, ids: Sequence[str] | None
) -> None:
    given = None if ids is None else to_json(list(ids))
    work.run("forget_spaces", {"tenant": tenant, "collection": collection, "ids": given})


def get_index_folder(work: Work) -> str | None:
    found = work.rows("get_index_folder", {})
    return str(found[0][0]) if found else None


def set_index_folder(work: Work, folder: str, before: str | None) -> bool:
    return bool(work.rows("set_index_folder", {"folder": folder, "before": before}))


def _rows(work: Work, name: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in work.named_rows(statement(name), values)]


def _documents(work: Work, name: str, values: dict[str, Any]) -> list[DocumentInfo]:
    return [_document(row) for row in work.named_rows(statement(name), values)]


def _named(row: Any) -> NamedDocument:
    return NamedDocument(
        id=row["id"],
        tenant=row["tenant"] or None,
        collection=row["collection"],
        source=row["source"],
        uri=row["uri"],
        branch=row["branch"],
        title=row["title"],
        language=row["language"],
        tags=to_tags(row["tags"]),
        content=row["content"],
        dated_at=to_optional_time(row["dated_at"]),
    )


def _document(row: Any) -> DocumentInfo:
    """By its columns' names one by one, as every file needs some of these."""
    return DocumentInfo(
        id=row["id"],
        tenant=row["tenant"] or None,
        collection=row["collection"],
        source=row["source"],
        uri=row["uri"],
        branch=row["branch"],
        title=row["title"],
        language=row["language"],
        tags=to_tags(row["tags"]),
        metadata=msgspec.json.decode(row["metadata"]),
        content_hash=row["content_hash"],
        content=row["content"],
        pending=row["pending"],
        size=row["size"],
        skipped=row["skipped"],
        dated_at=to_optional_time(row["dated_at"]),
        created_at=to_time(row["created_at"]),
        changed_at=to_time(row["changed_at"]),
    )


def _source(row: dict[str, Any]) -> Source:
    return Source(**_fields(row))


def _fields(row: dict[str, Any]) -> dict[str, Any]:
    """A row's columns as a record has them."""
    fields = {**row, "tenant": row["tenant"] or None}
    for name in fields.keys() & {"dated_at", "dropped_at", "refreshed_at"}:
        fields[name] = to_optional_time(row[name])
    for name in fields.keys() & {"created_at", "changed_at"}:
        fields[name] = to_time(row[name])
    for name in fields.keys() & {"options", "metadata"}:
        fields[name] = msgspec.json.decode(row[name])
    if "tags" in fields:
        fields["tags"] = to_tags(row["tags"])
    return fields
