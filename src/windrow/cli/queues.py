"""`windrow queues`: what is set for a queue as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.cli.output import DatabaseOption, JsonOption, print_json, run
from windrow.queue.records import OnFull, QueueInfo
from windrow.services.queues import set_queue
from windrow.settings import load_settings

app = typer.Typer(help="Look at queues and change them.", no_args_is_help=True)


@app.command("set")
def set_(
    name: str,
    max_depth: Annotated[
        int | None, typer.Option(help="How many jobs may wait in it. Left out: any number.")
    ] = None,
    on_full: Annotated[
        OnFull, typer.Option(help="What happens to a job when so many wait already.")
    ] = "reject",
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bound the number of jobs that wait in a queue."""

    async def work() -> QueueInfo:
        settings = load_settings({"database_url": database})
        return await set_queue(settings, name, max_depth=max_depth, on_full=on_full)

    info = run(work())
    if as_json:
        print_json({"name": name, "max_depth": info.max_depth, "on_full": info.on_full})
    elif info.max_depth is None:
        print(f"{name}: any number of jobs may wait")
    else:
        print(f"{name}: at most {info.max_depth} jobs wait; when it is full: {info.on_full}")
