"""Installing dialects: foreign schemas that SQLite's triggers keep in step with the jobs."""

from __future__ import annotations

import re
from typing import Final

from windrow.queue.dialects.loading import Dialect, DialectInfo, dialect_names, find_dialect
from windrow.queue.sqlite import schema
from windrow.queue.sqlite.rows import to_time
from windrow.queue.sqlite.work import Work

# SQLite itself knows no IF NOT EXISTS here.
_ADD_COLUMN: Final = re.compile(
    r"^ALTER TABLE (?P<table>\w+) ADD COLUMN IF NOT EXISTS (?P<column>\w+)", re.MULTILINE
)


def install_dialect(work: Work, name: str) -> bool:
    dialect = find_dialect(name, "sqlite")
    schema.check_schema(work)
    is_new = name not in _installed(work)
    _install(work, dialect)
    return is_new


def remove_dialect(work: Work, name: str) -> bool:
    dialect = find_dialect(name, "sqlite")
    schema.check_schema(work)
    if name not in _installed(work):
        return False
    _run_script(work, dialect.remove)
    work.run("remove_dialect", {"name": name})
    return True


def list_dialects(work: Work) -> list[DialectInfo]:
    schema.check_schema(work)
    installed = _installed(work)
    return [
        _described(name, installed.get(name))
        for name in sorted({*dialect_names("sqlite"), *installed})
    ]


def migrate(work: Work) -> list[str]:
    """Dialects that are installed are brought up to date with the tables."""
    applied = schema.migrate(work)
    for name, found in _installed(work).items():
        if name in dialect_names("sqlite") and not _described(name, found).is_current:
            _install(work, find_dialect(name, "sqlite"))
            applied.append(f"dialect {name}")
    return applied


def _described(name: str, found: tuple[str, int] | None) -> DialectInfo:
    if found is None:
        return DialectInfo(name, None, is_current=False)
    version, installed_at = found
    is_known = name in dialect_names("sqlite")
    is_current = is_known and find_dialect(name, "sqlite").version == version
    return DialectInfo(name, to_time(installed_at), is_current)


def _installed(work: Work) -> dict[str, tuple[str, int]]:
    return {
        name: (version, installed_at)
        for name, version, installed_at in work.rows("list_dialects", {})
    }


def _install(work: Work, dialect: Dialect) -> None:
    _run_script(work, dialect.install)
    work.run("record_dialect", {"name": dialect.name, "version": dialect.version, "now": work.now})


def _run_script(work: Work, script: str) -> None:
    for text in schema.split_script(script):
        if (adding := _ADD_COLUMN.search(text)) is None:
            work.run_given(text, ())
        elif not _has_column(work, adding["table"], adding["column"]):
            work.run_given(text.replace(" IF NOT EXISTS", ""), ())


def _has_column(work: Work, table: str, column: str) -> bool:
    found = work.named_rows("SELECT name FROM pragma_table_info(?)", (table,))
    return column in {row["name"] for row in found}
