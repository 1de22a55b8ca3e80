"""`windrow db cron`: maintenance by pg_cron, the scheduler inside Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from windrow.cli.lazy import Noun
from windrow.cli.output import (
    DatabaseOption,
    JsonOption,
    YesOption,
    age,
    print_json,
    print_preview,
    print_table,
    run,
)
from windrow.services.postgres import install_cron, list_cron, remove_cron
from windrow.settings import load_settings

if TYPE_CHECKING:
    from windrow.queue.postgres.cron import CronJob

app = Noun(help="Let pg_cron do maintenance that needs no Python.", no_args_is_help=True)

HomeOption = Annotated[
    str | None,
    typer.Option(
        "--cron-database", metavar="NAME", help="Where pg_cron lives; found out if it can be."
    ),
]


@app.command()
def install(
    cron_database: HomeOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Let pg_cron stage due jobs, rescue those of dead workers and fold counts. Safe to repeat."""
    _show(run(install_cron(_url(database), cron_database)), as_json)


@app.command()
def remove(
    cron_database: HomeOption = None,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back all that was handed to pg_cron for this database."""
    if not yes and (found := run(list_cron(_url(database), cron_database))):
        names = [job.name for job in found]
        print_preview(f"remove {', '.join(names)}", {"jobs": names}, as_json)
        return
    removed = [job.name for job in run(remove_cron(_url(database), cron_database))]
    if as_json:
        print_json({"is_done": bool(removed), "removed": removed})
    else:
        print("\n".join(f"removed {name}" for name in removed) or "nothing to do")


@app.command()
def status(
    cron_database: HomeOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Show what pg_cron does for this database, and how its last run went."""
    _show(run(list_cron(_url(database), cron_database)), as_json)


def _url(database: str | None) -> str:
    return load_settings({"database_url": database}).database_url


def _show(jobs: Sequence[CronJob], as_json: bool) -> None:
    if as_json:
        print_json(jobs)
    elif not jobs:
        print("pg_cron does nothing for this database: `windrow db cron install`")
    else:
        rows = [
            [
                job.name,
                job.schedule,
                "" if job.is_active else "off",
                age(job.ran_at),
                job.status,
                job.message,
            ]
            for job in jobs
        ]
        print_table(["name", "schedule", "", "last run", "status", "message"], rows)
