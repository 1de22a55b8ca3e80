"""Globs of paths: `*` and `?` stay within a folder, `**` goes through folders."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from windrow.errors import InvalidOptions
from windrow.patterns import MAX_PATTERN_LENGTH, Pattern, compile_pattern

_PART: Final = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|[^*?\[]+|\[")
_SPECIAL: Final = re.compile(r"[*?\[]")
_PUNCTUATION: Final = re.compile(r"[!-.:-@\[-^`{-~]")  # of ASCII; / and _ mean themselves
_RANGE: Final = re.compile(r"(.)-(.)|.", re.DOTALL)
_NOTHING: Final = "$a"  # something after the end


def literal_prefix(glob: str) -> str:
    """How every path begins that fits."""
    special = _SPECIAL.search(glob)
    return glob if special is None else glob[: special.start()]


@lru_cache(maxsize=256)
def to_regex(glob: str) -> str:
    """A regular expression, of the whole path, that RE2 and Postgres read alike."""
    return "^(?:" + "".join(map(_translated, _PART.findall(glob))) + ")$"


@lru_cache(maxsize=256)
def compile_glob(glob: str) -> Pattern:
    """Raises InvalidOptions for a glob that is too long."""
    if len(glob) > MAX_PATTERN_LENGTH:
        raise InvalidOptions(f"path is longer than {MAX_PATTERN_LENGTH} characters")
    return compile_pattern(to_regex(glob), "path", dot_all=True)


def fits(glob: str, path: str) -> bool:
    return compile_glob(glob).is_all_of(path)


def _translated(part: str) -> str:
    match part:
        case "**/":
            return "(?:.*/)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
    if part.startswith("[") and part.endswith("]") and len(part) > 2:
        return _bracket(part[1:-1])
    return _escaped(part)


def _bracket(inside: str) -> str:
    is_negated = inside[0] in "!^" and len(inside) > 1
    made = []
    for found in _RANGE.finditer(inside[1:] if is_negated else inside):
        low, high = found.groups()
        if low is None:
            made.append(_escaped(found[0]))
        elif low <= high:  # else it is empty
            made.append(f"{_escaped(low)}-{_escaped(high)}")
    if not made:
        return "[^/]" if is_negated else _NOTHING
    return f"[^{''.join(made)}]" if is_negated else f"[{''.join(made)}]"


def _escaped(text: str) -> str:
    return _PUNCTUATION.sub(r"\\\g<0>", text)
