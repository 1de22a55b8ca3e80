"""What stands in the bodies of requests. Options are taken as they are: those who use them check
them (`ScrapeOptions`, `CrawlOptions`, `MapOptions`), so that they are defined once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request

from windrow.api.errors import ApiError, bad_request
from windrow.ingest.web.scope import explain

T = TypeVar("T")


def takes(**required: Any) -> dict[str, Any]:
    """What OpenAPI says about a body: what must be in it. Options are named when they are wrong."""
    schema = {"type": "object", "required": [*required], "properties": required}
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def takes_type(*kinds: Any, required: bool = True) -> dict[str, Any]:
    """The same of a body that is read as a type, or as one of several."""
    schemas, parts = msgspec.json.schema_components(kinds, ref_template="{name}")
    written = [_written_out(schema, parts) for schema in schemas]
    schema = written[0] if len(written) == 1 else {"anyOf": written}
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": required, "content": content}}


def _written_out(schema: Any, parts: dict[str, Any]) -> Any:
    """With the parts where they are referred to: an endpoint can add none to the document."""
    if isinstance(schema, list):
        return [_written_out(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if set(schema) == {"$ref"} and schema["$ref"] in parts:
        return _written_out(parts[schema["$ref"]], parts)
    return {
        name: _written_out(one, parts) for name, one in schema.items() if name != "discriminator"
    }


BODY_SECONDS: Final = 30.0  # for a body to come
TAKES_URL: Final = takes(url={"type": "string"})
TAKES_URLS: Final = takes(urls={"type": "array", "items": {"type": "string"}})


async def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request, without what is null in it: that is what is not said."""
    body = await read_as(request, Any)
    if not isinstance(body, dict):
        raise bad_request("the body must be a JSON object")
    return {name: value for name, value in body.items() if value is not None}


async def read_as(request: Request, kind: type[T], *, default: T | None = None) -> T:
    """The JSON of a request as a type of msgspec's; with a default there need not be any."""
    body = await within_time(request.body())
    if not body and default is not None:
        return default
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise bad_request(explain(str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = f"Bad request, malformed JSON: {error}"
        raise ApiError(400, "BAD_REQUEST_INVALID_JSON", said, details=[]) from error


async def within_time(reading: Awaitable[T]) -> T:
    """What is read of a request. Raises ApiError 408 if it does not come."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await reading
    except TimeoutError as error:
        raise ApiError(408, "REQUEST_TIMEOUT", "The body did not come in time") from error


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
