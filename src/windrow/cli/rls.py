"""`windrow db rls`: row-level security, which keeps tenants apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from windrow.services.postgres import disable_tenancy, enable_tenancy, tenancy_status
from windrow.settings import load_settings

if TYPE_CHECKING:
    from windrow.queue.postgres.securing import RlsStatus

app = Noun(help="Keep tenants apart by row-level security.", no_args_is_help=True)


@app.command()
def enable(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Let roles see only what is theirs from now on. As the owner of the tables; safe to repeat."""
    _show(run(enable_tenancy(_url(database))), as_json)


@app.command()
def disable(
    yes: YesOption = False, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Switch row-level security off. The roles of tenants lose all their rights."""
    if not yes:
        found = run(tenancy_status(_url(database)))
        would = f"switch off row-level security on {found.tables} tables"
        print_preview(would, {"tables": found.tables}, as_json)
        return
    _show(run(disable_tenancy(_url(database))), as_json)


@app.command()
def status(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show whether it is on, and for whom. Exit code 1 when something is left open."""
    found = run(tenancy_status(_url(database)))
    _show(found, as_json)
    if found.problems:
        raise typer.Exit(1)


def _url(database: str | None) -> str:
    return load_settings({"database_url": database}).database_url


def _show(found: RlsStatus, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    if not found.is_on:
        print("row-level security is off: whoever may read the tables sees all tenants")
    else:
        print(f"row-level security is on for {found.tables} tables")
    if found.roles:
        print_table(["role", "tenant"], [[one.role, one.tenant] for one in found.roles])
    for problem in found.problems:
        print(f"open: {problem}")
    if found.problems:
        print("`windrow db rls enable` closes what belongs to Windrow; the rest is yours to change")
