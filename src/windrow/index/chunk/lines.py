"""Text that nothing is known about is cut at its lines: blank ones before others.

Works by looking back from where a piece must end, so a file of any size, or of one line, costs the
same per character.
"""

from __future__ import annotations

import re
from typing import Final

from windrow.index.chunk.pieces import Begins, Limits, Piece, between_characters

# Where a line that is too long is cut, the best first: white space, then what ends things in code.
_ENDS: Final = (re.compile(r"\s"), re.compile(r"[;,})\]>。、，]"))
_BLANK_LINE: Final = re.compile(r"\r\n[ \t]*\r\n|\n[ \t]*\n|\r[ \t]*\r")


def line_pieces(
    text: str, start: int, end: int, limits: Limits, headings: tuple[str, ...] = ()
) -> list[Piece]:
    """Pieces of about the target size."""
    pieces: list[Piece] = []
    begins = Begins.RATHER_ANEW
    while start < end:
        place = cut(text, start, end, limits.target)
        pieces.append(Piece(start, place, headings, begins))
        start = place
    return pieces


def cut(text: str, start: int, end: int, size: int) -> int:
    """Where the first piece of text[start:end] ends: no more than `size` characters on."""
    if end - start <= size:
        return end
    limit = start + size
    return (
        _after_blank_line(text, start + size // 2, limit)
        or _after_line(text, start, limit)
        or _after_end(text, start + size // 2, limit)
        or between_characters(text, start, limit)
    )


def _after_blank_line(text: str, start: int, limit: int) -> int:
    ends = [found.end() for found in _BLANK_LINE.finditer(text, start, limit)]
    return ends[-1] if ends else 0


def _after_line(text: str, start: int, limit: int) -> int:
    place = max(text.rfind("\n", start, limit), text.rfind("\r", start, limit - 1))
    return place + 1 if place >= start else 0


def _after_end(text: str, start: int, limit: int) -> int:
    for pattern in _ENDS:
        ends = [found.end() for found in pattern.finditer(text, start, limit)]
        if ends:
            return ends[-1]
    return 0
