"""POST /v2/parse: a file that is uploaded, as a document."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from fastapi import APIRouter
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import within_time
from windrow.api.callers import Writer
from windrow.api.errors import bad_request
from windrow.api.quick import Quick
from windrow.errors import UnsupportedFormat
from windrow.ids import new_id
from windrow.services.parsing import parse_file
from windrow.services.quotas import count_one, take_budget

router = APIRouter(tags=["parse"], route_class=Quick)

TAKES_FILE: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "options": {"type": "string", "description": "JSON: as of a scrape"},
                    },
                }
            }
        },
    }
}


@router.post("/v2/parse", openapi_extra=TAKES_FILE)
async def parse(request: Request, caller: Writer) -> Response:
    """A file as a document. It is read here and not kept."""
    form = await within_time(request.form(max_files=1, max_fields=10))
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise bad_request("file: Required, as a file of multipart/form-data")
        budget = await take_budget(caller.queue, caller.quota)
        document = await parse_file(
            request.app.state.settings,
            file.filename or "upload",
            await file.read(),
            file.content_type or "",
            _options(form.get("options")),
        )
    except UnsupportedFormat as error:
        raise bad_request(str(error), "UNSUPPORTED_FILE_TYPE") from error
    finally:
        await form.close()
    await count_one(caller.queue, caller.quota, budget)
    document.metadata.scrape_id = new_id()
    return answer({"success": True, "data": document.to_wire()})


def _options(text: object) -> dict[str, Any]:
    """What stands in the field `options`."""
    if text is None or text == "":
        return {}
    try:
        options = msgspec.json.decode(text) if isinstance(text, str) else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise bad_request(f"options: malformed JSON: {error}") from error
    if not isinstance(options, dict):
        raise bad_request("options: Expected a JSON object")
    return {name: value for name, value in options.items() if value is not None}
