"""SQL as data: one statement per file, parameters written `:name` in both dialects.

SQLite takes `:name` as it is. Postgres drivers want `$1`, so `Statement.numbered` is the same text
with numbers in order of first use, and `Statement.bind` puts the values in that order.

What several statements have in common is a file in `sql/parts/`, and `{its_name}` stands for its
text in each of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
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
def load_statements(package: str) -> Mapping[str, Statement]:
    """Every statement of a store's `sql/` folder by its file's name, with its parts in their
    places; other names in braces are filled in by who runs the statement."""
    folder = resources.files(package) / "sql"
    parts = read_files(folder / "parts")
    return {
        name: parse_statement(name, _PART.sub(lambda match: parts.get(match[1], match[0]), source))
        for name, source in read_files(folder).items()
    }


def read_files(folder: Traversable) -> dict[str, str]:
    """The text of each SQL file in a folder, by its name; of a folder that is not there, none."""
    if not folder.is_dir():
        return {}
    return {
        file.name.removesuffix(".sql"): file.read_text("utf-8").rstrip()
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }


@cache
def load_gates(package: str) -> Mapping[str, Gate]:
    """The statements of a package's `sql/` folder whose header names a gate, by name."""
    gates: dict[str, Gate] = {}
    for file in resources.files("windrow").joinpath(*package.split(".")[1:], "sql").iterdir():
        if file.name.endswith(".sql") and (found := _GATE.search(file.read_text("utf-8"))):
            gates[file.name.removesuffix(".sql")] = cast(Gate, found[1])
    return gates
