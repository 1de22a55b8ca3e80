"""`windrow worker`: runs handlers until it is stopped."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from windrow.cli.options import (
    LogFormatOption,
    LogLevelOption,
    VerboseOption,
    load_and_log,
)
from windrow.cli.output import DatabaseOption, parse_duration, run
from windrow.services.working import (
    RECYCLED,
    begin_afresh,
    leave_stuck_threads,
    run_worker,
    supervise,
)
from windrow.settings import SUPERVISOR

MIB = 1024 * 1024


def worker(
    modules: Annotated[
        list[str] | None,
        typer.Argument(
            help="Modules with handlers, or Windrow's own: `web`, `nuq`, `knowledge`, `video`, "
            "`calls`, `index`. Default: the setting `handlers`, else all of Windrow's own."
        ),
    ] = None,
    queues: Annotated[
        str | None, typer.Option(help="Only these queues, with commas between; else all.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Handlers at once, in each process.")] = 10,
    processes: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    lease: Annotated[
        str | None, typer.Option(help="How long a silent worker is believed alive. [default: 30s]")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Timings: nuq, crawl, unified or processing.")
    ] = None,
    grace: Annotated[str, typer.Option(help="How long handlers may go on at the end.")] = "30s",
    max_memory: Annotated[
        int | None, typer.Option(metavar="MIB", help="Begin afresh above so many MiB.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Serve Prometheus metrics there, on loopback."),
    ] = None,
    until_idle: Annotated[
        bool,
        typer.Option("--until-idle", help="End when no job is ready or running, see --retry-wait."),
    ] = False,
    retry_wait: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How long --until-idle waits in total for retries and snoozes of its own jobs.",
        ),
    ] = "1m",
    name: Annotated[str | None, typer.Option(help="Its name. Default: host:process.")] = None,
    database: DatabaseOption = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Run jobs until stopped: the first signal lets running handlers end, the second does not."""
    settings = load_and_log(database, log_format, log_level, verbose)
    found = modules or settings.handlers.replace(",", " ").split()
    if processes == 1:
        work = run_worker(
            settings,
            found,
            until_idle=until_idle,
            wait_for_retries=parse_duration(retry_wait),
            queues=queues.split(",") if queues else None,
            concurrency=concurrency,
            lease=parse_duration(lease) if lease else None,
            preset=preset,
            grace=parse_duration(grace),
            max_memory=max_memory * MIB if max_memory else None,
            metrics_port=metrics_port,
            name=name,
        )
        code = run(leave_stuck_threads(work))
    arguments = [
        *(["--queues", queues] if queues else []),
        *("--concurrency", str(concurrency), "--grace", grace),
        *(["--lease", lease] if lease else []),
        *(["--preset", preset] if preset else []),
        *(["--max-memory", str(max_memory)] if max_memory else []),
        *(["--until-idle", "--retry-wait", retry_wait] if until_idle else []),
    ]
    if processes > 1:
        code = run(supervise(settings, found, arguments, processes, metrics_port))
    elif code == RECYCLED and SUPERVISOR not in os.environ:
        port = ["--metrics-port", str(metrics_port)] if metrics_port else []
        begin_afresh(settings, [*found, *arguments, *port])
    raise typer.Exit(code)
