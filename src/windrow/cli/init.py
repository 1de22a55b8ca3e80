"""`windrow init`: a file of settings to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windrow.cli.output import MISUSED, give_up
from windrow.settings import FILE, describe_settings


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write it.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace the one that is there.")] = False,
) -> None:
    """Write a windrow.toml in which every setting is explained, and commented out."""
    path = folder / FILE
    if not folder.is_dir():
        raise give_up(f"there is no folder {folder}", MISUSED)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(describe_settings())
    except FileExistsError as error:
        raise give_up(f"{path} is there already; --force replaces it", MISUSED) from error
    except OSError as error:
        raise give_up(f"{path} cannot be written: {error.strerror}") from error
    print(f"wrote {path}: take the # from what you want to change")
    print("then: windrow serve")
