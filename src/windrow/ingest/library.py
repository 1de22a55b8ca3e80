"""Packages that are installed here, as pages to read: `read_distribution`.

The pages are the description of a Python distribution, the texts that came with it and, for each
module, its public names with what is written about them. Nothing is imported: importing a package
runs it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from windrow.errors import ConversionError, FileGone, IngestError
from windrow.ingest.files.content import read_file, to_text

TEXTS: Final = frozenset({".md", ".rst", ".txt"})
MOST_BYTES: Final = 2 * 1024 * 1024
LONGEST_LITERAL: Final = 200
# What is in the folder of a distribution's own records, or is only there to be run.
_ASIDE: Final = frozenset({"RECORD", "top_level.txt", "entry_points.txt", "SOURCES.txt"})
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class LibraryPage:
    uri: str
    title: str
    text: str  # markdown


def read_distribution(name: str, version: str = "") -> list[LibraryPage]:
    """The pages of a distribution. Raises FileGone if it is not installed, ConversionError if
    another version is."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise FileGone(f"the distribution {name}") from error
    if version and found.version != version:
        raise ConversionError("distribution", f"{name} {found.version} is installed, not {version}")
    return list(_pages(name, found))


def _pages(name: str, found: metadata.Distribution) -> Iterator[LibraryPage]:
    said = found.metadata.json
    text = str(said.get("description") or "").strip()
    summary = str(said.get("summary") or "")
    title = f"{name} {found.version}"
    yield LibraryPage("README", title, text or f"# {title}\n\n{summary}")
    for file in found.files or ():
        path = Path(str(file))
        if path.name in _ASIDE or ".dist-info" in str(path) or "__pycache__" in path.parts:
            continue
        located = Path(str(found.locate_file(file)))
        if path.suffix in TEXTS:
            yield from _text(path, located)
        elif path.suffix == ".py" and not any(part.startswith("test") for part in path.parts):
            yield from _module(path, located)


def _text(path: Path, located: Path) -> Iterator[LibraryPage]:
    try:
        text = to_text(path.name, read_file(located, MOST_BYTES)).text
    except IngestError:
        return
    if text.strip():
        yield LibraryPage(path.as_posix(), path.name, text)


def _module(path: Path, located: Path) -> Iterator[LibraryPage]:
    """A page of a module that has anything public written about it."""
    parts = path.with_suffix("").parts
    if any(part.startswith("_") and part != "__init__" for part in parts):
        return
    name = ".".join(part for part in parts if part != "__init__")
    try:
        tree = ast.parse(read_file(located, MOST_BYTES).body)
    except (IngestError, SyntaxError, ValueError, RecursionError):
        return
    written = [*_docstring(tree), *_members(tree, "##")]
    if written:
        yield LibraryPage(path.as_posix(), name, "\n\n".join([f"# {name}", *written]))


def _members(node: ast.Module | ast.ClassDef, mark: str) -> Iterator[str]:
    for one in node.body:
        if isinstance(one, (*_FUNCTIONS, ast.ClassDef)) and not one.name.startswith("_"):
            written = list(_docstring(one))
            inner = list(_members(one, mark + "#")) if isinstance(one, ast.ClassDef) else []
            if written or inner:
                yield f"{mark} {one.name}"
                yield f"```python\n{_signature(one)}\n```"
                yield from written
                yield from inner


def _docstring(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> Iterator[str]:
    text = ast.get_docstring(node)
    if text:
        yield text


def _signature(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(_short(base) for base in node.bases)
        return f"class {node.name}({bases})" if bases else f"class {node.name}"
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {_short(node.returns)}" if node.returns else ""
    return f"{word} {node.name}({_short(node.args)}){returns}"


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= LONGEST_LITERAL else f"{text[:LONGEST_LITERAL]}…"
