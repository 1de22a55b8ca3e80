"""`windrow queues`: how queues are, stopping them for a while, and their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from windrow.cli.lazy import Noun
from windrow.cli.output import (
    DatabaseOption,
    JsonOption,
    age,
    ask,
    cut,
    print_fields,
    print_json,
    print_table,
)
from windrow.queue.job import JobState
from windrow.queue.records import OnFull, QueueInfo
from windrow.services.queues import (
    QueueStats,
    list_queues,
    pause_queues,
    queue_stats,
    resume_queues,
    set_queue,
)

app = Noun(help="List, look at, pause, resume and bound queues.", no_args_is_help=True)

Names = Annotated[list[str], typer.Argument(metavar="QUEUE…", help="Which queues.")]


@app.command("list")
def list_(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """List queues with their jobs by state and the age of the oldest ready one."""
    found = ask(list_queues, database)
    if as_json:
        print_json(found)
    else:
        print_queues(found)


@app.command()
def stats(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[QUEUE…]", help="Default: all of them.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show queues closely: bounds, retention, workers, what is next, and the commonest errors."""
    found = ask(queue_stats, database, names or [])
    if as_json:
        print_json(found)
        return
    for number, one in enumerate(found):
        if number:
            print()
        _print_stats(one)


@app.command()
def pause(names: Names, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Start no more jobs of queues. Nothing is lost; running jobs go on."""
    found = ask(pause_queues, database, names)
    if as_json:
        print_json(found)
        return
    for info in found:
        running = info.counts.get(JobState.ACTIVE, 0)
        print(f"paused {info.name}: {info.counts.get(JobState.READY, 0)} ready, {running} running")


@app.command()
def resume(names: Names, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Let paused queues go on."""
    found = ask(resume_queues, database, names)
    if as_json:
        print_json(found)
        return
    for info in found:
        print(f"resumed {info.name}: {info.counts.get(JobState.READY, 0)} ready")


@app.command("set")
def set_(
    name: Annotated[str, typer.Argument(metavar="QUEUE", help="Which queue.")],
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
    info = ask(set_queue, database, name, max_depth=max_depth, on_full=on_full)
    if as_json:
        print_json({"name": name, "max_depth": info.max_depth, "on_full": info.on_full})
    elif info.max_depth is None:
        print(f"{name}: any number of jobs may wait")
    else:
        print(f"{name}: at most {info.max_depth} jobs wait; when it is full: {info.on_full}")


def print_queues(queues: Sequence[QueueInfo]) -> None:
    """Queues with their counts; states that no job is in anywhere are left out."""
    states = [state for state in JobState if any(info.counts.get(state) for info in queues)]
    print_table(
        ["queue", "paused", *(f"{state}#" for state in states), "oldest#"],
        [
            [
                info.name,
                "yes" if info.is_paused else "",
                *(info.counts.get(state, 0) for state in states),
                age(info.oldest_ready_at),
            ]
            for info in queues
        ],
    )


def _print_stats(one: QueueStats) -> None:
    info = one.info
    bound = (
        None if info.max_depth is None else f"{info.max_depth} jobs may wait, then {info.on_full}"
    )
    kept = {
        state: "for ever" if seconds < 0 else f"{seconds} s"
        for state in ("completed", "failed", "cancelled")
        if (seconds := getattr(one.retention, state)) is not None
    }
    print_fields(
        {
            "queue": info.name,
            "paused": "yes" if info.is_paused else None,
            "jobs": {state: count for state, count in info.counts.items() if count},
            "oldest ready": info.oldest_ready_at,
            "bound": bound,
            "kept": kept,
            "next kinds": {kind.kind: kind.count for kind in one.next_kinds},
            "workers": [f"{worker.name} ({worker.running} running)" for worker in one.workers],
        }
    )
    for error in one.errors:
        print(cut(f"{error.count} × {error.error}"))
