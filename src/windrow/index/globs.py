"""Globs of paths: `*` and `?` stay within a folder, `**` goes through folders."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_PART: Final = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|[^*?\[]+|\[")
_SPECIAL: Final = re.compile(r"[*?\[]")
_PUNCTUATION: Final = re.compile(r"[!-.:-@\[-^`{-~]")  # of ASCII; / and _ mean themselves


def literal_prefix(glob: str) -> str:
    """How every path begins that fits."""
    special = _SPECIAL.search(glob)
    return glob if special is None else glob[: special.start()]


@lru_cache(maxsize=256)
def to_regex(glob: str) -> str:
    """A regular expression, of the whole path, that Python and Postgres read alike."""
    return "^(?:" + "".join(map(_translated, _PART.findall(glob))) + ")$"


def fits(glob: str, path: str) -> bool:
    return re.fullmatch(to_regex(glob), path, re.DOTALL) is not None


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
        inside = part[1:-1].replace("\\", r"\\")
        return f"[^{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
    return _PUNCTUATION.sub(r"\\\g<0>", part)
