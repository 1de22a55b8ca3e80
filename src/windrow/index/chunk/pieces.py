"""`Chunk`, `Limits`, and how pieces of a text are packed into chunks.

A piece is what should stay together: a paragraph, a row, a function. Whoever makes pieces cuts
none larger than `largest`; small ones are joined here up to `target`. Text that nothing is known
about is cut at its lines, blank ones before others: by looking back from where a piece must end, so
a file of any size, or of one line, costs the same per character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import msgspec

LONGEST_CHARACTER: Final = 32  # code points of one that is put together; longer ones are cut
JOINER: Final = "\u200d"

# Where a line that is too long is cut, the best first: white space, then what ends things in code.
_ENDS: Final = (re.compile(r"\s"), re.compile(r"[;,})\]>。、，]"))
_BLANK_LINE: Final = re.compile(r"\r\n[ \t]*\r\n|\n[ \t]*\n|\r[ \t]*\r")


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of chunks in characters, and in bytes for those who count these."""

    target: int = 1000  # small pieces are joined up to here
    largest: int = 1500  # one piece may have this many before it is cut
    small: int = 250  # what has fewer does not stand alone if it can be helped
    largest_bytes: int = 6000

    def __post_init__(self) -> None:
        if not 0 < self.small <= self.target <= self.largest:
            raise ValueError("limits must be 0 < small <= target <= largest")
        if self.largest_bytes < 16:
            raise ValueError("largest_bytes must be at least 16")


DEFAULT_LIMITS: Final = Limits()


# Structs, where others are dataclasses: there are dozens of them in a file.
class Chunk(msgspec.Struct, frozen=True, gc=False):
    """A part of a text: `text[start:end]`, in characters."""

    ordinal: int
    start: int
    end: int
    headings: tuple[str, ...]  # from the outermost: of markdown its headings, of code its names
    text: str

    def in_context(self, title: str = "") -> str:
        """What is embedded: the chunk under the title of its document and its headings."""
        path = (
            [title, *self.headings] if title and title not in self.headings[:1] else self.headings
        )
        return " > ".join(path) + "\n\n" + self.text if path else self.text


class Begins(IntEnum):
    """How much a piece wants to be the first of its chunk."""

    ANYWHERE = 0
    RATHER_ANEW = 1  # unless what came before is too small to stand alone
    ANEW = 2


class Piece(msgspec.Struct, frozen=True, gc=False):
    start: int
    end: int
    headings: tuple[str, ...] = ()
    begins: Begins = Begins.ANYWHERE


def pack(text: str, pieces: Sequence[Piece], limits: Limits) -> list[Chunk]:
    """Pieces, each of which ends where the next one begins, joined to chunks."""
    chunks: list[Chunk] = []
    joined: list[Piece] = []
    is_ascii = text.isascii()
    start = end = filled = 0  # of the chunk that is being filled; the last in bytes
    for piece in _fitting(text, pieces, limits, is_ascii):
        size = _byte_size(text, piece.start, piece.end, is_ascii)
        is_small = end - start < limits.small
        if joined and (
            filled + size > limits.largest_bytes or not _joins(piece, start, is_small, limits)
        ):
            _close(text, joined, chunks)
            joined = []
        if not joined:
            start, filled = piece.start, 0
        end = piece.end
        filled += size
        joined.append(piece)
    _close(text, joined, chunks)
    return chunks


def _joins(piece: Piece, start: int, is_small: bool, limits: Limits) -> bool:
    """Whether a piece goes on with a chunk."""
    if piece.begins and (piece.begins is Begins.ANEW or not is_small):
        return False
    # A heading goes with what stands below it, also if that fills a chunk by itself.
    return piece.end - start <= (limits.largest if is_small else limits.target)


def _fitting(text: str, pieces: Iterable[Piece], limits: Limits, is_ascii: bool) -> Iterable[Piece]:
    """The pieces; one that has too many characters or bytes is cut, wherever that falls."""
    # As many characters have no more bytes than are allowed, whatever they are.
    surely = min(limits.largest, limits.largest_bytes // (1 if is_ascii else 4))
    for piece in pieces:
        if 0 < piece.end - piece.start <= surely:
            yield piece
            continue
        start, begins = piece.start, piece.begins
        while start < piece.end:
            end = piece.end
            if end - start > limits.largest:
                end = between_characters(text, start, start + limits.largest)
            while _byte_size(text, start, end, is_ascii) > limits.largest_bytes:
                end = between_characters(text, start, start + max(1, (end - start) * 3 // 4))
            yield Piece(start, end, piece.headings, begins)
            start, begins = end, Begins.ANYWHERE


def between_characters(text: str, start: int, end: int) -> int:
    """The end, moved a little to the front where it would part what is read as one character."""
    for place in range(end, max(start + 1, end - LONGEST_CHARACTER), -1):
        if place >= len(text) or not _belong_together(text[place - 1], text[place]):
            return place
    return end


def _belong_together(left: str, right: str) -> bool:
    if left == "\r":
        return right == "\n"
    return right > "\u02ff" and (
        unicodedata.category(right) in ("Mn", "Me", "Mc")
        or JOINER in (left, right)
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # the colour of a skin
    )


def _byte_size(text: str, start: int, end: int, is_ascii: bool) -> int:
    return end - start if is_ascii else len(text[start:end].encode())


def _close(text: str, joined: Sequence[Piece], chunks: list[Chunk]) -> None:
    if not joined:
        return
    start, end = joined[0].start, joined[-1].end
    body = text[start:end]
    first = start + len(body) - len(body.lstrip())
    last = start + len(body.rstrip())
    if first >= last:
        return
    # The indentation of a first line says how deep it is nested: it stays.
    first = max(text.rfind("\n", start, first), text.rfind("\r", start, first), start - 1) + 1
    if len(joined) > 1:
        joined = [piece for piece in joined if not text[piece.start : piece.end].isspace()]
    chunks.append(Chunk(len(chunks), first, last, _headings(joined), text[first:last]))


def _headings(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """Those of the piece that is nearly all of the chunk, else what all of them are below."""
    first = pieces[0].headings
    if all(piece.headings == first for piece in pieces):
        return first
    largest = max(pieces, key=lambda piece: piece.end - piece.start)
    if 4 * (largest.end - largest.start) >= 3 * (pieces[-1].end - pieces[0].start):
        return largest.headings
    return _common([piece.headings for piece in pieces])


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What all paths begin with."""
    shortest, longest = min(paths), max(paths)
    for depth, name in enumerate(shortest):
        if longest[depth : depth + 1] != (name,):
            return shortest[:depth]
    return shortest


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
