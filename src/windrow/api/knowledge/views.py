"""Sources, documents, chunks and what was found, as they are told."""

from __future__ import annotations

from typing import Any

from windrow.catalog.documents import DocumentInfo
from windrow.services.browsing import CodeExample, SourceChunk
from windrow.services.knowledge import DAY_SECONDS, SourceInfo


def show_source(info: SourceInfo) -> dict[str, Any]:
    """A source. Its code examples are not counted: that would read every text of it."""
    source, counts = info.source, info.counts
    return {
        "source_id": source.id,
        "title": source.title,
        "url": source.uri,
        "status": "error" if source.error else "processing" if info.pending else "active",
        "error": source.error,
        "source_type": "file" if source.kind == "upload" else "url",
        "kind": source.kind,
        "knowledge_type": source.options.get("knowledge_type", "technical"),
        "collection": source.collection,
        "tags": source.tags,
        "update_frequency": (source.refresh_seconds or 0) // DAY_SECONDS,
        "document_count": info.documents,
        "searchable_count": counts.searchable if counts else 0,
        "pending_count": info.pending,
        "skipped_count": counts.skipped if counts else 0,
        "chunk_count": counts.chunks if counts else 0,
        "jobs": info.jobs,
        "created_at": source.created_at,
        "updated_at": source.refreshed_at or source.created_at,
        "metadata": source.options,
    }


def show_page(document: DocumentInfo) -> dict[str, Any]:
    return {
        "id": document.id,
        "source_id": document.source,
        "url": document.uri,
        "title": document.title,
        "section_title": document.title,
        "language": document.language,
        "tags": document.tags,
        "size": document.size,
        "is_searchable": document.is_searchable,
        "skipped": document.skipped,
        "created_at": document.created_at,
        "updated_at": document.changed_at,
    }


def show_whole_page(document: DocumentInfo, text: str) -> dict[str, Any]:
    return {
        **show_page(document),
        "full_content": text,
        "word_count": len(text.split()),
        "char_count": len(text),
        "metadata": document.metadata,
    }


def show_chunk(chunk: SourceChunk) -> dict[str, Any]:
    return {
        "id": chunk.id,
        "source_id": chunk.document.source,
        "page_id": chunk.document.id,
        "url": chunk.document.uri,
        "content": chunk.text,
        "metadata": {
            "title": chunk.document.title,
            "headings": chunk.headings,
            "chunk_index": chunk.ordinal,
            "start": chunk.start,
            "end": chunk.end,
        },
    }


def show_code(example: CodeExample) -> dict[str, Any]:
    return {
        "id": example.id,
        "source_id": example.document.source,
        "page_id": example.document.id,
        "url": example.document.uri,
        "content": example.code,
        "summary": example.context,
        "metadata": {"language": example.language, "title": example.document.title},
    }
