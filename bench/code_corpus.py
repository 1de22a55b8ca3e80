"""Real code and real questions: the standard library, and what its functions say of themselves.

The first paragraph of a function's docstring is a question in words, the file it stands in is the
answer. All docstrings of functions are taken out of what is searched, or each would find itself.
"""

from __future__ import annotations

import ast
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.corpus import Page, Question

# Tests repeat what they test; the others are other people's, or tables.
NOT_READ: Final = (
    "site-packages",
    "test",
    "idlelib",
    "lib2to3",
    "encodings",
    "ensurepip",
    "turtle",
)
SHORTEST, LONGEST = 5, 30  # words of a question

Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_code(count: int) -> tuple[list[Page], list[Question]]:
    """The files, and so many questions: the same ones in every run with one version of Python."""
    folder = Path(sysconfig.get_path("stdlib"))
    pages: list[Page] = []
    asked: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if any(part in name for part in NOT_READ):
            continue
        source = path.read_text("utf-8")
        described = list(_described(ast.parse(source)))
        pages.append(Page(name, path.name, _without(source, described), "python"))
        for one in described:
            asked.setdefault(_question(one), set()).add(name)
    fitting = sorted(text for text in asked if SHORTEST <= len(text.split()) <= LONGEST)
    chosen = random.Random("code").sample(fitting, min(count, len(fitting)))
    return pages, [Question(text, frozenset(asked[text])) for text in chosen]


def _described(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function) and ast.get_docstring(node) is not None:
            yield node


def _question(function: Function) -> str:
    said = ast.get_docstring(function) or ""
    return " ".join(said.partition("\n\n")[0].split())


def _without(source: str, described: list[Function]) -> str:
    lines = source.splitlines(keepends=True)
    for function in described:
        docstring = function.body[0]
        for number in range(docstring.lineno - 1, docstring.end_lineno or docstring.lineno):
            lines[number] = ""
    return "".join(lines)
