"""SQL as data: one statement per file, parameters written `:name` in both dialects.

SQLite takes `:name` as it is. Postgres drivers want `$1`, so `Statement.numbered` is the same text
with numbers in order of first use, and `Statement.bind` puts the values in that order.

What several statements have in common is a file in `sql/parts/`, and `{its_name}` stands for its
text in each of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

# A name after one colon: not `::type`, not the inside of `12:30`.
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")
_COMMENT = re.compile(r"--[^\n]*")
_GATE = re.compile(r"^-- gate (enqueue|tenant)$", re.MULTILINE)

# Who may run a statement through a function where row-level security is on.
Gate = Literal["enqueue", "tenant"]
_PART = re.compile(r"\{([a-z_]+)\}")


class Statement(msgspec.Struct, frozen=True):
    name: str
    text: str
    numbered: str
    parameters: tuple[str, ...]

    def bind(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the numbers; a missing one is an error."""
        return [values[name] for name in self.parameters]

    def written(self, **values: str) -> str:
        """The text with SQL in the places of the parameters, for somebody who takes no values."""
        return _PARAMETER.sub(lambda match: values[match[1]], self.text)


def parse_statement(name: str, source: str) -> Statement:
    """A statement from a file's text; comments are for readers and are not sent."""
    text = "\n".join(
        line.rstrip() for line in _COMMENT.sub("", source).splitlines() if line.strip()
    )
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    numbers = {found: f"${i}" for i, found in enumerate(names, 1)}
    return Statement(name, text, _PARAMETER.sub(lambda m: numbers[m[1]], text), names)


@cache
def load_statement(package: str, name: str) -> Statement:
    """A statement of a package, by the name of its file in `sql/`, with its parts in their places;
    other names in braces are filled in by who runs the statement."""
    parts = load_sources(package, "sql/parts")
    source = load_sources(package)[name]
    return parse_statement(name, _PART.sub(lambda match: parts.get(match[1], match[0]), source))


@cache
def load_sources(package: str, folder: str = "sql") -> Mapping[str, str]:
    """The text of each SQL file in a folder of a package, by its name; of a folder that is not
    there, none. All are read together, so that a process keeps those it began with while another
    version is installed."""
    path = folder_of(package) / folder
    if not path.is_dir():
        return {}
    return {
        file.name.removesuffix(".sql"): Path(file).read_text("utf-8").rstrip()
        for file in os.scandir(path)
        if file.name.endswith(".sql")
    }


@cache
def load_gates(package: str) -> Mapping[str, Gate]:
    """The statements of a package's `sql/` folder whose header names a gate, by name."""
    found = {name: _GATE.search(source) for name, source in load_sources(package).items()}
    return {name: cast(Gate, gate[1]) for name, gate in found.items() if gate is not None}


def folder_of(package: str) -> Path:
    """Where a package of Windrow is, found without importing it."""
    return Path(__file__).parents[1].joinpath(*package.split(".")[1:])
