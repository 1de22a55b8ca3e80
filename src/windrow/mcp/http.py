"""The MCP server over HTTP, at `/mcp`: who may use it is decided as for the HTTP API.

Nothing is kept between two requests, so each of them shows its own key. A page of another site
cannot use a browser to get here (by its name for this machine, or at all): without any key the Host
and the Origin must be this machine's, with keys the Origin must be, or be named in
`api_cors_origins`.
"""

from __future__ import annotations

from typing import Any, Final

from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from windrow.api.answers import answer
from windrow.api.callers import host_of, identify, is_loopback
from windrow.api.errors import ApiError
from windrow.api.limits import Guesses, RateLimit
from windrow.mcp.server import make_server
from windrow.queue.queue import Queue
from windrow.services.keys import Identity, KeyRing
from windrow.services.searching import Searching
from windrow.settings import Settings

PATH: Final = "/mcp"
_IDENTITY: Final = "windrow.identity"
_HEADERS: Final = ["Authorization", "Content-Type", "Mcp-Protocol-Version", "Mcp-Session-Id"]


def create_app(queue: Queue, settings: Settings) -> Starlette:
    """An application whose queue is opened and closed by the caller."""
    searching = Searching(settings, queue)
    server = make_server(queue, searching, _identity_of)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        # Its list of hosts is fixed at the start; `_Callers` goes by the keys there are now.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.state.keys = KeyRing(queue, settings)
    app.state.rates = RateLimit(settings.api_requests_per_minute)
    app.state.guesses = Guesses()
    app.state.is_stopping = False
    app.state.stopping = []
    app.state.closing = [searching.close]
    origins = settings.api_cors_origins.replace(",", " ").split()
    app.add_middleware(_Callers, origins=origins)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=_HEADERS,
            expose_headers=["Retry-After", "Mcp-Session-Id"],
        )
    return app


class _Callers:
    """Lets only those through who may ask, and notes who each is."""

    def __init__(self, app: ASGIApp, origins: list[str]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            self._check_origin(connection.headers.get("origin"))
            scope[_IDENTITY] = await identify(connection)
        except ApiError as error:
            headers = dict(error.headers or {})
            if error.status == 401:
                headers["WWW-Authenticate"] = "Bearer"
            await answer(error.body, error.status, headers=headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_origin(self, origin: str | None) -> None:
        if origin is None or "*" in self._origins or origin in self._origins:
            return
        if not is_loopback(host_of(origin)):
            said = f"Pages of {origin} may not use this server: see the setting api_cors_origins"
            raise ApiError(403, "FORBIDDEN", said)


def _identity_of(ctx: Context[Any, Any]) -> Identity:
    request = ctx.request_context.request
    if request is None:
        raise RuntimeError("a tool was called over HTTP without a request")
    identity: Identity = request.scope[_IDENTITY]
    return identity
