"""POST /documents/upload: files that are handed in, as many as fit into a request."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from fastapi import APIRouter
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import within_time
from windrow.api.callers import Writer
from windrow.api.errors import ApiError
from windrow.api.knowledge.requests import unfit
from windrow.services.handing_in import TextOptions, Upload, take_files
from windrow.services.knowledge import COLLECTION

router = APIRouter(tags=["knowledge"])

MOST_FILES: Final = 100
TAKES_FILES: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": f"one, or up to {MOST_FILES} under this name",
                        },
                        "tags": {"type": "string", "description": "a JSON array of texts"},
                        "knowledge_type": {"type": "string"},
                        "collection": {"type": "string"},
                        "extract_code_examples": {"type": "string"},
                    },
                }
            }
        },
    }
}


@router.post("/documents/upload", openapi_extra=TAKES_FILES)
async def upload(request: Request, caller: Writer) -> Response:
    """Have files found. What cannot be read is named in `files` with the reason, and the others are
    taken; only if nothing can be is it an error."""
    form = await within_time(request.form(max_files=MOST_FILES, max_fields=20))
    try:
        given = [one for _, one in form.multi_items() if isinstance(one, UploadFile)]
        if not given:
            raise unfit("file: Required, as a file of multipart/form-data")
        options = TextOptions(
            tenant=caller.tenant,
            collection=_text(form, "collection", COLLECTION),
            tags=_tags(form.get("tags")),
            kept={"knowledge_type": _text(form, "knowledge_type", "technical")},
        )
        files = [Upload(one.filename or "upload", await one.read()) for one in given]
    finally:
        await form.close()
    receipt = await take_files(caller.queue, files, options)
    told: list[dict[str, Any]] = [
        {"filename": one.name, "success": True, "source_id": one.source}
        if one.error is None
        else {"filename": one.name, "success": False, "error": one.error}
        for one in receipt.taken
    ]
    if receipt.job_id is None:
        said = f"{told[0]['filename']}: {told[0]['error']}"
        raise ApiError(422, "UNPROCESSABLE", said, detail={"error": said}, files=told)
    body = {
        "success": True,
        "progressId": receipt.job_id,
        "job_id": receipt.job_id,
        "message": "Upload taken",
        "filename": told[0]["filename"],
        "files": told,
    }
    return answer(body)


def _text(form: FormData, name: str, default: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) and value else default


def _tags(text: object) -> tuple[str, ...]:
    if text is None or text == "":
        return ()
    try:
        tags = msgspec.json.decode(text, type=list[str]) if isinstance(text, str) else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise unfit(f"tags: {error}") from error
    if tags is None:
        raise unfit("tags: Expected a JSON array of texts")
    return tuple(tags)
