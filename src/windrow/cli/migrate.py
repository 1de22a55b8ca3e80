"""`windrow migrate`: work that other queues hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from windrow.cli.lazy import Noun
from windrow.cli.output import (
    DatabaseOption,
    JsonOption,
    YesOption,
    print_json,
    print_preview,
    print_table,
    run,
)
from windrow.services.migration import migrating
from windrow.services.migration.reports import MigrationReport, Rollback, Verification
from windrow.settings import load_settings

app = Noun(help="Bring in work that other queues hold.", no_args_is_help=True)

UNREADABLE = 2


FromOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="PATH|URL",
        help="A SQLite file, a JSON export or postgresql://….",
    ),
]
VerifyOption = Annotated[
    bool, typer.Option("--verify", help="Compare: 0 all is here, 1 not, 2 it cannot be told.")
]
RollbackOption = Annotated[
    bool, typer.Option("--rollback", help="Remove the jobs that came and have not begun.")
]
DropOption = Annotated[
    bool, typer.Option("--drop", help="Drop the tables there, if --verify finds all of it here.")
]
DiscardOption = Annotated[
    bool,
    typer.Option("--discard-finished", help="With --drop: also drop what is done and not here."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Also what is done, where it is kept.")]


@app.callback()
def root() -> None:
    """Bring in work that other queues hold."""


@app.command()
def legacy(
    place: FromOption,
    yes: YesOption = False,
    verify: VerifyOption = False,
    rollback: RollbackOption = False,
    drop: DropOption = False,
    discard_finished: DiscardOption = False,
    with_finished: AllOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move the work of other tables here: ingestion_queue and its kin, unified_queue, crawl_jobs,
    processing_jobs, nuq, pgmq, an export of Archon.

    Without --yes it only says what would be done. May be repeated, and run twice at once. Exit
    code 1 when something did not come.
    """
    _move(
        place,
        _Steps(yes, verify, rollback, drop, with_finished, discard_finished),
        database,
        as_json,
    )


@dataclass(frozen=True, slots=True)
class _Steps:
    is_confirmed: bool
    is_verifying: bool
    is_rolling_back: bool
    is_dropping: bool
    with_finished: bool
    is_discarding: bool


def _move(place: str, steps: _Steps, database: str | None, as_json: bool) -> None:
    if sum((steps.is_verifying, steps.is_rolling_back, steps.is_dropping)) > 1:
        raise typer.BadParameter("choose one of --verify, --rollback and --drop")
    if steps.is_discarding and not steps.is_dropping:
        raise typer.BadParameter("--discard-finished goes with --drop")
    url = load_settings({"database_url": database}).database_url
    finished = steps.with_finished
    if steps.is_verifying or steps.is_dropping:
        found = run(_check(url, place, steps), failed=UNREADABLE)
        _show_verification(found, as_json, steps)
    elif steps.is_rolling_back and not steps.is_confirmed:
        count = run(migrating.count_imported(url, place))
        _show_rollback_preview(count, place, as_json)
    elif steps.is_rolling_back:
        _show_rollback(run(migrating.roll_back(url, place)), as_json)
    else:
        work = migrating.migrate(
            url, place, is_dry_run=not steps.is_confirmed, with_finished=finished
        )
        _show_report(run(work), as_json)


async def _check(url: str, place: str, steps: _Steps) -> Verification:
    finished = steps.with_finished
    if not (steps.is_dropping and steps.is_confirmed):
        return await migrating.verify(url, place, with_finished=finished)
    return await migrating.drop(
        url,
        place,
        with_finished=finished,
        is_discarding=steps.is_discarding,
    )


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
                    table.left.total(),
                    table.refused_count,
                )
                for name, table in sorted(report.tables.items())
            ],
        )
        for name, table in sorted(report.tables.items()):
            for reason, count in table.left.items():
                print(f"{name}: {count} not to come, {reason}")
            for key, reason in table.refused.items():
                print(f"{key}: {reason}")
        if any(table.spoilt for table in report.tables.values()):
            print("spoilt: failed jobs of the queue migrated; `windrow jobs list --queue migrated`")
        if report.unmarked is not None:
            print(f"the tables there are not marked as deprecated: {report.unmarked}")
        if report.is_dry_run:
            print("nothing was moved: add --yes")
        elif report.is_over:
            print("now: the same command with --verify")
    if not report.is_over:
        raise typer.Exit(1)


def _show_verification(found: Verification, as_json: bool, steps: _Steps) -> None:
    is_drop = steps.is_dropping and steps.is_confirmed
    if as_json:
        print_json({"is_good": found.is_good, **msgspec.to_builtins(found)})
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
        elif found.is_dropped:
            print("all of it is here; the tables are dropped")
        elif is_drop:
            print(f"nothing is dropped: {found.done.total()} rows are done there and did not come")
            print("migrate with --all to have them here, or --drop --discard-finished")
        elif steps.is_dropping:
            print("all of it is here, so the tables would be dropped: add --yes")
        else:
            print("all of it is here")
    if not found.is_good or (is_drop and not found.is_dropped):
        raise typer.Exit(1)


def _show_rollback_preview(count: int, place: str, as_json: bool) -> None:
    would = f"remove those of {count} jobs from {migrating.place_name(place)} that have not begun"
    print_preview(would, {"jobs": count}, as_json)


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
