"""GET /events: what happens to jobs and groups, as server-sent events.

Each has its cursor as `id`, so a browser's EventSource that lost its connection asks for what came
since, with `Last-Event-ID`. Comments keep quiet connections alive, and move the `id` on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from windrow.api.callers import Reader
from windrow.api.errors import ApiError
from windrow.api.quick import Quick
from windrow.queue.events import Event, EventType
from windrow.services.broadcasting import Beat, Broadcast, Gap, TooManyListeners, Wanted

router = APIRouter(tags=["events"], route_class=Quick)

BEAT_SECONDS: Final = 15.0
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Said = Event | Beat | Gap
Cursor = Annotated[str | None, Query(max_length=40)]


@router.get("/events")
async def follow_events(
    request: Request,
    caller: Reader,
    queue: Annotated[str | None, Query(max_length=255)] = None,
    group: UUID | None = None,
    job: UUID | None = None,
    type: Annotated[list[EventType] | None, Query()] = None,
    after: Cursor = None,
    last_event_id: Annotated[str | None, Header(max_length=40)] = None,
) -> Response:
    """What happens, for ever, or what happened after a cursor and then on."""
    wanted = Wanted(
        tenant=caller.tenant,
        types=None if type is None else tuple(type),
        queue=queue,
        group=None if group is None else str(group),
        job=None if job is None else str(job),
    )
    broadcast: Broadcast = request.app.state.broadcast
    events = broadcast.listen(wanted, last_event_id or after, beat=BEAT_SECONDS)
    try:
        first = await anext(events)  # so that what is wrong is told by a status
    except (StopAsyncIteration, TooManyListeners) as error:
        said = "The server stops, or too many listen already"
        raise ApiError(503, "NOT_LISTENING", said, headers={"Retry-After": "5"}) from error
    stream = _stream(first, events)
    return StreamingResponse(stream, media_type="text/event-stream", headers=_HEADERS)


async def _stream(first: Said, events: AsyncGenerator[Said, None]) -> AsyncIterator[bytes]:
    async with aclosing(events):
        yield _text(first)
        async for one in events:
            yield _text(one)


def _text(one: Said) -> bytes:
    match one:
        case Event():
            return _said(one.cursor, one.type, show(one))
        case Gap():
            return _said(one.oldest, "gap", {"after": one.cursor, "oldest": one.oldest})
        case Beat():
            return f": beat\nid: {one.cursor}\n\n".encode()


def show(event: Event) -> dict[str, Any]:
    return {
        "cursor": event.cursor,
        "at": event.at,
        "type": event.type,
        "state": event.state,
        "job": event.job_id,
        "group": event.group_id,
        "queue": event.queue,
        "kind": event.kind,
        "tenant": event.tenant,
        "details": event.details,
    }


def _said(cursor: str, name: str, data: dict[str, Any]) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        cursor.encode(),
        name.encode(),
        msgspec.json.encode(data),
    )
