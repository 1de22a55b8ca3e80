"""The part of a chunk that shows why it was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

WIDTH: Final = 300  # characters of a snippet
_WORD: Final = re.compile(r"\w+")
_SHORTEST_STEM: Final = 4
# Words of a question that say nothing of what is looked for: marked only if it has no others.
_COMMON_TEXT: Final = (
    "a an and are as at be by can do does for from had has have how i if in is it its me my no not "
    "of on or our so that the their them then there these they this to was we were what when where "
    "which who why will with you your"
)
_COMMON: Final = frozenset(_COMMON_TEXT.split())


def snippet(text: str, query: str, width: int = WIDTH) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The part of a text where most of the query's words are, and the places of these in it."""
    places = _places(text, query)
    start = _best_start(places, width)
    begin, end = _widened(text, start, width)
    shown = text[begin:end]
    left = len(shown) - len(shown.lstrip())
    shown = shown.strip()
    offset = begin + left
    inside = [(a - offset, b - offset) for a, b in places]
    return shown, tuple((a, b) for a, b in inside if a >= 0 and b <= len(shown))


def _places(text: str, query: str) -> list[tuple[int, int]]:
    """Where words of the query are; the whole query where it stands as it is."""
    whole, words = _patterns(query.strip())
    found = [match.span() for match in whole.finditer(text)] if whole else []
    return found or [match.span() for match in words.finditer(text)]


@lru_cache(maxsize=64)
def _patterns(query: str) -> tuple[re.Pattern[str] | None, re.Pattern[str]]:
    """What the whole query looks like in a text, if it has several words, and each of its words;
    also with another ending, and as a part of an identifier. One pass each: a search makes many
    snippets."""
    words = _WORD.findall(query)
    telling = [word for word in words if word.lower() not in _COMMON] or words
    stems = {re.escape(_stem(word)) + _endings(_stem(word)) for word in telling}
    longest_first = "|".join(sorted(stems, key=len, reverse=True)) or "(?!)"
    each = re.compile(rf"(?<![^\W_])(?:{longest_first})(?![^\W_])", re.IGNORECASE)
    whole = re.compile(re.escape(query), re.IGNORECASE) if len(words) > 1 else None
    return whole, each


def _endings(stem: str) -> str:
    return r"[^\W_]{0,3}" if len(stem) >= _SHORTEST_STEM else ""


def _stem(word: str) -> str:
    """Crude, and enough to tell which words of a text are meant."""
    plain = word.lower()
    for ending in ("ing", "ies", "es", "ed", "s"):
        if plain.endswith(ending) and len(plain) - len(ending) >= _SHORTEST_STEM:
            return plain[: -len(ending)]
    return plain


def _best_start(places: Sequence[tuple[int, int]], width: int) -> int:
    """Where the window begins that has the most of them, the first of several."""
    best, best_count = 0, 0
    for number, (start, _) in enumerate(places):
        count = sum(1 for _, end in places[number:] if end <= start + width)
        if count > best_count:
            best, best_count = start, count
    return best


def _widened(text: str, start: int, width: int) -> tuple[int, int]:
    """A window from a little before the first word on, cut between words."""
    begin = max(0, min(start - width // 4, len(text) - width))
    end = min(len(text), begin + width)
    if begin > 0:
        space = text.find(" ", begin, begin + 30)
        begin = space + 1 if 0 <= space < start else begin
    if end < len(text):
        space = text.rfind(" ", end - 30, end)
        end = space if space > start else end
    return begin, end
