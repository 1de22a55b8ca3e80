"""`windrow bench`: the benchmarks of a source checkout, which are not part of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import typer

from windrow.cli.output import give_up

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def bench(context: typer.Context) -> None:
    """Measure Windrow beside its floor and its peers. Takes what `python -m bench` takes."""
    if not Path("bench/__main__.py").is_file():
        raise give_up("run this in a checkout of Windrow's source: the benchmarks are there")
    command = [sys.executable, "-m", "bench", *context.args]
    raise typer.Exit(subprocess.call(command))  # noqa: S603 - what the person at the keyboard typed
