"""Markdown for the pages of the reference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "docs" / "reference"


class Undocumented(Exception):
    """Something has no words that say what it is."""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([cell(one) for one in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|") or "–"


def prose(text: str) -> str:
    """Text of a docstring or a help text: angle brackets outside code are no tags."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(one if one.startswith("`") else one.replace("<", "&lt;") for one in parts)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def page(title: str, *parts: str) -> str:
    made = "Made from the code by `make docs`; what is to be changed is changed there."
    return "\n\n".join([f"# {title}", made, *(part.strip("\n") for part in parts if part)]) + "\n"


def needed(words: str | None, of: str) -> str:
    """What is said of something, which must be there."""
    if not (words or "").strip():
        raise Undocumented(f"{of} says nowhere what it is")
    return prose((words or "").strip())
