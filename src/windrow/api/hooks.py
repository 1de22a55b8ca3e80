"""/hooks: databases tell of rows. A webhook is a wake-up that may come twice, late or never."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import read_as, takes_type
from windrow.api.callers import Writer
from windrow.api.errors import ApiError, bad_request
from windrow.errors import ConfigError
from windrow.services.video import told_of_row

router = APIRouter(tags=["hooks"])


class WebhookBody(msgspec.Struct):
    """What a database webhook of Supabase sends; whatever else is in it is ignored."""

    type: str
    table: str = ""
    schema: str = ""
    record: dict[str, Any] | None = None


@router.post("/hooks/videos", openapi_extra=takes_type(WebhookBody))
async def videos(request: Request, caller: Writer) -> Response:
    """A row of `clipnest_videos` was written. Its trigger has enqueued it already; a row that came
    without one is enqueued now, unless it is under way or has ended. Safe to repeat."""
    body = await read_as(request, WebhookBody)
    if body.type == "DELETE":
        return answer({"success": True, "status": "ignored"})
    id = (body.record or {}).get("id")
    if id is None:
        raise bad_request("record: it has no id")
    try:
        status = await told_of_row(caller.queue, body.type, id)
    except ConfigError as error:
        raise ApiError(404, "NOT_FOUND", str(error)) from error
    return answer({"success": True, "status": status}, status=202)
