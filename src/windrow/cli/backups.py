"""`windrow db backup` and `windrow db restore`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from windrow.cli.output import DatabaseOption, JsonOption, ask, print_json
from windrow.queue.sqlite.backups import Backup
from windrow.services.backups import back_up_database, restore_database


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; it must not be there.")],
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy an SQLite database to a file while it is in use. Postgres has pg_dump for that."""
    _print(ask(back_up_database, database, file), "backed up to", as_json)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `db backup` wrote.")],
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an SQLite database anew from a backup. Stop workers, and move the old file away first;
    the index is built again when they start."""
    _print(ask(restore_database, database, file), "restored to", as_json)


def _print(done: Backup, verb: str, as_json: bool) -> None:
    if as_json:
        print_json(asdict(done))
    else:
        print(f"{verb} {done.path}: {done.bytes:,} bytes, schema version {done.version}")
