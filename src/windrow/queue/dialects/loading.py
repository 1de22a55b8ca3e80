"""Dialects as data: the views, functions and triggers of a foreign schema over the one queue.

Files beside this module, for a dialect `nuq`:

- `nuq.sql`, or `nuq/01_types.sql`, `nuq/02_….sql` in this order: makes it on Postgres, and brings
  one that is there up to date, so it can be run any number of times
- `nuq.remove.sql`: undoes it
- `nuq.sqlite.sql`, `nuq.sqlite.remove.sql`: the same on SQLite

`common.sql` is what the dialects of Postgres share; it is run before each of them.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import cache
from typing import Final, Literal

import msgspec

from windrow.db.statements import folder_of
from windrow.errors import ConfigError

COMMON: Final = "common"
_PACKAGE: Final = "windrow.queue.dialects"

Database = Literal["postgres", "sqlite"]


class Dialect(msgspec.Struct, frozen=True):
    name: str
    version: str  # changes whenever the SQL does
    install: str
    remove: str


class DialectInfo(msgspec.Struct, frozen=True):
    """A dialect that can be installed, or is."""

    name: str
    installed_at: datetime | None
    is_current: bool  # what is installed is what this Windrow would install


def find_dialect(name: str, database: Database, *, shared: str = "") -> Dialect:
    """A dialect by its name. `shared` is the SQL that it is built on, as far as it is generated."""
    names = dialect_names(database)
    if name not in names:
        known = ", ".join(names) or "none"
        raise ConfigError(f"there is no dialect {name!r} for this database; there are: {known}")
    files = _files(database)
    install = "\n".join([shared, files.get(COMMON, ""), files[name]])
    version = hashlib.sha256(install.encode()).hexdigest()[:12]
    return Dialect(name, version, install, files[f"{name}.remove"])


def dialect_names(database: Database) -> tuple[str, ...]:
    return tuple(
        sorted(name for name in _files(database) if name != COMMON and not name.endswith(".remove"))
    )


@cache
def _files(database: Database) -> dict[str, str]:
    """The scripts for a database, by the name of the dialect and what they are for."""
    found: dict[str, str] = {}
    for file in sorted(folder_of(_PACKAGE).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            name = file.name.removesuffix(".sql")
            is_sqlite = ".sqlite" in name
            if is_sqlite == (database == "sqlite"):
                found[name.replace(".sqlite", "")] = file.read_text("utf-8")
        elif file.is_dir() and database == "postgres":
            parts = sorted(
                (part for part in file.iterdir() if part.name.endswith(".sql")),
                key=lambda part: part.name,
            )
            if parts:
                found[file.name] = "\n".join(part.read_text("utf-8") for part in parts)
    return found
