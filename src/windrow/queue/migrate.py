"""Numbered, up-only migrations: `migrations/0001_queue.sql`, one number meaning the same thing in
every store. `schema.sql` beside them is what they add up to; a test proves it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from windrow.errors import SchemaOutdated, SchemaTooNew

_FILE = re.compile(r"(\d{4})_\w+\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str


@cache
def load_migrations(package: str) -> tuple[Migration, ...]:
    """The migrations of a store, in order."""
    found = []
    for file in (resources.files(package) / "migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            name = file.name.removesuffix(".sql")
            found.append(Migration(int(match[1]), name, file.read_text("utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.version))


def latest_version(package: str) -> int:
    return load_migrations(package)[-1].version


def check_version(found: int, package: str) -> None:
    """Raise unless the tables are exactly those this code was written for."""
    wanted = latest_version(package)
    if found > wanted:
        raise SchemaTooNew(found, wanted)
    if found < wanted:
        raise SchemaOutdated(found, wanted)
