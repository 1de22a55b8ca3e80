"""Statements with typed parameters and columns, written once for SQLite and Postgres.

A statement is one file in a package's `sql/` folder. Its header gives the types, and words in
braces stand for what the two dialects write differently:

    -- The documents of a source at these addresses, of all branches.
    -- takes tenant tenant, source text, uris text[]
    -- gives document
    SELECT {columns document} FROM windrow.document AS document WHERE uri {in uris} …

`takes` names the parameters. One of them may be rows: `takes given (id uuid, size int)`, read by
`{rows given}`. `each (tenant tenant, id text)` runs the statement once for each tuple. `gives`
names the columns, or a file `<name>.columns` that lists them. `only postgres` makes the statement a
no-op on SQLite, `short` lets an event loop wait for it there. Lines that begin with `--  ` continue
the header line before.

Types: text, tenant ('' in the database, None outside), uuid, int, real, bool, time, json, bytes,
and arrays of these, written `text[]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from windrow.db.codec import encode
from windrow.db.statements import Statement, folder_of, load_sources, parse_statement
from windrow.ids import are_plain_ids, is_id, plain_id

Dialect = Literal["sqlite", "postgres"]
Row = Mapping[str, Any]
Types = Mapping[str, str]

# Packages whose `sql/` folder holds typed statements. A name is used in only one of them.
PACKAGES: Final = ("windrow.catalog", "windrow.accounts")

_HEADER: Final = re.compile(
    r"^-- (takes|each|gives|only|short)\b ?([^\n]*(?:\n--  [^\n]*)*)", re.MULTILINE
)
_FIELD: Final = re.compile(r"(\w+) (\([^)]*\)|\w+(?:\[\])?)")
_WORD: Final = re.compile(r"\{(\w+)(?: ([^}]*))?\}")
_PARAMETER: Final = re.compile(r"(?<![:\w]):([a-z_]+)\b")
_TABLE: Final = re.compile(r"\bwindrow\.(?=[a-z])")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_POSTGRES_TYPES: Final = {
    "text": "text",
    "tenant": "text",
    "uuid": "uuid",
    "int": "bigint",
    "real": "double precision",
    "bool": "boolean",
    "time": "timestamptz",
    "json": "json",
    "bytes": "bytea",
}
_WORDS: Final[dict[Dialect, dict[str, str]]] = {
    "postgres": {
        "now": "coalesce(:now, statement_timestamp())",
        "in": "= ANY (:{})",
        "is": "IS NOT DISTINCT FROM",
        "is_not": "IS DISTINCT FROM",
        "greatest": "greatest",
        "binary": 'COLLATE "C"',
        "lock": "ORDER BY {} FOR UPDATE",
        "share": "FOR KEY SHARE OF {}",
        "skip_locked": "FOR UPDATE OF {} SKIP LOCKED",
        "inner_join": "JOIN",
        "limit": ":{}",
        "by": "",
    },
    "sqlite": {
        "now": ":now",
        "in": "IN (SELECT value FROM json_each(:{}))",
        "is": "IS",
        "is_not": "IS NOT",
        "greatest": "max",
        "binary": "",
        "lock": "ORDER BY {}",
        "share": "",
        "skip_locked": "",
        "inner_join": "CROSS JOIN",  # SQLite's planner keeps the order of a CROSS JOIN
        "limit": "coalesce(:{}, -1)",
        "by": "INDEXED BY windrow_{}",
    },
}
# For Postgres: a statement that is run for each of many tuples, in their order.
_FOR_EACH: Final = """SELECT found.*
  FROM unnest({arrays}) WITH ORDINALITY AS item ({names}, place)
 CROSS JOIN LATERAL (
{text}
) AS found
 ORDER BY item.place"""


@dataclass(frozen=True, slots=True)
class TypedStatement:
    """A statement in one dialect, with the conversions of its values and columns."""

    statement: Statement
    takes: Types
    each: Types
    gives: Types
    dialect: Dialect
    is_skipped: bool  # it is for the other dialect
    is_short: bool
    reads: bool
    _readers: tuple[tuple[str, Callable[[Any], Any]], ...]
    _writers: tuple[tuple[str, Callable[[Any], Any]], ...]

    def encode(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the parameters as the driver takes them."""
        return {name: write(values[name]) for name, write in self._writers}

    def encode_each(self, tuples: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
        """The values of every run: on Postgres of a single one, as arrays."""
        writers = [_writer(type, self.dialect) for type in self.each.values()]
        written = [[write(v) for write, v in zip(writers, one, strict=True)] for one in tuples]
        if self.dialect == "sqlite":
            return [dict(zip(self.each, one, strict=True)) for one in written]
        return [{name: [one[i] for one in written] for i, name in enumerate(self.each)}]

    def decode(self, found: Iterable[Any]) -> list[dict[str, Any]]:
        """Rows as records have them. Columns come in the order of the header; a statement that
        gives none has no rows."""
        names, readers = tuple(self.gives), self._readers
        if not names:
            return []
        rows = []
        for values in found:
            row = dict(zip(names, values, strict=True))
            for name, read in readers:
                if (value := row[name]) is not None:
                    row[name] = read(value)
            rows.append(row)
        return rows


@cache
def typed(name: str, dialect: Dialect) -> TypedStatement:
    """The statement of this name; a KeyError if no package has one."""
    for package in PACKAGES:
        if (source := load_sources(package).get(name)) is not None:
            return _build(name, source, folder_of(package) / "sql", dialect)
    raise KeyError(f"no package has a statement {name}")


def find_statements() -> dict[str, str]:
    """All typed statements by name, with the package that has them."""
    return {name: package for package in PACKAGES for name in load_sources(package)}


def _build(name: str, source: str, folder: Path, dialect: Dialect) -> TypedStatement:
    header = dict(_HEADER.findall(source))
    takes, each = _fields(header.get("takes", "")), _fields(header.get("each", ""))
    gives = _columns(header.get("gives", ""), folder)
    text = parse_statement(name, source).text
    reads = text.lstrip().upper().startswith("SELECT")
    text = _render(text, dialect, takes, folder)
    if dialect == "postgres":
        text = _cast(_for_each(text, each), takes, each)
        statement = parse_statement(name, text)
    else:
        statement = _by_position(name, _TABLE.sub("windrow_", text))
    readers = [(column, _reader(type, dialect)) for column, type in gives.items()]
    return TypedStatement(
        statement=statement,
        takes=takes,
        each=each,
        gives=gives,
        dialect=dialect,
        is_skipped=header.get("only", dialect) != dialect,
        is_short="short" in header,
        reads=reads,
        _readers=tuple((column, read) for column, read in readers if read is not None),
        _writers=tuple((param, _writer(type, dialect, param)) for param, type in takes.items()),
    )


def _fields(text: str) -> dict[str, str]:
    return dict(_FIELD.findall(text.replace("\n--", " ")))


def _columns(text: str, folder: Path) -> dict[str, str]:
    """The columns that `gives` names: listed there, or in a file."""
    if text and " " not in text:
        text = (folder / f"{text}.columns").read_text("utf-8").replace("\n", " ")
    return _fields(text)


def _render(text: str, dialect: Dialect, takes: Types, folder: Path) -> str:
    words = _WORDS[dialect]

    def word(match: re.Match[str]) -> str:
        name, argument = match[1], match[2]
        if name == "rows":
            return _rows(argument, takes[argument], dialect)
        if name == "columns":
            return ", ".join(f"{argument}.{column}" for column in _columns(argument, folder))
        return words[name].format(argument)

    return _WORD.sub(word, text)


def _rows(name: str, type: str, dialect: Dialect) -> str:
    """Rows that are handed in as one JSON array, as a table."""
    fields = _fields(type)
    if dialect == "postgres":
        columns = ", ".join(f"{one} {_POSTGRES_TYPES[type]}" for one, type in fields.items())
        return f"json_to_recordset(:{name}::text::json) AS {name} ({columns})"
    columns = ", ".join(
        f"value {'->' if type == 'json' else '->>'} '{one}' AS {one}"
        for one, type in fields.items()
    )
    return f"(SELECT {columns} FROM json_each(:{name})) AS {name}"  # noqa: S608 - our own headers


def _for_each(text: str, each: Types) -> str:
    if not each:
        return text
    text = _PARAMETER.sub(lambda m: f'item."{m[1]}"' if m[1] in each else m[0], text)
    return _FOR_EACH.format(
        arrays=", ".join(f":{name}" for name in each),
        names=", ".join(f'"{name}"' for name in each),
        text=text,
    )


def _cast(text: str, takes: Types, each: Types) -> str:
    casts = {"now": "timestamptz"} | {name: f"{_POSTGRES_TYPES[t]}[]" for name, t in each.items()}
    for name, type in takes.items():
        if type == "json":
            casts[name] = "text::json"
        elif not type.startswith("("):  # what reads rows has casts already
            plain = type.removesuffix("[]")
            casts[name] = _POSTGRES_TYPES[plain] + type[len(plain) :]
    return _PARAMETER.sub(lambda m: f"{m[0]}::{casts[m[1]]}" if m[1] in casts else m[0], text)


def _by_position(name: str, text: str) -> Statement:
    """The text with `?1` in place of names: SQLite binds by position in less time."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    numbers = {found: f"?{place}" for place, found in enumerate(names, 1)}
    numbered = _PARAMETER.sub(lambda match: numbers[match[1]], text)
    return Statement(name, text, numbered, names)


def _reader(type: str, dialect: Dialect) -> Callable[[Any], Any] | None:
    """What makes a value of the driver one of ours; None: it is one."""
    if type.endswith("[]"):
        return tuple if dialect == "postgres" else _to_tuple
    readers: dict[str, Callable[[Any], Any]] = {"json": msgspec.json.decode, "tenant": _to_tenant}
    if dialect == "postgres":
        readers |= {"uuid": str, "time": _to_utc, "int": int}
    else:
        readers |= {"time": _to_time, "bool": bool}
    return readers.get(type)


def _writer(type: str, dialect: Dialect, name: str = "") -> Callable[[Any], Any]:
    """What makes a value of ours one that the driver takes."""
    if type.startswith("("):
        return _rows_writer(_fields(type), dialect, name)
    if type.endswith("[]"):
        each = _plain_ids if type == "uuid[]" else list
        if dialect == "postgres":
            return lambda values: None if values is None else each(values)
        return lambda values: None if values is None else _to_json(each(values))
    writers: dict[str, Callable[[Any], Any]] = {
        "tenant": lambda tenant: tenant or "",
        "uuid": lambda id: None if id is None or not is_id(id) else plain_id(id),
        "json": lambda value: encode(value, name).json.decode(),
    }
    if dialect == "sqlite":
        writers["time"] = _to_micros
        writers["bool"] = lambda flag: None if flag is None else int(flag)
    return writers.get(type, _same)


def _rows_writer(fields: Types, dialect: Dialect, what: str) -> Callable[[Any], str]:
    """What writes rows, mappings or structs, as a JSON array. A field that is None is left out."""
    writers = []
    for name, type in fields.items():
        write: Callable[[Any], Any] = _same
        if type == "tenant":
            write = _to_text
        elif type == "time" and dialect == "sqlite":
            write = _to_micros
        writers.append((name, write))

    def write_rows(rows: Iterable[Any]) -> str:
        written = []
        for row in rows:
            get = row.get if isinstance(row, Mapping) else _getter(row)
            one = {name: write(get(name)) for name, write in writers}
            written.append({name: value for name, value in one.items() if value is not None})
        return encode(written, what).json.decode()

    return write_rows


def _getter(row: Any) -> Callable[[str], Any]:
    return lambda name: getattr(row, name)


def _same(value: Any) -> Any:
    return value


def _to_text(tenant: str | None) -> str:
    return tenant or ""


def _to_tenant(text: str) -> str | None:
    return text or None


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _to_tuple(text: str) -> tuple[Any, ...]:
    return tuple(msgspec.json.decode(text))


def _to_micros(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def _to_time(micros: int) -> datetime:
    return _EPOCH + timedelta(0, 0, micros)


def _to_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def _plain_ids(ids: Iterable[str]) -> list[str]:
    """Those that are ids, as the database writes them: anything else is not there."""
    given = list(ids)
    if are_plain_ids(given):
        return given
    return [plain_id(one) for one in given if is_id(one)]


@cache
def in_order(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """What puts values in the order of a statement's parameters."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[one] for one in names)
