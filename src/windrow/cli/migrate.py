"""`windrow migrate`: work that other queues hold."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from windrow.cli.output import DatabaseOption, JsonOption, print_json, print_table, run
from windrow.services.migration.migrating import (
    MigrationReport,
    Rollback,
    Verification,
    drop_legacy,
    migrate_legacy,
    roll_back_legacy,
    verify_legacy,
)
from windrow.settings import load_settings

app = typer.Typer(help="Bring in work that other queues hold.", no_args_is_help=True)

UNREADABLE = 2


@app.callback()
def root() -> None:
    """Bring in work that other queues hold."""


@app.command()
def legacy(
    place: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PATH|URL",
            help="A SQLite file, a Postgres database, or a JSON export.",
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would come.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare: 0 all is here, 1 not, 2 it cannot be told.")
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Remove what came and has not begun.")
    ] = False,
    drop: Annotated[
        bool, typer.Option("--drop", help="Drop the tables there, if --verify finds all here.")
    ] = False,
    with_finished: Annotated[
        bool, typer.Option("--all", help="Also what is done there: archives, finished crawls.")
    ] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move the work of other tables here: ingestion_queue and its kin, unified_queue, crawl_jobs,
    processing_jobs, nuq, pgmq, an export of Archon. May be repeated, and run twice at once.

    Exit code 1 when something did not come."""
    if sum([dry_run, verify, rollback, drop]) > 1:
        raise typer.BadParameter("choose one of --dry-run, --verify, --rollback and --drop")
    url = load_settings({"database_url": database}).database_url
    if verify or drop:
        check = drop_legacy if drop else verify_legacy
        found = run(check(url, place, with_finished=with_finished), failed=UNREADABLE)
        _show_verification(found, as_json, is_drop=drop)
    elif rollback:
        _show_rollback(run(roll_back_legacy(url, place)), as_json)
    else:
        report = run(migrate_legacy(url, place, is_dry_run=dry_run, with_finished=with_finished))
        _show_report(report, as_json)


def _show_report(report: MigrationReport, as_json: bool) -> None:
    if as_json:
        print_json({"is_over": report.is_over, **msgspec.to_builtins(report)})
    else:
        verb = "would come" if report.is_dry_run else "came"
        print(f"from {report.origin}\nto   {report.target}")
        print_table(
            ["table", "rows", verb, "here already", "spoilt", "not to come", "refused"],
            [
                (
                    name,
                    table.rows,
                    table.imported,
                    table.known,
                    table.spoilt,
                    ", ".join(f"{count} {reason}" for reason, count in table.left.items()) or 0,
                    table.refused_count,
                )
                for name, table in sorted(report.tables.items())
            ],
        )
        for table in report.tables.values():
            for key, reason in table.refused.items():
                print(f"{key}: {reason}")
        if any(table.spoilt for table in report.tables.values()):
            print("spoilt: failed jobs of the queue migrated; `windrow jobs list --queue migrated`")
        if not report.is_dry_run and report.is_over:
            print(f"now: windrow migrate legacy --from {report.origin} --verify")
    if not report.is_over:
        raise typer.Exit(1)


def _show_verification(found: Verification, as_json: bool, *, is_drop: bool) -> None:
    if as_json:
        said = {"is_good": found.is_good, "is_dropped": is_drop and found.is_good}
        print_json(said | msgspec.to_builtins(found))
    else:
        print_table(
            ["table", "rows", "here", "of these ended and pruned", "not to come"],
            [
                (name, rows, found.matched[name], found.gone[name], found.left[name])
                for name, rows in sorted(found.rows.items())
            ],
        )
        for key, problem in found.problems.items():
            print(f"{key}: {problem}")
        if not found.is_good:
            print(f"{found.problem_count} rows are not here as they are there")
        elif is_drop:
            print("all of it is here; the tables are dropped")
        else:
            print("all of it is here")
    if not found.is_good:
        raise typer.Exit(1)


def _show_rollback(report: Rollback, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        print(f"{report.removed} jobs from {report.origin} are removed")
        if report.kept:
            print(f"{report.kept_count} stay:")
            print_table(["id", "why"], list(report.kept.items()))
    if report.kept_count:
        raise typer.Exit(1)
