"""`Quick` reads as FastAPI does: the same answers, the same errors, the same document."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Header, Query
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.app import ROUTERS
from windrow.api.errors import add_error_handlers
from windrow.api.quick import Quick

ID = "01999999-0000-7000-8000-000000000000"


def make_app(route_class: type[APIRoute]) -> FastAPI:
    router = APIRouter(route_class=route_class)

    @router.get("/{one_id}")
    async def endpoint(
        request: Request,
        one_id: UUID,
        skip: Annotated[int, Query(ge=0, le=99)] = 0,
        limit: Annotated[int | None, Query(ge=1)] = None,
        wait: float = 0.5,
        name: Annotated[str | None, Query(max_length=3)] = None,
        x_key: Annotated[str | None, Header(min_length=2)] = None,
    ) -> Response:
        values = [str(one_id), skip, limit, wait, name, x_key, request.method]
        return answer({"values": values})

    @router.get("/needs/{one_id}")
    async def needs(one_id: int, word: str) -> Response:
        return answer([one_id, word])

    app = FastAPI(routes=router.routes)
    add_error_handlers(app)
    return app


async def ask(app: FastAPI, path: str, headers: dict[str, str]) -> tuple[int, Any]:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as client:
        found = await client.get(path, headers=headers)
        return found.status_code, found.json()


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (f"/{ID}", {}, 200),
        (f"/{ID}?skip=5&limit=7&wait=1.5&name=hay", {"X-Key": "abc"}, 200),
        (f"/{ID}?skip=1&skip=2", {}, 200),
        (f"/{ID}?name=", {}, 200),
        (f"/{ID}?wait=inf&other=1", {}, 200),
        (f"/{ID.replace('-', '')}?skip=%205", {}, 200),
        (f"/{ID}?skip=100", {}, 400),
        (f"/{ID}?skip=-1&limit=0", {}, 400),
        (f"/{ID}?limit=", {}, 400),
        (f"/{ID}?name=long", {}, 400),
        (f"/{ID}", {"x-key": "a"}, 400),
        ("/nonsense?skip=x", {}, 400),
        ("/needs/5?word=hay", {}, 200),
        ("/needs/5", {}, 400),
        ("/needs/5.5", {}, 400),
    ],
)
async def test_it_answers_as_fastapi_does(path: str, headers: dict[str, str], status: int) -> None:
    found = await ask(make_app(Quick), path, headers)

    assert found == await ask(make_app(APIRoute), path, headers)
    assert found[0] == status


def test_it_is_described_as_by_fastapi() -> None:
    assert make_app(Quick).openapi() == make_app(APIRoute).openapi()


def test_what_is_asked_most_is_read_quickly() -> None:
    quick = {
        (method, route.path)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, Quick) and route.is_plain()
        for method in route.methods or ()
    }

    assert quick >= {
        ("GET", "/v2/crawl/{crawl_id}"),
        ("GET", "/v2/batch/scrape/{batch_id}"),
        ("POST", "/v2/scrape"),
        ("GET", "/queue/jobs/{job_id}"),
        ("POST", "/queue/claim"),
    }
