"""What stands in the bodies of requests. Options are taken as they are: those who use them check
them (`ScrapeOptions`, `CrawlOptions`, `MapOptions`), so that they are defined once."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from starlette.requests import Request

from windrow.api.errors import ApiError, bad_request


def takes(**required: Any) -> dict[str, Any]:
    """What OpenAPI says about a body: what must be in it. Options are named when they are wrong."""
    schema = {"type": "object", "required": [*required], "properties": required}
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


BODY_SECONDS: Final = 30.0  # for a body to come
TAKES_URL: Final = takes(url={"type": "string"})
TAKES_URLS: Final = takes(urls={"type": "array", "items": {"type": "string"}})


async def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request, without what is null in it: that is what is not said."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = msgspec.json.decode(await request.body())
    except TimeoutError as error:
        raise ApiError(408, "REQUEST_TIMEOUT", "The body did not come in time") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        said = f"Bad request, malformed JSON: {error}"
        raise ApiError(400, "BAD_REQUEST_INVALID_JSON", said, details=[]) from error
    if not isinstance(body, dict):
        raise bad_request("the body must be a JSON object")
    return {name: value for name, value in body.items() if value is not None}


def take(
    body: dict[str, Any], name: str, kind: type | tuple[type, ...], default: Any = None
) -> Any:
    """Take a value out of a body; it must be of that type if it is there."""
    value = body.pop(name, default)
    is_wrong_bool = isinstance(value, bool) and kind is int
    if value is not default and (not isinstance(value, kind) or is_wrong_bool):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(one.__name__ for one in kinds)
        raise bad_request(f"{name}: Expected `{wanted}`, got `{type(value).__name__}`")
    return value


def take_url(body: dict[str, Any]) -> str:
    url: str | None = take(body, "url", str)
    if not url or not url.strip():
        raise bad_request("url: Required")
    return url.strip()


def refuse(body: dict[str, Any], name: str, why: str) -> None:
    """What cannot be done is said, not left out."""
    if name in body:
        raise bad_request(f"{name}: {why}")
