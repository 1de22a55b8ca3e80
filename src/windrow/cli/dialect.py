"""`windrow db dialect`: foreign schemas over the queue's tables."""

from __future__ import annotations

from typing import Annotated

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
from windrow.queue.dialects.loading import DialectInfo
from windrow.services.database import install_dialect, list_dialects, remove_dialect
from windrow.settings import load_settings

app = Noun(help="Let workers that speak another schema share the queue.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Such as processing_jobs.")]


@app.command()
def install(
    name: NameArgument, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Install a dialect, or bring it up to date. Safe to repeat."""
    is_new = run(install_dialect(_url(database), name))
    if as_json:
        print_json({"name": name, "is_new": is_new})
    else:
        print(f"installed {name}" if is_new else f"{name} is up to date")


@app.command()
def remove(
    name: NameArgument,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a dialect away. The jobs that came through it stay."""
    if not yes and name in _installed(database):
        print_preview(f"remove {name}", {"name": name, "was_there": True}, as_json)
        return
    was_there = run(remove_dialect(_url(database), name))
    if as_json:
        print_json({"is_done": was_there, "name": name, "was_there": was_there})
    else:
        print(f"removed {name}" if was_there else f"nothing to do: {name} is not installed")


@app.command("list")
def list_(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show the dialects there are, and which of them are installed."""
    found = run(list_dialects(_url(database)))
    if as_json:
        print_json(found)
    else:
        print_table(["name", "installed"], [[one.name, _state(one)] for one in found])


def _installed(database: str | None) -> set[str]:
    found = run(list_dialects(_url(database)))
    return {one.name for one in found if one.installed_at is not None}


def _state(dialect: DialectInfo) -> str:
    if dialect.installed_at is None:
        return "no"
    return "yes" if dialect.is_current else "yes, by another Windrow: install it again"


def _url(database: str | None) -> str:
    return load_settings({"database_url": database}).database_url
