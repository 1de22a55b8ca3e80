"""`create_site`: the HTTP API with the dashboard beside it."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Mapping
from threading import Thread
from typing import Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from windrow.api.app import create_app
from windrow.api.errors import ApiError
from windrow.api.limits import Guesses
from windrow.errors import ConfigError
from windrow.ingest.fetch.sealer import read_secrets
from windrow.queue.queue import Queue
from windrow.services.keys import hash_key
from windrow.services.pacing import PaceKeeper
from windrow.settings import Settings
from windrow.web import admin, jobs, knowledge, overview, runs
from windrow.web.pages import (
    ENVIRONMENT,
    HEADERS,
    STATIC,
    Look,
    Page,
    follow,
    load_templates,
    page,
    set_cookie,
)
from windrow.web.sessions import COOKIE, SECONDS, Sessions

logger = logging.getLogger(__name__)

# A path of the dashboard with its query, and never another site: no `//…`, and no backslash or
# blank, which browsers read as something else.
_OWN_PAGE: Final = re.compile(r"/(?:ui/[!-\[\]-~]{0,2000})?(?:\?[!-\[\]-~]{0,2000})?")


def _get(path: str, show: Page) -> Route:
    return Route(path, page(show), methods=["GET"], include_in_schema=False)


def _post(path: str, change: Page) -> Route:
    return Route(path, page(change), methods=["POST"], include_in_schema=False)


async def show_login(request: Request) -> Response:
    return _login_page("", request.query_params.get("next", ""))


async def log_in(request: Request) -> Response:
    sessions: Sessions = request.app.state.sessions
    guesses: Guesses = request.app.state.guesses
    form = await request.form()
    wanted, key = str(form.get("next", "")), str(form.get("key", "")).strip()
    cookie = await sessions.begin(key)
    try:
        guesses.count(request, key, hash_key(key), is_right=cookie is not None)
    except ApiError as error:
        return _login_page(f"{error}.", wanted, error.status, error.headers)
    if cookie is None:
        return _login_page("There is no such key.", wanted, 401)
    answer = RedirectResponse(wanted if _OWN_PAGE.fullmatch(wanted) else "/", 303)
    set_cookie(request, answer, COOKIE, cookie, seconds=SECONDS)
    return answer


async def log_out(look: Look) -> Response:
    await look.form("read")
    sessions: Sessions = look.request.app.state.sessions
    await sessions.end(look.request)
    answer = RedirectResponse("/ui/login", 303)
    answer.delete_cookie(COOKIE)
    return answer


def _login_page(
    why: str, wanted: str, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    text = ENVIRONMENT.get_template("login.html").render(why=why, wanted=wanted)
    return HTMLResponse(text, status, {**HEADERS, **(headers or {})})


ROUTES: Final = [
    _get("/", overview.show),
    _post("/ui/queues", overview.change_queue),
    _get("/ui/jobs", jobs.show_list),
    _get("/ui/jobs/{id}", jobs.show_one),
    _post("/ui/jobs/{id}", jobs.change_one),
    _get("/ui/failed", jobs.show_failed),
    _post("/ui/failed", jobs.change_failed),
    _get("/ui/runs", runs.show_list),
    _get("/ui/runs/{id}", runs.show_one),
    _post("/ui/runs/{id}", runs.change_one),
    _get("/ui/add", knowledge.show_add),
    _post("/ui/add", knowledge.add),
    _get("/ui/search", knowledge.show_search),
    _get("/ui/sources", knowledge.show_sources),
    _get("/ui/sources/{id}", knowledge.show_source),
    _post("/ui/sources/{id}", knowledge.change_source),
    _get("/ui/documents/{id}", knowledge.show_document),
    _post("/ui/documents/{id}", knowledge.change_document),
    _get("/ui/pipelines", admin.show_pipelines),
    _get("/ui/schedules", admin.show_schedules),
    _post("/ui/schedules", admin.change_schedule),
    _get("/ui/settings", admin.show_settings),
    _post("/ui/settings", admin.change_keys),
    _get("/ui/events", follow),
    _post("/ui/logout", log_out),
    Route("/ui/login", show_login, methods=["GET"], include_in_schema=False),
    Route("/ui/login", log_in, methods=["POST"], include_in_schema=False),
]


def create_site(queue: Queue, settings: Settings) -> FastAPI:
    """An application whose queue is opened and closed by the caller."""
    app = create_app(queue, settings)
    app.state.sessions = Sessions(_secret(settings), app.state.keys)
    app.state.pace = PaceKeeper(queue)
    # While the server starts, and not for longer than the process lasts.
    Thread(target=load_templates, name="windrow templates", daemon=True).start()
    app.router.routes.extend(ROUTES)
    app.router.routes.append(Mount("/ui/static", StaticFiles(directory=STATIC)))
    return app


def _secret(settings: Settings) -> bytes:
    """The same for all servers that share a secret key. Without a place for one, sessions end with
    the server."""
    try:
        return read_secrets(settings)[0].encode()
    except ConfigError as error:
        logger.warning("sessions of the dashboard end with this server: %s", error)
        return secrets.token_bytes(32)
