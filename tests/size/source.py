"""The source of the package as `make size` measures it: lines, modules, imports, classes.

Everything is read from the files, so nothing here needs a database or imports a driver.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "windrow"
SNAPSHOT = "schema.sql"  # written by `make schema` from the migrations

_SQL_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    """One Python file."""

    name: str  # dotted
    path: Path  # below the folder that is measured
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def raw_lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def net_lines(self) -> int:
        """Lines without blanks, comments and docstrings. A line of any other string is code."""
        documentation = set(chain.from_iterable(_docstring_lines(self.nodes)))
        strings = set(chain.from_iterable(_string_lines(self.nodes)))
        lines = ((n, line.strip()) for n, line in enumerate(self.text.splitlines(), 1))
        return sum(
            n not in documentation and (n in strings or not (line == "" or line.startswith("#")))
            for n, line in lines
        )

    @property
    def public_classes(self) -> Iterator[str]:
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name

    @property
    def imported_names(self) -> Iterator[str]:
        """Dotted names of all imports: those in functions and under TYPE_CHECKING as well."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


@dataclass(frozen=True)
class Source:
    """A folder that is one package."""

    folder: Path

    @cached_property
    def modules(self) -> dict[str, Module]:
        paths = sorted(self.folder.rglob("*.py"))
        found = (self._module(path.relative_to(self.folder), path) for path in paths)
        return {module.name: module for module in found}

    def _module(self, path: Path, full: Path) -> Module:
        parts = (self.folder.name, *path.with_suffix("").parts)
        name = ".".join(parts).removesuffix(".__init__")
        return Module(name, path, full.read_text("utf-8"))

    @cached_property
    def statements(self) -> dict[Path, str]:
        """SQL files by their path, without the snapshots of the schema."""
        return {
            path.relative_to(self.folder): path.read_text("utf-8")
            for path in sorted(self.folder.rglob("*.sql"))
            if path.name != SNAPSHOT
        }

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """The modules of the package that each module imports. A package is counted as imported
        only where a name of its own is: not because one of its modules is."""
        return {
            name: {self._owner(one) for one in module.imported_names} & self.modules.keys() - {name}
            for name, module in self.modules.items()
        }

    def _owner(self, name: str) -> str:
        return name if name in self.modules else name.rpartition(".")[0]

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        return {
            name: {other for other, imports in self.imports.items() if name in imports}
            for name in self.modules
        }

    @cached_property
    def largest_cycle(self) -> list[str]:
        """The largest set of modules each of which imports, by way of others, every other one."""
        reached = {name: self._reached_from(name) for name in self.modules}
        cycles = [
            sorted(other for other in reached[name] if name in reached[other])
            for name in self.modules
        ]
        return max(cycles, key=len)

    def _reached_from(self, name: str) -> set[str]:
        reached, left = {name}, [name]
        while left:
            new = self.imports[left.pop()] - reached
            reached |= new
            left += new
        return reached

    def files_naming(self, word: str) -> list[str]:
        """Files of any kind in which a word occurs."""
        needle = word.encode()
        return [
            str(path.relative_to(self.folder))
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.suffix != ".pyc" and needle in path.read_bytes()
        ]


def net_sql_lines(text: str) -> int:
    """Lines of a statement without blanks and comments."""
    return sum(bool(line.strip()) for line in _SQL_COMMENT.sub("", text).splitlines())


def raw_lines(folder: Path) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in folder.rglob("*.py"))


def _docstring_lines(nodes: Sequence[ast.AST]) -> Iterator[range]:
    for node in nodes:
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            yield _lines_of(node.body[0])


def _string_lines(nodes: Sequence[ast.AST]) -> Iterator[range]:
    for node in nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno:
            yield _lines_of(node)


def _lines_of(node: ast.expr | ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
