"""`windrow doctor`: what is wrong, why, and what helps."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from windrow.cli.output import (
    FAILED,
    DatabaseOption,
    JsonOption,
    ask,
    make_console,
    parse_duration,
    plain,
    print_json,
)
from windrow.extras import find_missing, list_extras
from windrow.services.examination import PATIENCE_SECONDS
from windrow.services.explaining import explain_job
from windrow.services.health import Finding, diagnose

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def doctor(
    job: Annotated[
        str | None, typer.Option(help="Say why this job is not running; an id or its beginning.")
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(
            parser=parse_duration,
            metavar="TIME",
            help="How long a transaction may be open before it is worth a word. Default: 60s.",
        ),
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for what keeps jobs from running, and say what helps. Exit code 1 if anything does."""
    if job is not None:
        _, found = ask(explain_job, database, job)
    else:
        found = ask(diagnose, database, patience=PATIENCE_SECONDS if patience is None else patience)
    if as_json:
        print_json(found)
    else:
        print_findings(found)
        if job is None:
            print_extras()
    if any(finding.level != "note" for finding in found):
        raise typer.Exit(FAILED)


def print_findings(found: Sequence[Finding]) -> None:
    """Each with its cause and what helps, wrapped to the terminal."""
    console = make_console()
    if not found:
        console.print(Text("all is well", "green"))
    for finding in found:
        level = Text(finding.level, STYLES[finding.level])
        console.print(level + Text(f": {plain(finding.what)}"))
        for name, text in (("why", finding.cause), ("fix", finding.fix)):
            if not text:
                continue
            print(textwrap.fill(plain(text), console.width, **_indents(f"  {name}: ")))


def print_extras() -> None:
    """Which extras are installed, and which are not."""
    by_state: dict[bool, list[str]] = {True: [], False: []}
    for name in list_extras():
        by_state[not find_missing(name)].append(name)
    for label, names in (("extras", by_state[True]), ("not installed", by_state[False])):
        text = ", ".join(names) or "none"
        print(textwrap.fill(text, make_console().width, **_indents(f"{label}: ")))


def _indents(first: str) -> dict[str, Any]:
    """Of a paragraph with a word before it."""
    return {"initial_indent": first, "subsequent_indent": " " * len(first)}
