"""The part of a chunk that shows why it was found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

WIDTH: Final = 300  # characters of a snippet
_WORD: Final = re.compile(r"\w+")
_LINK: Final = re.compile(r"!?\[([^\]\n]{0,500})\]\([^)\s]{0,2000}\)")
_SIGNS: Final = re.compile(r"^ {0,3}(?:#{1,6}|>|[-*+]) +|\*\*|`", re.MULTILINE)
_SPACES: Final = re.compile(r"\s+")
# Of tables: the line below the heading, the end of the last row, and what is between cells.
_RULE: Final = re.compile(r"\n?[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*")
_ROW_END: Final = re.compile(r"[ \t]*(?<!\|)\|[ \t]*(?=\n(?![ \t]*\|))")
_CELLS: Final = re.compile(r"[ \t]*(?<!\|)\|(?!\|)[ \t]*(?:\n[ \t]*\|[ \t]*)?")
_SHORTEST_STEM: Final = 4
LONGEST_ENDING: Final = 3
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


def readable(part: str) -> str:
    """A part of a snippet without the signs of Markdown."""
    plain = _SIGNS.sub("", _LINK.sub(r"\1", part))
    return _CELLS.sub(" · ", _ROW_END.sub("", _RULE.sub("", plain)))


def in_one_line(part: str) -> str:
    return _SPACES.sub(" ", readable(part))


def _places(text: str, query: str) -> list[tuple[int, int]]:
    """Where words of the query are; the whole query where it stands as it is."""
    whole, stems = _wanted(query.strip())
    lowered = _lower(text)
    if whole and (start := lowered.find(whole)) >= 0:
        return list(_all(lowered, whole, start))
    found = [place for stem in stems for place in _words_of(lowered, stem)]
    if len(stems) == 1:
        return found
    # Of those that begin together the longest, and none that another one covers.
    places: list[tuple[int, int]] = []
    end = 0
    for place in sorted(found, key=lambda one: (one[0], -one[1])):
        if place[0] >= end:
            places.append(place)
            end = place[1]
    return places


@lru_cache(maxsize=64)
def _wanted(query: str) -> tuple[str, tuple[str, ...]]:
    """The whole query, if it has several words, and how each of its words begins."""
    words = _WORD.findall(query)
    telling = [word for word in words if word.lower() not in _COMMON] or words
    whole = _lower(query) if len(words) > 1 else ""
    return whole, tuple(dict.fromkeys(_stem(word) for word in telling))


def _all(lowered: str, wanted: str, start: int) -> Iterator[tuple[int, int]]:
    while start >= 0:
        end = start + len(wanted)
        yield start, end
        start = lowered.find(wanted, end)


def _words_of(lowered: str, stem: str) -> Iterator[tuple[int, int]]:
    """Words with this beginning, also with another ending, and as a part of an identifier. Looked
    for by hand: to compile a pattern for each query takes longer than all of its snippets."""
    longest = LONGEST_ENDING if len(stem) >= _SHORTEST_STEM else 0
    size, start = len(lowered), lowered.find(stem)
    while start >= 0:
        end = start + len(stem)
        if start == 0 or not lowered[start - 1].isalnum():
            last = min(end + longest, size)
            while end < last and lowered[end].isalnum():
                end += 1
            if end == size or not lowered[end].isalnum():
                yield start, end
                start = end - 1
        start = lowered.find(stem, start + 1)


def _lower(text: str) -> str:
    """In lower case, each character in its place: of a few the small one is two."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := one.lower()) == 1 else one for one in text)


def _stem(word: str) -> str:
    """Crude, and enough to tell which words of a text are meant."""
    plain = _lower(word)
    for ending in ("ing", "ies", "es", "ed", "s"):
        if plain.endswith(ending) and len(plain) - len(ending) >= _SHORTEST_STEM:
            return plain[: -len(ending)]
    return plain


def _best_start(places: Sequence[tuple[int, int]], width: int) -> int:
    """Where the window begins that has the most of them, the first of several. They are in order,
    and none reaches into the next."""
    best, best_count, behind = 0, 0, 0
    for number, (start, _) in enumerate(places):
        while behind < len(places) and places[behind][1] <= start + width:
            behind += 1
        if behind - number > best_count:
            best, best_count = start, behind - number
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
