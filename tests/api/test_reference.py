"""docs/reference/http.md names every endpoint, and none that is not there."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route, WebSocketRoute

from tests.test_docs import ROOT
from windrow import Queue
from windrow.api.app import PREFIX, create_app
from windrow.settings import Settings

ROW = re.compile(r"^\| `([A-Z]+ /\S*)` \| (none|read|write|admin) \|", re.MULTILINE)


async def test_n10_the_reference_names_every_endpoint(tmp_path: Path) -> None:
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        app = create_app(queue, Settings())
    every = {name: role for route in app.routes for name, role in described(route)}
    served = {name: role for name, role in every.items() if not is_twin(name, every)}
    text = (ROOT / "docs" / "reference" / "http.md").read_text("utf-8")

    assert dict(ROW.findall(text)) == served


def is_twin(name: str, served: Collection[str]) -> bool:
    """Whether an endpoint is there without its prefix too, and described there."""
    method, _, path = name.partition(" ")
    return path.startswith(f"{PREFIX}/") and f"{method} {path.removeprefix(PREFIX)}" in served


def described(route: BaseRoute, prefix: str = "") -> list[tuple[str, str]]:
    """The names of an endpoint, and the role that it asks for."""
    router = getattr(route, "original_router", None)  # FastAPI's, of one that was included
    if router is not None:
        context: Any = getattr(route, "include_context", None)
        return [one for inner in router.routes for one in described(inner, context.prefix)]
    if isinstance(route, WebSocketRoute):
        return [(f"WS {route.path}", "read")]
    assert isinstance(route, Route)
    methods = sorted((route.methods or set()) - {"HEAD"})
    return [(f"{method} {prefix}{route.path}", role_of(route)) for method in methods]


def role_of(route: Route) -> str:
    if not isinstance(route, APIRoute):
        return "none"
    roles = [getattr(one.call, "role", None) for one in route.dependant.dependencies]
    return next((role for role in roles if role is not None), "none")
