"""Which files are left out: the rules of `.gitignore`, as git reads them.

A file of rules holds for its own folder and everything below. Of all rules that match a path the
one in the deepest folder decides, there the last one; what is in a folder that is left out is left
out too, whatever is said of it, because nobody goes in there to look. The last rule that matches is
the first of alternatives in reverse order. Rules come with a folder from anywhere, so they are
matched in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow.errors import InvalidOptions
from windrow.patterns import Alternatives

FILES: Final = (".gitignore", ".windrowignore")  # the second may overrule the first

# The weakest rules of all: a `!vendor/` in a file of rules takes one back.
ALWAYS: Final = (
    ".*/",
    "!.github/",
    "target/",
    "node_modules/",
    "__pycache__/",
    "dist/",
    "build/",
    "vendor/",
    *FILES,
    ".DS_Store",
    "Thumbs.db",
    "*.pyc",
    "*.pyo",
)
# What no rule takes back.
NEVER: Final = frozenset({".git", ".hg", ".svn"})

# Without the slash, which no bracket matches.
_CLASSES: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-.0-~",
    "lower": "a-z",
    "print": " -.0-~",
    "punct": "!-.:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


MAX_RULE_LENGTH: Final = 4096  # characters; no path is longer
_NOTHING: Final = "[^\\x00-\\x{10FFFF}]"  # matches no character


class Rules:
    """The rules of one file."""

    __slots__ = ("_folders", "_folders_kept", "_others", "_others_kept")

    def __init__(self, lines: Iterable[str]) -> None:
        rules = [rule for line in lines if (rule := _parse(line)) is not None]
        rules.reverse()
        self._folders = Alternatives([rule.expression for rule in rules], "rules")
        self._folders_kept = [rule.is_kept for rule in rules]
        of_files = [rule for rule in rules if not rule.is_for_folders]
        self._others = Alternatives([rule.expression for rule in of_files], "rules")
        self._others_kept = [rule.is_kept for rule in of_files]

    def decide(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether a path, as seen from the folder of the rules, is left out; None: nothing is said
        of it."""
        rule = (self._folders if is_folder else self._others).first(path)
        if rule is None:
            return None
        return not (self._folders_kept if is_folder else self._others_kept)[rule]

    def __bool__(self) -> bool:
        return bool(self._folders_kept)


@dataclass(frozen=True, slots=True)
class Ignore:
    """The rules that hold in a folder: those of files, each with the beginning of the paths below
    it, weakest first."""

    layers: tuple[tuple[int, Rules], ...]  # how much of a path leads to the folder of the rules

    def enter(self, folder: Path, prefix: int, names: Iterable[str]) -> Ignore:
        """The rules that hold in a folder, of whose path from the top `prefix` characters lead
        there (with the slash), given which files of rules it has."""
        added = []
        for name in names:
            rules = Rules(read_rules(folder / name))
            if rules:
                added.append((prefix, rules))
        return Ignore((*self.layers, *added)) if added else self

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        """Of a path from the top, whose folder is not left out."""
        for prefix, rules in reversed(self.layers):
            decided = rules.decide(path[prefix:], is_folder=is_folder)
            if decided is not None:
                return decided
        return False


def start(
    top: Path, others: Sequence[Path] = (), *, root: Path | None = None
) -> tuple[Ignore, str]:
    """The rules that hold at the top of a walk before its own files: the built-in ones, those of
    the files named (weakest first), and those of the folders above it, up to the repository it is
    in or to `root`. And what to put before each path of the walk, as rules above it see the whole
    way: `docs/` or nothing."""
    repository = _repository_above(top)
    rules = [Rules(ALWAYS), *(Rules(read_rules(path)) for path in others)]
    if repository is not None:
        rules.append(Rules(read_rules(repository / ".git" / "info" / "exclude")))
    above = [one for one in (repository, root) if one is not None and top.is_relative_to(one)]
    way = top.relative_to(min(above, key=lambda one: len(one.parts))).as_posix() if above else "."
    way = "" if way == "." else f"{way}/"
    ignore = Ignore(tuple((0, one) for one in rules if one))
    folder = top
    between = list(reversed(list(folder.parents)))[-way.count("/") :] if way else []
    for depth, parent in enumerate(between):
        prefix = len("".join(part + "/" for part in way.split("/")[:depth]))
        ignore = ignore.enter(parent, prefix, FILES)
    return ignore, way


class Judge:
    """Says of single files whether a walk from the top would come to them, by the rules as they
    were when it first looked at each folder."""

    def __init__(self, top: Path, others: Sequence[Path] = ()) -> None:
        self._top = top
        ignore, self._way = start(top, others)
        self._inside: dict[str, Ignore | None] = {
            "": ignore.enter(top, len(self._way), FILES)
        }  # by folder, as "docs/api/"; None: left out

    def leaves_out(self, path: str) -> bool:
        folder, slash, name = path.rpartition("/")
        ignore = self._ignore_in(folder + slash)
        return ignore is None or self._is_left_out(ignore, folder + slash, name, is_folder=False)

    def _ignore_in(self, folder: str) -> Ignore | None:
        """Top down, without recursion: paths may be a thousand folders deep."""
        known = len(folder)
        while folder[:known] not in self._inside:
            known = folder.rfind("/", 0, known - 1) + 1
        while known < len(folder):
            around, parent = self._inside[folder[:known]], folder[:known]
            known = folder.index("/", known) + 1
            inside, name = folder[:known], folder[len(parent) : known - 1]
            if around is None or self._is_left_out(around, parent, name, is_folder=True):
                self._inside[inside] = None
            else:
                prefix = len(self._way) + len(inside)
                self._inside[inside] = around.enter(self._top / inside, prefix, FILES)
        return self._inside[folder]

    def _is_left_out(self, ignore: Ignore, folder: str, name: str, *, is_folder: bool) -> bool:
        if name in NEVER:
            return True
        return ignore.leaves_out(self._way + folder + name, is_folder=is_folder)


def check_rules(lines: Iterable[str], name: str) -> None:
    """Raise InvalidOptions if a person's rule is too long to match anything."""
    if any(len(line) > MAX_RULE_LENGTH for line in lines):
        raise InvalidOptions(f"a pattern of {name} is longer than {MAX_RULE_LENGTH} characters")


def read_rules(path: Path) -> list[str]:
    """The lines of a file of rules; none if it cannot be read."""
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return []
    return text.removeprefix("\ufeff").split("\n")


@dataclass(frozen=True, slots=True)
class _Rule:
    expression: str
    is_kept: bool  # `!`: what it matches is not left out
    is_for_folders: bool


def _parse(line: str) -> _Rule | None:
    if len(line) > MAX_RULE_LENGTH:
        return None
    line = _without_trailing_spaces(line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    is_kept = line.startswith("!")
    line = line.removeprefix("!") if is_kept else line
    is_for_folders = line.endswith("/")
    line = line.removesuffix("/")
    if not line:
        return None
    is_anchored = "/" in line
    body = _translate(line.removeprefix("/"), is_path=is_anchored)
    if body is None:
        return None
    return _Rule(body if is_anchored else f"(?:.*/)?{body}", is_kept, is_for_folders)


def _without_trailing_spaces(line: str) -> str:
    end = len(line)
    while end and line[end - 1] == " ":
        backslashes = len(line[: end - 1]) - len(line[: end - 1].rstrip("\\"))
        if backslashes % 2:
            break
        end -= 1
    return line[:end]


def _translate(pattern: str, *, is_path: bool) -> str | None:
    """A pattern as an expression; None if it can match nothing."""
    made: list[str] = []
    at, end = 0, len(pattern)
    while at < end:
        char = pattern[at]
        if char == "*":
            stars = at
            while at < end and pattern[at] == "*":
                at += 1
            begins = stars == 0 or pattern[stars - 1] == "/"
            ends = at == end or pattern[at] == "/"
            if not (is_path and at - stars >= 2 and begins and ends):
                made.append("[^/]*")
            elif at == end:
                made.append(".*" if stars == 0 else ".+")
            else:
                made.append("(?:.*/)?")
                at += 1  # with its slash
        elif char == "?":
            made.append("[^/]")
            at += 1
        elif char == "[":
            found = _bracket(pattern, at)
            if found is None:
                return None
            text, at = found
            made.append(text)
        elif char == "\\":
            if at + 1 == end:
                return None
            made.append(re.escape(pattern[at + 1]))
            at += 2
        else:
            made.append(re.escape(char))
            at += 1
    return "".join(made)


def _bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """The expression of a bracket that begins here, and where it ends; None if it does not end."""
    at += 1
    is_negated = at < len(pattern) and pattern[at] in "!^"
    at += is_negated
    made: list[str] = []
    is_first = True
    while at < len(pattern):
        char = pattern[at]
        if char == "]" and not is_first:
            inside = "".join(made)
            if is_negated:
                return f"[^/{inside}]", at + 1
            return (f"[{inside}]" if inside else _NOTHING), at + 1
        is_first = False
        if pattern.startswith("[:", at) and (close := pattern.find(":]", at + 2)) > 0:
            name = pattern[at + 2 : close]
            if name not in _CLASSES:
                return None
            made.append(_CLASSES[name])
            at = close + 2
            continue
        low, at = _one(pattern, at)
        if low is None:
            return None
        if at + 1 < len(pattern) and pattern[at] == "-" and pattern[at + 1] != "]":
            high, at = _one(pattern, at + 1)
            if high is None:
                return None
            if low <= high:
                made.append(_range_without_slash(low, high))
        elif low != "/":
            made.append(re.escape(low))
    return None


def _range_without_slash(low: str, high: str) -> str:
    if not low <= "/" <= high:
        return f"{re.escape(low)}-{re.escape(high)}"
    below = f"{re.escape(low)}-." if low < "/" else ""
    above = f"0-{re.escape(high)}" if high > "/" else ""
    return below + above


def _one(pattern: str, at: int) -> tuple[str | None, int]:
    if pattern[at] != "\\":
        return pattern[at], at + 1
    if at + 1 >= len(pattern):
        return None, at + 1
    return pattern[at + 1], at + 2


def _repository_above(top: Path) -> Path | None:
    for folder in (top, *top.parents):
        if (folder / ".git").exists():
            return folder
    return None
