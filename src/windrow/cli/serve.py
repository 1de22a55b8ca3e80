"""`windrow serve`: the HTTP API, with a worker beside it."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.cli.options import (
    LogFormatOption,
    LogLevelOption,
    VerboseOption,
    load_and_log,
)
from windrow.cli.output import DatabaseOption, run


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
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Serve dashboard and HTTP API until stopped: the first signal lets requests end."""
    settings = load_and_log(database, log_format, log_level, verbose)
    # Not at the top: other commands start without them.
    import uvloop

    from windrow.services.serving import serve as serve_app
    from windrow.web.site import create_site

    run(
        serve_app(
            settings,
            create_site,
            host=host,
            port=port,
            workers=0 if no_worker else workers,
            concurrency=concurrency,
            ready=lambda address: print(f"Windrow is served at {address}", flush=True),
        ),
        uvloop.new_event_loop,
    )
