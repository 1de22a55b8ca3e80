"""Where the pages of a PDF begin in its markdown, which does not say: there are the markdown of the
whole file, with headings and tables, and the bare text of each page, with the same words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from windrow.ingest.document import Page

FIRST_WORDS: Final = 8  # of a page, by which it is found
# By how much of a page the words of the two texts may differ: lines at the head and foot of pages
# may be left out of the markdown.
TOLERANCE: Final = 0.2
LEAST_TOLERANCE: Final = 20
_WORD: Final = re.compile(r"\w+")


def split_pages(markdown: str, pages: Sequence[Page]) -> list[Page]:
    """The pages, cut from the markdown; as they are, if one of them is not found in it."""
    lines = markdown.strip("\n").split("\n")
    words = [_WORD.findall(line) for line in lines]
    starts = [0]
    for before, page in pairwise(pages):
        passed = len(_WORD.findall(before.markdown))
        first = _WORD.findall(page.markdown)[:FIRST_WORDS]
        start = _find_start(words, first, starts[-1], passed)
        if start is None:
            return list(pages)
        starts.append(start)
    ends = [*starts[1:], len(lines)]
    return [
        Page(page_number=page.page_number, markdown="\n".join(lines[start:end]).strip("\n"))
        for page, start, end in zip(pages, starts, ends, strict=False)
    ]


def _find_start(
    words: Sequence[list[str]], wanted: Sequence[str], begin: int, passed: int
) -> int | None:
    """The line that begins with these words, with so many words since `begin`, or about so many."""
    tolerance = max(LEAST_TOLERANCE, passed * TOLERANCE)
    found: tuple[float, int] | None = None
    seen = 0
    for number in range(begin, len(words)):
        line = words[number]
        distance = abs(seen - passed)
        size = min(len(line), len(wanted))
        if size and distance <= tolerance and line[:size] == list(wanted[:size]):
            found = min(found or (distance, number), (distance, number))
        seen += len(line)
        if seen > passed + tolerance:
            break
    return None if found is None else found[1]
