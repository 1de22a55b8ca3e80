"""Numbered, up-only migrations: `migrations/0001_initial.sql`, one number meaning the same thing in
every store. `schema.sql` beside them is what they add up to; a test proves it."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from windrow.db.statements import folder_of
from windrow.errors import SchemaOutdated, SchemaTooNew, SchemaTooOld

_FILE = re.compile(r"(\d{4})_\w+\.sql")


class Migration(msgspec.Struct, frozen=True):
    version: int
    name: str
    sql: str


class History(msgspec.Struct, frozen=True):
    """The migrations applied to a database: the last number, and the name of the first one."""

    version: int = 0
    first: str | None = None


@cache
def load_migrations(package: str) -> tuple[Migration, ...]:
    """The migrations of a store, in order."""
    found = []
    for file in (folder_of(package) / "migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            name = file.name.removesuffix(".sql")
            found.append(Migration(int(match[1]), name, file.read_text("utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.version))


def latest_version(package: str) -> int:
    return load_migrations(package)[-1].version


def check_history(found: History, package: str) -> None:
    """Raise unless the tables are exactly those this code was written for."""
    check_upgradable(found, package)
    wanted = latest_version(package)
    if found.version < wanted:
        raise SchemaOutdated(found.version, wanted)


def check_upgradable(found: History, package: str) -> None:
    """Raise unless the migrations of this code lead from these tables to its own. Numbers do not
    tell: development versions counted theirs from 0001 as well."""
    known = load_migrations(package)
    if found.first not in (None, known[0].name):
        raise SchemaTooOld(found.version, found.first)
    if found.version > known[-1].version:
        raise SchemaTooNew(found.version, known[-1].version)
