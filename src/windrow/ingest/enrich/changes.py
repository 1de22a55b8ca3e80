"""`changeTracking`: a page beside the version of it that was seen before.

Versions are compared by their lines, without blank ones and without the space at their ends. The
JSON form of a diff is that of git's text, taken apart: files, chunks, lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from difflib import unified_diff
from typing import Final

from windrow.ingest.document import (
    ChangeTracking,
    Diff,
    DiffChunk,
    DiffFile,
    DiffFiles,
    Document,
    LineChange,
)

GONE: Final = (404, 410)
# Finding the shortest way from one text to the other takes the square of this.
MOST_LINES: Final = 4000
_CHUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def is_comparable(document: Document) -> bool:
    """Whether this is a version of the page at all, and not the answer of a server in trouble."""
    status = document.metadata.status_code
    return status < 400 or status in GONE


def compare(
    document: Document, before: str | None, seen_at: datetime | None, *, with_diff: bool
) -> ChangeTracking:
    """What became of a page. Takes CPU time: call it in a thread."""
    after = document.markdown or ""
    tracking = ChangeTracking(
        previous_scrape_at=None if seen_at is None else seen_at.isoformat(),
        change_status="new",
        visibility="visible",
    )
    if before is None:
        return tracking
    if document.metadata.status_code in GONE:
        tracking.change_status = "removed"
    elif list(_lines(before)) == list(_lines(after)):
        tracking.change_status = "same"
    else:
        tracking.change_status = "changed"
        if with_diff:
            tracking.diff = diff(before, after)
    return tracking


def diff(before: str, after: str) -> Diff:
    """The way from one text to the other."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        lines = list(_diff_ends(old, new))
    else:
        lines = list(unified_diff(old, new, lineterm=""))[2:]
    text = "\n".join(lines)
    return Diff(text=text, json=DiffFiles(files=[DiffFile(None, None, _chunks(lines))]))


def _diff_ends(old: list[str], new: list[str]) -> Iterable[str]:
    """Of very long texts: all between the first and the last line that differ, as one change."""
    most = min(len(old), len(new))
    first = next((at for at in range(most) if old[at] != new[at]), most)
    rest = most - first
    last = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    gone, come = old[first : len(old) - last], new[first : len(new) - last]
    yield f"@@ -{first + bool(gone)},{len(gone)} +{first + bool(come)},{len(come)} @@"
    yield from (f"-{line}" for line in gone)
    yield from (f"+{line}" for line in come)


def _chunks(lines: list[str]) -> list[DiffChunk]:
    chunks: list[DiffChunk] = []
    old = new = 0
    for line in lines:
        if found := _CHUNK.match(line):
            old, new = int(found[1]), int(found[2])
            chunks.append(DiffChunk(content=line, changes=[]))
            continue
        change = LineChange(type="normal", content=line)
        match line[:1]:
            case "-":
                change.type, change.ln = "del", old
                old += 1
            case "+":
                change.type, change.ln = "add", new
                new += 1
            case _:
                change.normal, change.ln1, change.ln2 = True, old, new
                old, new = old + 1, new + 1
        chunks[-1].changes.append(change)
    return chunks


def _lines(text: str) -> Iterable[str]:
    return (line.rstrip() for line in text.splitlines() if line.strip())
