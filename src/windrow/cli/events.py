"""`windrow events`: what happened, a line for each event, and what happens now."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

import msgspec
import typer

from windrow.cli.output import DatabaseOption, JsonOption, make_console, run
from windrow.queue.events import Event
from windrow.services.jobs import follow_events
from windrow.settings import load_settings


def events(
    after: Annotated[
        str | None, typer.Option(help="Go on behind this cursor; 0: from the oldest kept.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens, until interrupted.")
    ] = False,
    type: Annotated[list[str] | None, typer.Option(help="Only these, like job.finished.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only of this queue.")] = None,
    group: Annotated[str | None, typer.Option(help="Only of this group.")] = None,
    job: Annotated[str | None, typer.Option(help="Only of this job.")] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what happened to jobs and groups, oldest first. With --json, a line of JSON for each.

    Without --after this begins with the oldest that is kept, or with --follow with what comes next.
    """
    show = _print_json if as_json else _print

    async def work() -> str | None:
        cursor = None
        stream = follow_events(
            load_settings({"database_url": database}),
            after,
            follow=follow,
            types=type or None,
            queue=queue,
            group=group,
            job=job,
        )
        async with aclosing(stream):
            async for event in stream:
                show(event)
                cursor = event.cursor
        return cursor

    cursor = run(work())
    if cursor is not None and not as_json:
        print(f"more: --after {cursor}")


def _print_json(event: Event) -> None:
    print(msgspec.json.encode(event).decode(), flush=True)


def _print(event: Event) -> None:
    of = f"{event.queue}  {event.kind}" if event.job_id else "group"
    details = "  ".join(f"{name}={value}" for name, value in event.details.items() if value)
    at = event.at.astimezone().isoformat(" ", "milliseconds")
    line = f"{at}  {event.type:<14}  {event.state:<9}  {event.job_id or event.group_id}  {of}"
    make_console().print(f"{line}  {details}".rstrip(), markup=False, soft_wrap=True)
