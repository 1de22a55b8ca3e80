"""What came of a video, written by the transaction that completes its job: to its row, and as a
document that the index is given."""

from __future__ import annotations

import uuid
from typing import Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.sources import SourceRow
from windrow.catalog.writer import SourceText
from windrow.db.codec import clean_text
from windrow.ingest.enrich.analysis import Analysis
from windrow.ingest.video import Video
from windrow.pipelines.knowledge.context import source_id
from windrow.queue.job import Job
from windrow.queue.queue import Queue

TABLE: Final = "clipnest_videos"
COLLECTION: Final = "default"
SOURCE: Final = "video:clipnest_videos"
_NAMESPACE: Final = uuid.UUID("8b0a4a5e-9f1d-4a55-8a1e-6d5f0f0c2f10")
_UPDATE: Final = (
    # The name is the constant above.
    f"update {TABLE} set title = $1, summary = $2, topics = $3, transcript = $4, metadata = $5 "  # noqa: S608
    "where id = $6"
)


async def keep_row(job: Job, id: int | str, video: Video, analysis: Analysis) -> None:
    """A video without a transcript has what is known of it, and no more."""
    known = msgspec.to_builtins(msgspec.structs.replace(video, transcript=None, title=None))
    is_said = video.transcript is not None
    await job.tx.execute(
        _UPDATE,
        _clean(video.title or analysis.title),
        _clean(analysis.summary) if is_said else None,
        _json(analysis.topics) if is_said else None,
        _clean(video.transcript),
        _json(known),
        id,
    )


async def keep_document(
    queue: Queue, job: Job, url: str, video: Video, analysis: Analysis
) -> str | None:
    """The id of the content that is to be written; None if there is nothing to be found by."""
    text = clean_text(_markdown(url, video, analysis))
    if not (video.transcript or video.title or video.description):
        return None
    source = SourceRow(job.tenant, source_id(SOURCE), COLLECTION, "upload", SOURCE, title="Videos")
    kept = SourceText(
        tenant=job.tenant,
        collection=COLLECTION,
        source=source.id,
        uri=url,
        text=text,
        title=clean_text(video.title or analysis.title or url),
        language="markdown",
        tags=tuple(analysis.topics),
        metadata={"source_type": "video", "author": video.author},
        dated_at=job.created_at,
        # The same for each run, and for a video that is looked at again.
        id=str(uuid.uuid5(_NAMESPACE, f"{job.tenant or ''}:{url}")),
    )
    catalog = Catalog(queue.database)
    await catalog.sources.put([source], tx=job.tx)
    [put] = await catalog.writer.put([kept], known=[], tx=job.tx)
    return put.document.pending


def _markdown(url: str, video: Video, analysis: Analysis) -> str:
    parts = [f"# {video.title or analysis.title or url}", url]
    if video.author:
        parts.append(f"By {video.author}")
    if video.description:
        parts.append(video.description)
    if analysis.summary:
        parts += ["## Summary", analysis.summary]
    if analysis.topics:
        parts += ["## Topics", ", ".join(analysis.topics)]
    if analysis.action_items:
        parts += ["## Action items", "\n".join(f"- {item}" for item in analysis.action_items)]
    if video.transcript:
        parts += ["## Transcript", video.transcript]
    return "\n\n".join(parts)


def _clean(text: str | None) -> str | None:
    return clean_text(text) if text else None


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
