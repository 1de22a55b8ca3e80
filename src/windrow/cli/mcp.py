"""`windrow mcp`: what was ingested, and the queue, as tools for models that speak MCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from windrow.cli.options import (
    LogFormatOption,
    LogLevelOption,
    VerboseOption,
    load_and_log,
)
from windrow.cli.output import MISUSED, DatabaseOption, give_up, run

if TYPE_CHECKING:
    from windrow.services.keys import Identity
    from windrow.settings import Settings


def mcp(
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve over HTTP at /mcp (port 0: a free one) instead of stdin and stdout.",
        ),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(help="Only what this tenant has; over HTTP the key says whose it is."),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Nothing can be added; over HTTP the key says so.")
    ] = False,
    no_worker: Annotated[
        bool,
        typer.Option(
            "--no-worker",
            help="Leave jobs to others; without this a worker runs here while no other does.",
        ),
    ] = False,
    database: DatabaseOption = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Serve search, sources and the queue to a model, over stdin and stdout or over HTTP."""
    # stdout is for messages; clients show what is on stderr as trouble
    settings = load_and_log(database, log_format, log_level, verbose, default_level="warning")
    if http is None:
        from windrow.services.keys import Identity

        run(_serve_stdio(settings, Identity(tenant, "read" if read_only else "admin"), no_worker))
        return
    if tenant is not None or read_only:
        raise give_up("--tenant and --read-only are for stdin; over HTTP keys say so", MISUSED)
    host, port = _place(http)
    # Not at the top: other commands start without them.
    import uvloop

    from windrow.mcp.http import PATH, create_app
    from windrow.services.serving import serve

    run(
        serve(
            settings,
            create_app,
            host=host,
            port=port,
            workers=0 if no_worker else None,
            ready=lambda address: print(f"MCP is served at {address}{PATH}", flush=True),
        ),
        uvloop.new_event_loop,
    )


async def _serve_stdio(settings: Settings, identity: Identity, no_worker: bool) -> None:
    from windrow.mcp.server import serve_stdio
    from windrow.services.attending import attend
    from windrow.services.searching import Searching
    from windrow.services.working import COMMAND_HANDLERS

    own = () if no_worker else COMMAND_HANDLERS
    async with (
        attend(settings, own=own, log_runs=True) as attendance,
        Searching(settings, attendance.queue) as searching,
    ):
        await serve_stdio(attendance.queue, searching, identity, attendance.interrupted)


def _place(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise give_up(f"--http takes HOST:PORT like 127.0.0.1:8051, not {text!r}", MISUSED)
    return host.strip("[]"), int(port)
