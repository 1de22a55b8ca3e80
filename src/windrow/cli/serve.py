"""`windrow serve`: the HTTP API, with a worker beside it."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from windrow.cli.output import DatabaseOption, load, run
from windrow.redaction import log_to


def serve(
    host: Annotated[
        str, typer.Option(help="The address to serve on; others than loopback need an API key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 3002,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Only serve; `windrow worker` works elsewhere.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, help="1: in this process; more: in processes of their own.")
    ] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="Jobs at once, of each worker.")] = 10,
    database: DatabaseOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Serve dashboard and HTTP API until stopped: the first signal lets requests end."""
    log_to(sys.stderr, logging.DEBUG if verbose else logging.INFO)
    # Not at the top: other commands start without them.
    import uvloop

    from windrow.services.serving import serve as serve_app
    from windrow.web.site import create_site

    run(
        serve_app(
            load(database),
            create_site,
            host=host,
            port=port,
            workers=0 if no_worker else workers,
            concurrency=concurrency,
            ready=lambda address: print(f"Windrow is served at {address}", flush=True),
        ),
        uvloop.new_event_loop,
    )
