"""`windrow db`: the database's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from windrow.cli.output import DatabaseOption, JsonOption, age, print_json, print_table, run
from windrow.queue.job import JobState
from windrow.queue.store import Pruned, QueueInfo
from windrow.services.database import database_status, migrate_database
from windrow.services.jobs import prune_jobs
from windrow.settings import load_settings

app = typer.Typer(help="Make, upgrade and look at the database.", no_args_is_help=True)


@app.command()
def migrate(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Bring the tables up to date. Safe to run twice, or from two places at once."""

    async def work() -> list[str]:
        return await migrate_database(load_settings({"database_url": database}).database_url)

    applied = run(work())
    if as_json:
        print_json({"applied": applied})
    elif applied:
        print("\n".join(f"applied {name}" for name in applied))
    else:
        print("nothing to do: the tables are up to date")


@app.command()
def status(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show the schema version and the queues. Exit code 5 when the tables do not fit."""

    async def work() -> None:
        found = await database_status(load_settings({"database_url": database}).database_url)
        if as_json:
            print_json(found)
        else:
            print(f"{found.url}\nschema version {found.version}")
            if found.problem is None:
                print_queues(found.queues)
        if found.problem is not None:
            raise typer.Exit(_report(found.problem))

    run(work())


@app.command()
def prune(
    archive: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write jobs there first, as JSON lines.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove jobs and groups that are past their time now; workers do it all the time."""

    async def work() -> Pruned:
        return await prune_jobs(load_settings({"database_url": database}), archive)

    pruned = run(work())
    if as_json:
        print_json({"jobs": pruned.jobs, "groups": pruned.groups})
    else:
        print(f"removed {pruned.jobs} jobs and {pruned.groups} groups")


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


def _report(problem: str) -> int:
    typer.echo(f"error: {problem}", err=True)
    return 5
