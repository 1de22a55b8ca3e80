"""What the tools answer with. The descriptions of the fields are published in their schemas."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from windrow.queue.job import Job
from windrow.queue.records import QueueInfo
from windrow.search.request import Found, SearchAnswer
from windrow.services.health import Finding
from windrow.services.knowledge import SourceInfo
from windrow.services.overview import Glance
from windrow.services.reading import Reading


class Hit(BaseModel):
    document: Annotated[str, Field(description="Id of the document, for read_document.")]
    title: str
    uri: Annotated[str, Field(description="A URL, or the path of a file below its source.")]
    source: Annotated[str, Field(description="Id of the source it came from.")]
    collection: str
    branch: Annotated[str, Field(description="Of a repository; else empty.")]
    language: str
    tags: list[str]
    headings: Annotated[list[str], Field(description="The headings above this passage.")]
    text: Annotated[str, Field(description="The passage that was found.")]
    start: Annotated[int, Field(description="Where the passage begins in the document's text.")]
    end: int
    score: Annotated[float, Field(description="Only to compare results of one search.")]


class Hits(BaseModel):
    results: Annotated[list[Hit], Field(description="The best first.")]
    mode: str
    seconds: float
    warning: str | None = None


class DocumentText(BaseModel):
    document: str
    title: str
    uri: str
    source: str
    collection: str
    branch: str
    language: str
    tags: list[str]
    changed_at: datetime
    text: str
    start: int
    end: int
    characters: Annotated[int, Field(description="Of the whole text.")]
    next_start: Annotated[int | None, Field(description="Where to go on reading; null at the end.")]


class SourceView(BaseModel):
    id: str
    title: str
    kind: str
    uri: str
    collection: str
    tags: list[str]
    documents: int
    pending: Annotated[int, Field(description="Documents that cannot be found yet.")]
    skipped: Annotated[int, Field(description="Files that have no text, are too large, …")]
    refreshed_at: datetime | None
    error: Annotated[str | None, Field(description="What went wrong at the last look at it.")]


class Sources(BaseModel):
    sources: list[SourceView]
    total: Annotated[int, Field(description="How many there are; the list may be cut.")]


class AddedSource(BaseModel):
    job: Annotated[str, Field(description="Id of the job that ingests it, for job_status.")]
    state: Annotated[str, Field(description="Of that job.")]
    is_searchable: Annotated[
        bool, Field(description="Whether all of it can be found by now; else ask again later.")
    ]
    error: str | None
    source: SourceView


class QueueView(BaseModel):
    name: str
    is_paused: bool
    jobs: Annotated[dict[str, int], Field(description="How many there are in each state.")]
    oldest_ready_at: datetime | None


class QueueStatus(BaseModel):
    queues: list[QueueView]
    workers: Annotated[
        int | None, Field(description="Alive now; null if this caller may not know.")
    ]
    running: Annotated[list[str], Field(description="Ids of running jobs, the newest first.")]


class Reason(BaseModel):
    what: str
    cause: str
    fix: str


class JobStatus(BaseModel):
    id: str
    kind: str
    queue: str
    state: str
    percent: int | None
    message: Annotated[str | None, Field(description="What it is doing, if it says so.")]
    error: str | None
    attempts: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: Annotated[Any, Field(description="What came of it; null if that is too large.")]
    reasons: Annotated[list[Reason], Field(description="Why it is in that state.")]


def show_hits(answer: SearchAnswer) -> Hits:
    return Hits(
        results=[_hit(found) for found in answer.results],
        mode=answer.mode,
        seconds=answer.seconds,
        warning=answer.warning,
    )


def _hit(found: Found) -> Hit:
    return Hit(
        document=found.document,
        title=found.title,
        uri=found.uri,
        source=found.source,
        collection=found.collection,
        branch=found.branch,
        language=found.language,
        tags=list(found.tags),
        headings=list(found.headings),
        text=found.text,
        start=found.start,
        end=found.end,
        score=found.score,
    )


def show_reading(reading: Reading) -> DocumentText:
    document = reading.document
    return DocumentText(
        document=document.id,
        title=document.title,
        uri=document.uri,
        source=document.source,
        collection=document.collection,
        branch=document.branch,
        language=document.language,
        tags=list(document.tags),
        changed_at=document.changed_at,
        text=reading.text,
        start=reading.start,
        end=reading.end,
        characters=reading.characters,
        next_start=reading.end if reading.end < reading.characters else None,
    )


def show_source(info: SourceInfo) -> SourceView:
    source = info.source
    return SourceView(
        id=source.id,
        title=source.title,
        kind=source.kind,
        uri=source.uri,
        collection=source.collection,
        tags=list(source.tags),
        documents=info.documents,
        pending=info.pending,
        skipped=info.counts.skipped if info.counts else 0,
        refreshed_at=source.refreshed_at,
        error=source.error,
    )


def show_queues(seen: Glance) -> QueueStatus:
    return QueueStatus(
        queues=[_queue(info) for info in seen.queues],
        workers=len(seen.workers) if seen.sees_all else None,
        running=[job.id for job in seen.running],
    )


def _queue(info: QueueInfo) -> QueueView:
    return QueueView(
        name=info.name,
        is_paused=info.is_paused,
        jobs={str(state): count for state, count in info.counts.items()},
        oldest_ready_at=info.oldest_ready_at,
    )


def show_job(job: Job, findings: list[Finding], result: Any) -> JobStatus:
    return JobStatus(
        id=job.id,
        kind=job.kind,
        queue=job.queue,
        state=str(job.state),
        percent=job.progress.percent if job.progress else None,
        message=job.progress.message if job.progress else None,
        error=job.error,
        attempts=job.attempts,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        result=result,
        reasons=[Reason(what=one.what, cause=one.cause, fix=one.fix) for one in findings],
    )
