"""docs/reference/http.md: every endpoint, with what it takes, by the OpenAPI document and the roles
that the endpoints ask for."""

from __future__ import annotations

import asyncio
import inspect
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route, WebSocketRoute

from tests.reference.markdown import Undocumented, code, needed, page, prose, table
from windrow import Queue
from windrow.api.app import PREFIX, create_app
from windrow.settings import Settings

HEAD = """\
Every endpoint that `windrow serve` has; `/docs` of a running server shows the schemas of bodies.
[The HTTP API](../guides/http-api.md), [the queue over HTTP](../guides/queue-over-http.md) and
[knowledge over HTTP](../guides/knowledge-api.md) explain them; [coming from
Firecrawl](../guides/coming-from-firecrawl.md) says how far `/v2` goes.

The role is the least that a key needs: `none` needs no key. Bodies are JSON unless it says so; what
has a `*` must be there. Whatever goes wrong is
`{"success": false, "code": …, "error": …}` with a status: see [Errors](errors.md)."""
SECTIONS = {
    "Firecrawl's v2": ("/v2/",),
    "Knowledge": (
        *("/knowledge-items", "/progress", "/crawl-progress", "/documents"),
        *("/rag/", "/pages", "/sources"),
    ),
    "The bridge for other crawlers": ("/api/",),
    "The queue": ("/queue/",),
    "The server": ("/",),
}
NOTES = {
    "Knowledge": f"Each of these is there with `{PREFIX}` before it as well.",
    "The bridge for other crawlers": "Under `/api` only.",
}
# Of FastAPI and Starlette themselves.
GIVEN = {
    "GET /openapi.json": "This, for programs: the OpenAPI document.",
    "GET /docs": "This, for people, with schemas and a form to try each.",
    "GET /docs/oauth2-redirect": "Of the page `/docs`.",
}


class Endpoint(NamedTuple):
    name: str  # "GET /queue/jobs"
    role: str
    words: str
    takes: str


def render() -> str:
    app = asyncio.run(make_app())
    document = app.openapi()
    every = dict(one for route in app.routes for one in routes_of(route))
    served = [
        described(name, route, document)
        for name, route in every.items()
        if not is_twin(name, every)
    ]
    parts = []
    for title, prefixes in SECTIONS.items():
        mine = [one for one in served if one.name.split()[1].startswith(prefixes)]
        served = [one for one in served if one not in mine]
        rows = [[code(one.name), one.role, one.words, one.takes] for one in mine]
        listed = table(["endpoint", "role", "what it does", "takes"], rows)
        parts += [f"## {title}", NOTES.get(title, ""), listed]
    meant = table(["parameter", "where", "what it is"], list(parameters(document)))
    return page("The endpoints of the HTTP API", HEAD, *parts, "## Parameters", meant)


async def make_app() -> FastAPI:
    with tempfile.TemporaryDirectory(prefix="windrow-reference-") as folder:
        async with Queue.open(f"sqlite:///{folder}/jobs.db") as queue:
            return create_app(queue, Settings())


def is_twin(name: str, served: Mapping[str, object]) -> bool:
    """Whether an endpoint is there without its prefix too, and described there."""
    method, _, path = name.partition(" ")
    return path.startswith(f"{PREFIX}/") and f"{method} {path.removeprefix(PREFIX)}" in served


def routes_of(route: BaseRoute, prefix: str = "") -> Iterator[tuple[str, Route | WebSocketRoute]]:
    """The endpoints of a route by their names; those of a router that was included, too."""
    router = getattr(route, "original_router", None)
    if router is not None:
        context: Any = getattr(route, "include_context", None)
        for inner in router.routes:
            yield from routes_of(inner, context.prefix)
    elif isinstance(route, WebSocketRoute):
        yield f"WS {prefix}{route.path}", route
    else:
        assert isinstance(route, Route)
        for method in sorted((route.methods or set()) - {"HEAD"}):
            yield f"{method} {prefix}{route.path}", route


def role_of(route: Route | WebSocketRoute) -> str:
    if isinstance(route, WebSocketRoute):
        return "read"
    if not isinstance(route, APIRoute):
        return "none"
    roles = [getattr(one.call, "role", None) for one in route.dependant.dependencies]
    return next((role for role in roles if role is not None), "none")


def described(name: str, route: Route | WebSocketRoute, document: dict[str, Any]) -> Endpoint:
    method, _, path = name.partition(" ")
    operation = document["paths"].get(path, {}).get(method.lower(), {})
    is_socket = isinstance(route, WebSocketRoute)
    own = inspect.getdoc(route.endpoint) if is_socket else GIVEN.get(name)
    words = needed(operation.get("description") or own, name)
    return Endpoint(name, role_of(route), words, takes(operation))


def takes(operation: dict[str, Any]) -> str:
    """The parameters beside those in the path, and the fields of the body."""
    named = [
        code(one["name"]) + ("*" if one.get("required") else "")
        for one in operation.get("parameters", ())
        if one["in"] != "path"
    ]
    fields = [code(name) + star for name, star in body_fields(operation)]
    return "; ".join(", ".join(part) for part in (named, fields) if part)


def body_fields(operation: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        many = schema.get("anyOf", [schema])
        for one in many:
            required = one.get("required", ())
            for name in one.get("properties", {}):
                yield name, "*" if name in required and len(many) == 1 else ""
        if kind != "application/json":
            yield kind, ""


def parameters(document: dict[str, Any]) -> Iterator[list[str]]:
    seen: dict[tuple[str, str], str] = {}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for one in operation.get("parameters", ()):
                if not one.get("description"):
                    raise Undocumented(f"{one['name']} of {path}: windrow.api.words says nothing")
                seen[one["name"], one["in"]] = one["description"]
    for (name, where), words in sorted(seen.items(), key=lambda item: item[0][0].lower()):
        yield [code(name), where, prose(words)]
