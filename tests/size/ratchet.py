"""The ratchet: the largest value that each figure may have, in `ratchet.toml`.

A figure may fall, and then the ratchet is tightened. Raising one is an edit of that file by hand,
in the commit that needs it, with the reason behind the number.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).with_name("ratchet.toml")
_LINE = re.compile(r"^(?P<name>\w+) = (?P<figure>[\d_]+)(?P<reason>.*)$", re.MULTILINE)


def load() -> dict[str, int]:
    limits: dict[str, int] = tomllib.loads(FILE.read_text("utf-8"))
    return limits


def complaint(name: str, figure: int, limit: int | None) -> str | None:
    """Why a figure breaks the ratchet; None if it keeps to it."""
    if limit is None:
        return f"{name} has no line in {FILE.name}"
    if figure > limit:
        return (
            f"{name} is {figure}, above its ratchet of {limit}: make it smaller, or raise it in "
            f"tests/size/{FILE.name} with the reason; `make size ARGS='--list {name}'` shows it"
        )
    return None


def tighten(figures: Mapping[str, int], steps: Mapping[str, int]) -> None:
    FILE.write_text(tightened(FILE.read_text("utf-8"), figures, steps), "utf-8")


def tightened(text: str, figures: Mapping[str, int], steps: Mapping[str, int]) -> str:
    """The file with every number lowered to its figure, rounded up to a whole step. A reason that
    stands behind a number stays; a number is never raised."""

    def lower(line: re.Match[str]) -> str:
        name, limit = line["name"], int(line["figure"])
        if name in figures:
            limit = min(limit, rounded(figures[name], steps.get(name, 1)))
        return f"{name} = {limit}{line['reason']}"

    return _LINE.sub(lower, text)


def rounded(figure: int, step: int) -> int:
    return -(-figure // step) * step
