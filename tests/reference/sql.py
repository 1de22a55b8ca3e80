"""docs/reference/sql.md: tables, views and functions on Postgres, those of the dialects too, with
the comments that stand above them in the SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.reference.markdown import code, needed, page, table
from windrow.queue import dialects, postgres

POSTGRES = Path(postgres.__file__).parent
DIALECTS = Path(dialects.__file__).parent
HEAD = """\
What a Windrow database on Postgres has, for those who look into it with `psql` or give roles their
rights. **Look, and write through the queue or a dialect**: the columns may change with a migration.
`windrow db migrate` makes the schema `windrow`; `windrow db dialect install NAME` a dialect;
`windrow db rls enable` the policies of [Tenants](../guides/tenants.md). On SQLite the tables have
the same names with `windrow_` before them. [Dialects](../dialects.md) says what runs on which."""
MADE = re.compile(
    r"^ *CREATE (?:OR REPLACE )?(?:UNLOGGED )?(?P<what>TABLE|VIEW|FUNCTION) (?:IF NOT EXISTS )?"
    r"(?P<name>[a-z_.\"]+)(?P<rest>[^\n]*)"
)
COLUMN = re.compile(r"^    ([a-z_]+) [a-z]")
TRIGGER = re.compile(r"RETURNS trigger")
# Beneath what clients use: the functions of the gate, of a dialect's own, and what has no name yet.
OWN = re.compile(r"^(windrow_dialect\..*|pgmq\._.*|nuq\.[a-z_]+\(.*|[a-z_]+\.)$")


class Made(NamedTuple):
    """Something that a file of SQL makes."""

    what: str
    name: str
    columns: str
    words: str


def render() -> str:
    parts = ["## The schema windrow", "### Tables", tables(), "### Functions", functions()]
    for name, files in dialect_files():
        made = [one for file in files for one in read(file)]
        parts += [f"## The dialect {name}", introduction(files[0]), *listed(made)]
    return page("SQL", HEAD, *parts)


def tables() -> str:
    made = [one for one in read(POSTGRES / "schema.sql") if one.what == "TABLE"]
    rows = [[code(one.name), needed(one.words, one.name), one.columns] for one in made]
    return table(["table", "what it is", "columns"], rows)


def functions() -> str:
    made = [one for one in read(POSTGRES / "schema.sql") if one.what == "FUNCTION"]
    rows = [[code(one.name), needed(one.words, one.name)] for one in made]
    return table(["function", "what it does"], rows)


def dialect_files() -> Iterator[tuple[str, list[Path]]]:
    for path in sorted(DIALECTS.iterdir()):
        if path.is_dir() and list(path.glob("*.sql")):
            yield path.name, sorted(path.glob("*.sql"))
        elif path.suffix == ".sql" and path.stem.count(".") == 0 and path.stem != "common":
            yield path.stem, [path]


def introduction(path: Path) -> str:
    """What the file says of itself, as it is written: it has the mapping of columns."""
    said = []
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith("--"):
            break
        said.append(line.removeprefix("--").removeprefix(" "))
    needed("\n".join(said), path.name)
    return "\n".join(f"    {line}".rstrip() for line in said)


def listed(made: list[Made]) -> Iterator[str]:
    """What clients use."""
    for what, title in (("TABLE", "tables"), ("VIEW", "views"), ("FUNCTION", "functions")):
        ours = [one for one in made if one.what == what and not OWN.search(one.name)]
        if ours:
            names = dict.fromkeys(code(one.name) for one in ours)
            yield f"Its {title}: {', '.join(names)}."


def read(path: Path) -> list[Made]:
    """The tables, views and functions that a file makes, each with the comment above it."""
    found: list[Made] = []
    comment: list[str] = []
    lines = path.read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        if line.startswith("--"):
            comment.append(line.removeprefix("--").strip())
        elif made := MADE.match(line):
            shown = made["name"].replace('"', "")
            columns = ", ".join(code(one) for one in columns_below(lines[number + 1 :]))
            about = made["rest"] if made["what"] == "FUNCTION" else ""
            if not TRIGGER.search(about):
                name = shown + signature(about)
                found.append(Made(made["what"], name, columns, " ".join(comment)))
            comment = []
        elif not line.strip():
            comment = []
    return found


def signature(rest: str) -> str:
    return f"{rest[: rest.index(')') + 1]}" if ")" in rest else ("(…)" if rest else "")


def columns_below(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith((")", "--")) or not line.startswith("    "):
            return
        column = COLUMN.match(line)
        if column and column[1] not in ("primary", "check", "constraint"):
            yield column[1]
