"""Markdown as pieces: headings, fences, rows, items and paragraphs, each with its headings.

One pass over the lines finds the blocks. Only a paragraph that is too long goes to
semantic-text-splitter, which knows where sentences end: its time grows with the square of what it
is given (2 MB without a space took it 50 s), so it is never given more than `WINDOW` characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from windrow.index.chunk.pieces import Begins, Limits, Piece, cut, line_pieces

if TYPE_CHECKING:
    from semantic_text_splitter import MarkdownSplitter

WINDOW: Final = 8000  # characters; up to here the splitter takes 0.1 microseconds for each
LONGEST_HEADING: Final = 200  # characters of it that are repeated with every chunk below it

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_FRONT_MATTER: Final = re.compile(
    r"---[ \t]*\r?\n(?:.{0,500}\r?\n){0,100}?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_MARKUP: Final = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])|[*`]|<[^>]+>")


def markdown_pieces(text: str, start: int, limits: Limits) -> list[Piece]:
    """Pieces that tile the text from `start` on."""
    pieces: list[Piece] = []
    for block in _Blocks(text, start).found():
        if block.end - block.start <= limits.largest:
            pieces.append(block)
        elif _FENCE.match(_line_at(text, block.start)):
            pieces += line_pieces(text, block.start, block.end, limits, block.headings)
        else:
            pieces += _sentences(text, block, limits)
    return pieces


class _Blocks:
    """One pass over the lines. Blank lines belong to the block before them."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start  # of the block that is open
        self._begins = Begins.ANYWHERE
        self._path: tuple[str, ...] = ()
        self._headings: list[tuple[int, str]] = []
        self._lines = 0  # of the paragraph that is open; 0: none is
        self._rows = 0  # of the table that is open
        self._fence = ""  # what opened the fence that is open

    def found(self) -> Iterator[Piece]:
        place = self._start
        if front_matter := _FRONT_MATTER.match(self._text, place):
            place = front_matter.end()
        for found in _LINE.finditer(self._text, place):
            if found.start() == found.end():
                break
            opens = self._read(found[0].rstrip("\r\n"))
            if opens is None:
                continue
            if found.start() > self._start:
                yield Piece(self._start, found.start(), self._path, self._begins)
            self._start, self._begins, self._path = found.start(), opens, self._names()
        if self._start < len(self._text):
            yield Piece(self._start, len(self._text), self._path, self._begins)

    def _read(self, line: str) -> Begins | None:
        """How the block begins that this line opens; None if it goes on with the one before."""
        if self._fence:
            if _closes(line, self._fence):
                self._fence = ""
            return None
        if line[:1].isalpha():  # most lines: nothing else that is looked for begins like this
            self._rows = 0
            self._lines += 1
            return Begins.ANYWHERE if self._lines == 1 else None
        if not line or line.isspace():
            self._lines = self._rows = 0
            return None
        if line.lstrip().startswith("|"):
            return self._row()
        self._rows = 0
        if heading := _HEADING.match(line):
            self._lines = 0
            return self._enter(len(heading[1]), heading[2] or "")
        if fence := _FENCE.match(line):
            self._fence, self._lines = fence[1], 0
            return Begins.ANYWHERE
        if self._lines == 1 and (underline := _UNDERLINE.match(line)):
            self._underlined(1 if underline[1][0] == "=" else 2)
            return None
        return self._prose(line)

    def _row(self) -> Begins | None:
        self._lines = 0
        self._rows += 1
        # A table's head says nothing without a row, nor a row much without the head.
        return None if self._rows in (2, 3) else Begins.ANYWHERE

    def _prose(self, line: str) -> Begins | None:
        is_new = self._lines == 0 or _ITEM.match(line)
        self._lines = 1 if is_new else self._lines + 1
        return Begins.ANYWHERE if is_new else None

    def _underlined(self, level: int) -> None:
        """The line before this one was a heading."""
        self._lines = 0
        self._begins = self._enter(level, _line_at(self._text, self._start))
        self._path = self._names()

    def _enter(self, level: int, heading: str) -> Begins:
        is_higher = bool(self._headings) and level < self._headings[-1][0]
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        if name := " ".join(_MARKUP.sub(r"\1", heading).split())[:LONGEST_HEADING]:
            self._headings.append((level, name))
        return Begins.ANEW if is_higher else Begins.RATHER_ANEW

    def _names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self._headings)


def _closes(line: str, fence: str) -> bool:
    line = line.strip()
    return len(line) >= len(fence) and line.startswith(fence) and not line.strip(fence[0])


def _line_at(text: str, start: int) -> str:
    found = _LINE.match(text, start)
    return found[0].rstrip("\r\n") if found else ""


def _sentences(text: str, block: Piece, limits: Limits) -> Iterator[Piece]:
    splitter = _splitter(limits.target)
    start, begins = block.start, block.begins
    while start < block.end:
        end = cut(text, start, block.end, WINDOW)
        for _, part in splitter.chunk_indices(text[start:end]):
            yield Piece(start, start + len(part), block.headings, begins)
            start, begins = start + len(part), Begins.ANYWHERE


@lru_cache(maxsize=8)
def _splitter(target: int) -> MarkdownSplitter:
    from semantic_text_splitter import MarkdownSplitter

    return MarkdownSplitter((max(1, target * 2 // 3), target), trim=False)
