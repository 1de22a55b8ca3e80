"""What goes wrong, as a status and a body: one table, and no stack traces to clients."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from fastapi import FastAPI, HTTPException
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as RoutingError
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.errors import (
    DuplicateJob,
    GroupEnded,
    GroupNotFound,
    IllegalTransition,
    IndexUnavailable,
    IngestError,
    InvalidCursor,
    InvalidJob,
    InvalidOptions,
    InvalidSearch,
    JobNotFound,
    JobRacedOut,
    LeaseLost,
    MissingExtra,
    NotPermitted,
    PayloadTooLarge,
    QueueFull,
    QuotaExceeded,
    ResultTooLarge,
    RunEnded,
    ScheduleNotFound,
    StoreError,
    WaitTimeout,
    WindrowError,
)
from windrow.extras import explain_import

logger = logging.getLogger(__name__)

# The first that fits counts; a child stands before its parent.
STATUSES: Final[tuple[tuple[type[WindrowError], int, str], ...]] = (
    (InvalidOptions, 400, "BAD_REQUEST"),
    (PayloadTooLarge, 413, "PAYLOAD_TOO_LARGE"),
    (ResultTooLarge, 413, "PAYLOAD_TOO_LARGE"),
    (InvalidJob, 400, "BAD_REQUEST"),
    (InvalidSearch, 400, "BAD_REQUEST"),
    (InvalidCursor, 400, "BAD_REQUEST"),
    (QuotaExceeded, 402, "INSUFFICIENT_CREDITS"),
    (NotPermitted, 403, "FORBIDDEN"),
    (JobNotFound, 404, "NOT_FOUND"),
    (JobRacedOut, 404, "NOT_FOUND"),
    (GroupNotFound, 404, "NOT_FOUND"),
    (ScheduleNotFound, 404, "NOT_FOUND"),
    (WaitTimeout, 408, "SCRAPE_TIMEOUT"),
    (LeaseLost, 409, "LEASE_LOST"),
    (RunEnded, 409, "CONFLICT"),
    (IllegalTransition, 409, "CONFLICT"),
    (GroupEnded, 409, "CONFLICT"),
    (DuplicateJob, 409, "CONFLICT"),
    (QueueFull, 429, "QUEUE_FULL"),
    (MissingExtra, 501, "NOT_INSTALLED"),
    (IndexUnavailable, 503, "INDEX_UNAVAILABLE"),
    (StoreError, 503, "STORE_ERROR"),
)
# Of what could not be had; all others are 500.
SCRAPE_STATUSES: Final = {
    "BAD_REQUEST": 400,  # an option that is tried only once there is a page, as a selector
    "SCRAPE_DNS_RESOLUTION_ERROR": 200,  # with success: false, as clients expect it
    "SCRAPE_TIMEOUT": 408,
    "SCRAPE_NO_CACHED_DATA": 404,
    "SCRAPE_FORBIDDEN_TARGET": 403,
    "MODEL_NOT_CONFIGURED": 400,
    "VIDEO_NOT_FOUND": 404,
    "SOURCE_NOT_FOUND": 404,
    "DOCUMENT_NOT_FOUND": 404,
}
# Those whose words are about the database and not about the request.
_PRIVATE: Final = (StoreError,)
_PLACE: Final = re.compile(r"(?: - at `\$\.?)([^`]+)`")
_KEY: Final = "Unrecognized key in body"
INTERNAL: Final = "An unexpected error occurred; the server's log has more"


class ApiError(Exception):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        code: str,
        error: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.headers = headers
        self.body = {"success": False, "code": code, "error": error, **more}


def bad_request(error: str, code: str = "BAD_REQUEST") -> ApiError:
    return ApiError(400, code, error, details=[_issue(error)])


def scrape_error(code: str | None, error: str) -> ApiError:
    """The answer about a page that could not be had."""
    named = code or "SCRAPE_FAILED"
    return ApiError(SCRAPE_STATUSES.get(named, 500), named, error)


def status_of(error: WindrowError) -> tuple[int, str]:
    """The status and the code of the answer to an error of ours."""
    fitting = ((status, code) for kind, status, code in STATUSES if isinstance(error, kind))
    return next(fitting, (500, "UNKNOWN_ERROR"))


def public_message(error: WindrowError) -> str:
    """The message for clients: what is about the database and not about the request is logged."""
    return INTERNAL if isinstance(error, _PRIVATE) else str(error)


def to_api_error(error: WindrowError) -> ApiError:
    """The answer to an error of ours."""
    if isinstance(error, IngestError) and not isinstance(error, InvalidOptions):
        return scrape_error(error.code, str(error))
    status, code = status_of(error)
    if status == 400:
        return bad_request(str(error), code)
    if status >= 500:
        logger.error("a request failed: %s: %s", type(error).__name__, error)
    # In the words of the contract.
    said = "Job not found" if isinstance(error, JobNotFound) else public_message(error)
    return ApiError(status, code, said, **_data(error))


def add_error_handlers(app: FastAPI) -> None:
    handlers: dict[type[Exception], Callable[[Request, Any], Awaitable[Response]]] = {
        ApiError: _answer_api_error,
        WindrowError: _answer_windrow_error,
        ModuleNotFoundError: _answer_missing_module,
        RequestValidationError: _answer_invalid_request,
        HTTPException: _answer_routing_error,
        RoutingError: _answer_routing_error,
        Exception: _answer_unexpected,
    }
    for kind, handle in handlers.items():
        app.add_exception_handler(kind, handle)


async def _answer_api_error(request: Request, error: ApiError) -> Response:
    return answer(error.body, error.status, headers=error.headers)


async def _answer_windrow_error(request: Request, error: WindrowError) -> Response:
    return await _answer_api_error(request, to_api_error(error))


async def _answer_missing_module(request: Request, error: ModuleNotFoundError) -> Response:
    """The extra that the request needs, if it is one."""
    missing = explain_import(error, why="this request")
    if missing is None:
        raise error
    return await _answer_windrow_error(request, missing)


async def _answer_invalid_request(request: Request, error: RequestValidationError) -> Response:
    """Of what stands in the path and the query; bodies are checked by the options themselves."""
    issues = [
        {"code": one["type"], "message": one["msg"], "path": list(one["loc"])}
        for one in error.errors()
    ]
    first = issues[0]
    said = f"{'.'.join(map(str, first['path']))}: {first['message']}"
    body = {"success": False, "code": "BAD_REQUEST", "error": said, "details": issues}
    return answer(body, 400)


async def _answer_routing_error(request: Request, error: RoutingError) -> Response:
    code = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code, "BAD_REQUEST")
    body = {"success": False, "code": code, "error": str(error.detail)}
    return answer(body, error.status_code, headers=error.headers)


async def _answer_unexpected(request: Request, error: Exception) -> Response:
    # Starlette raises it again after this answer, and the server logs it with its stack.
    return answer({"success": False, "code": "UNKNOWN_ERROR", "error": INTERNAL}, 500)


def _data(error: WindrowError) -> dict[str, Any]:
    """What programs need of an error beside its code."""
    match error:
        case LeaseLost():
            return {"lost": list(error.job_ids)}
        case RunEnded():
            return {"ended": list(error.job_ids)}
        case DuplicateJob():
            return {"existing": error.existing}
        case IllegalTransition():
            return {"state": error.state}
        case _:
            return {}


def _issue(error: str) -> dict[str, Any]:
    place = _PLACE.search(error)
    return {
        "code": "unrecognized_keys" if error.startswith(_KEY) else "invalid",
        "message": error,
        "path": place[1].split(".") if place else [],
    }
