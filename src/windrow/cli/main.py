"""`windrow`: the command itself. One module per noun adds its commands here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from windrow import __version__
from windrow.cli import (
    bench,
    calls,
    credentials,
    db,
    demo,
    doctor,
    events,
    groups,
    init,
    jobs,
    keys,
    knowledge,
    limits,
    mcp,
    migrate,
    output,
    queues,
    schedules,
    search,
    serve,
    top,
    video,
    web,
    worker,
)

app = typer.Typer(
    name="windrow",
    help="Durable ingestion: jobs in a database, nothing silently lost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(calls.app, name="calls")
app.add_typer(credentials.app, name="credentials")
app.add_typer(db.app, name="db")
app.add_typer(groups.app, name="groups")
app.add_typer(jobs.app, name="jobs")
app.add_typer(keys.app, name="keys")
app.add_typer(limits.app, name="limits")
app.add_typer(migrate.app, name="migrate")
app.add_typer(queues.app, name="queues")
app.add_typer(schedules.app, name="schedules")
app.add_typer(knowledge.app, name="sources")
app.add_typer(video.app, name="video")
app.command("add")(knowledge.add)
app.command("watch")(knowledge.watch)
app.command("scrape")(web.scrape)
app.command("crawl")(web.crawl)
app.command("map")(web.map_)
app.command("batch")(web.batch)
app.command("bench", context_settings=bench.CONTEXT)(bench.bench)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("events")(events.events)
app.command("init")(init.init)
app.command("mcp")(mcp.mcp)
app.command("search")(search.search)
app.command("serve")(serve.serve)
app.command("top")(top.top)
app.command("worker")(worker.worker)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print where an error came from, not only what it is.")
    ] = False,
) -> None:
    output.show_traces(debug)
    if version:
        print(f"windrow {__version__}")
        raise typer.Exit


def main() -> None:
    """What nobody foresaw is one line too, and says how to see more."""
    try:
        app()
    except Exception as error:
        if output.shows_traces():
            raise
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        sys.exit(
            output.give_up(f"{what}\nhint: windrow --debug … shows where it came from").exit_code
        )
