"""`create_app`: the whole HTTP API on one queue."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from windrow import __version__
from windrow.api import events, health, hooks
from windrow.api.errors import add_error_handlers
from windrow.api.firecrawl import batch, crawl, extract, parse, scrape, search, team, watch
from windrow.api.knowledge import bridge, contents, items, progress, rag, uploads
from windrow.api.limits import BodyLimit, Guesses, RateLimit
from windrow.api.queue import groups, jobs, queues, runs
from windrow.api.words import say_what_parameters_mean
from windrow.queue.queue import Queue
from windrow.services.broadcasting import Broadcast
from windrow.services.keys import KeyRing
from windrow.services.searching import Searching
from windrow.settings import Settings

# Looked through in this order, so those that are asked most come first.
ROUTERS = (
    crawl.router,
    batch.router,
    scrape.router,
    jobs.router,
    runs.router,
    health.router,
    search.router,
    crawl.map_router,
    parse.router,
    extract.router,
    team.router,
    watch.router,
    queues.router,
    groups.router,
    events.router,
    hooks.router,
    bridge.router,
)

# Asked for with and without a prefix.
KNOWLEDGE = (progress.router, rag.router, items.router, contents.router, uploads.router)
PREFIX = "/api"


def create_app(queue: Queue, settings: Settings) -> FastAPI:
    """An application whose queue is opened and closed by the caller."""
    app = FastAPI(
        title="Windrow",
        version=__version__,
        description="Pages, sites and jobs, durably. `/v2` speaks as Firecrawl does.",
        redoc_url=None,
        # Not included: a router inside another is searched twice for each request.
        routes=[route for router in (*ROUTERS, *KNOWLEDGE) for route in router.routes],
    )
    app.state.queue = queue
    app.state.settings = settings
    app.state.is_stopping = False
    app.state.broadcast = Broadcast(queue)
    app.state.keys = KeyRing(queue, settings)
    app.state.rates = RateLimit(settings.api_requests_per_minute)
    app.state.guesses = Guesses()
    app.state.searching = Searching(settings, queue)
    app.state.stopping = [app.state.broadcast.close]  # those who listen would do so for ever
    app.state.closing = [app.state.searching.close]  # for whoever serves it, at the end
    for router in KNOWLEDGE:
        app.include_router(router, prefix=PREFIX)
    say_what_parameters_mean(app)
    add_error_handlers(app)
    app.add_middleware(BodyLimit)
    if origins := settings.api_cors_origins.replace(",", " ").split():
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=[
                "Authorization",
                "Content-Type",
                "Last-Event-ID",
                "x-idempotency-key",
                "If-None-Match",
            ],
            expose_headers=["Retry-After", "ETag", "X-Poll-Interval"],
        )
    return app
