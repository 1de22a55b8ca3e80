"""`windrow bench`: how fast this database is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from windrow.cli.output import DatabaseOption, JsonOption, ask, print_json
from windrow.services.benchmark import measure_rates


def bench(
    jobs: Annotated[int, typer.Option(help="How many jobs to enqueue and run.")] = 10_000,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how many jobs a second this database does, with jobs that do nothing. They have a
    queue of their own and are deleted at the end."""
    measured = ask(measure_rates, database, jobs)
    if as_json:
        print_json(asdict(measured))
        return
    print(f"enqueued  {measured.enqueued:>9,.0f} jobs/s")
    print(f"run       {measured.run:>9,.0f} jobs/s")
