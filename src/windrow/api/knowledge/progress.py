"""How far something is: /progress and /crawl-progress, for those who ask every second.

An answer that has not changed is 304 to who names its ETag; `X-Poll-Interval` says when to ask
again (in milliseconds, 0: not any more).
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Header, Path
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.callers import Caller, Reader, Writer
from windrow.api.errors import ApiError
from windrow.api.knowledge.requests import missing
from windrow.errors import IllegalTransition, JobNotFound
from windrow.services import operations
from windrow.services.operations import Operation

router = APIRouter(tags=["knowledge"])

POLL_MILLISECONDS: Final = 1000
UNKNOWN: Final = "Operation not found"
# Any text: what is no id is not there, as one that is not known.
ProgressId = Annotated[str, Path(max_length=255)]
IfNoneMatch = Annotated[str | None, Header(max_length=1000)]


@router.get("/crawl-progress/{progress_id}")
@router.get("/progress/{progress_id}")
async def get_progress(
    progress_id: ProgressId, caller: Reader, if_none_match: IfNoneMatch = None
) -> Response:
    """How far a crawl or an upload is; for a week after its end, too."""
    try:
        found = await operations.get_operation(caller.queue, progress_id, tenant=caller.tenant)
    except JobNotFound as error:
        raise missing(UNKNOWN) from error
    body = show(found)
    tag = f'"{hashlib.sha256(msgspec.json.encode(body)).hexdigest()[:32]}"'
    headers = {
        "ETag": tag,
        "Cache-Control": "no-cache, must-revalidate",
        "X-Poll-Interval": "0" if found.is_ended else str(POLL_MILLISECONDS),
    }
    if _names(if_none_match, tag):
        return Response(status_code=304, headers=headers)
    return answer({**body, "timestamp": datetime.now(UTC)}, headers=headers)


@router.get("/progress/")
@router.get("/progress")
async def list_progress(caller: Reader, include_failed: bool = False) -> Response:
    """What has not ended; with `include_failed`, the newest that failed, too."""
    found = await operations.list_operations(
        caller.queue, tenant=caller.tenant, with_failed=include_failed
    )
    listed = [_show_head(one) for one in found]
    body = {"operations": listed, "count": len(listed), "timestamp": datetime.now(UTC)}
    return answer(body)


@router.post("/knowledge-items/stop/{progress_id}")
async def stop(progress_id: ProgressId, caller: Writer) -> Response:
    """Cancel what waits of a crawl or upload, tell what runs."""
    return await _change(caller, progress_id, "stop", "Stopped")


@router.post("/knowledge-items/pause/{progress_id}")
async def pause(progress_id: ProgressId, caller: Writer) -> Response:
    """Begin nothing more of it before it is resumed; it stays so after a restart."""
    return await _change(caller, progress_id, "pause", "Paused")


@router.post("/knowledge-items/resume/{progress_id}")
async def resume(progress_id: ProgressId, caller: Writer) -> Response:
    """Go on with what was paused."""
    return await _change(caller, progress_id, "resume", "Resumed")


def show(one: Operation) -> dict[str, Any]:
    """In the words of those who ask; what is not known is left out. Nothing in it changes with the
    time alone."""
    body = {
        "progressId": one.id,
        "status": one.status,
        "progress": one.percent,
        "message": one.message,
        "error": one.error,
        "currentStep": one.status,
        "logs": [*one.log, one.message],
        "currentUrl": one.current_url,
        "crawlType": "normal" if one.kind == "crawl" else None,
        "uploadType": "document" if one.kind == "upload" else None,
        "fileName": one.title if one.kind == "upload" else None,
        "totalPages": one.pages,
        "processedPages": one.fetched,
        "failedPages": one.failed,
        "totalDocuments": one.documents,
        "completedDocuments": one.stored,
        "sourceId": one.source,
        "startedAt": one.created_at,
        "duration": _duration(one),
        "details": {
            "pagesCrawled": one.fetched,
            "totalPages": one.pages,
            "pagesFailed": one.failed,
            "documentsStored": one.stored,
            "documentsLost": one.lost,
        },
    }
    return {name: value for name, value in body.items() if value is not None}


def _show_head(one: Operation) -> dict[str, Any]:
    body = {
        "operation_id": one.id,
        "operation_type": "upload" if one.kind == "upload" else "crawl",
        "status": one.status,
        "progress": one.percent,
        "message": one.message,
        "started_at": one.created_at,
        "source_id": one.source,
        "url": None if one.kind == "upload" else one.title,
        "current_url": one.current_url,
        "pages_crawled": one.fetched,
        "total_pages": one.pages,
        "documents_created": one.stored,
        "error": one.error,
    }
    return {name: value for name, value in body.items() if value is not None}


async def _change(caller: Caller, progress_id: ProgressId, verb: str, said: str) -> Response:
    try:
        await getattr(operations, verb)(caller.queue, progress_id, tenant=caller.tenant)
    except JobNotFound as error:
        raise missing(UNKNOWN) from error
    except IllegalTransition as error:
        raise ApiError(409, "CONFLICT", f"It is {error.state} already") from error
    return answer({"success": True, "message": said, "progressId": progress_id})


def _names(header: str | None, tag: str) -> bool:
    if header is None:
        return False
    named = [one.strip().removeprefix("W/") for one in header.split(",")]
    return tag in named or "*" in named


def _duration(one: Operation) -> str | None:
    if one.ended_at is None:
        return None
    return f"{(one.ended_at - one.created_at).total_seconds():.1f}s"
