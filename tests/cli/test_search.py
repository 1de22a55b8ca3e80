"""`windrow search`, as people read what it prints."""

from __future__ import annotations

import io
import os
from typing import Any

import pytest
from rich.console import Console

from tests.cli.conftest import Windrow
from windrow.cli.search import SNIPPET_LINES, _shown
from windrow.search.request import Found

PLACE = {"document": "d", "content": "c", "tenant": None, "collection": "docs", "source": "s"}
TOLD = {"uri": "a.md", "branch": "", "title": "", "language": "", "tags": (), "headings": ()}
FOUND: dict[str, Any] = {**PLACE, **TOLD, "score": 1.0, "why": {}, "start": 0, "end": 0, "text": ""}


def shown(snippet: str, *words: str, width: int = 60) -> tuple[list[str], list[str]]:
    """The lines of a snippet, and what is marked in it."""
    places = tuple((snippet.index(word), snippet.index(word) + len(word)) for word in words)
    found = FOUND | {"snippet": snippet, "highlights": places}
    text = _shown(Found(**found), Console(width=width, file=io.StringIO()))
    return text.plain.split("\n"), [text.plain[one.start : one.end] for one in text.spans]


def test_a_snippet_fits_the_terminal_and_is_a_few_lines() -> None:
    lines, marked = shown("Hay is dried in rows. " * 40, "rows")

    assert len(lines) == SNIPPET_LINES
    assert all(len(line) <= 60 for line in lines)
    assert lines[-1].endswith(" …")
    assert marked == ["rows"]


def test_a_snippet_reads_as_text_and_not_as_markdown() -> None:
    lines, marked = shown(
        "# Hay\n\n- **dried** in `rows`, see [the barn](https://x.example/)", "dried"
    )

    assert lines == ["Hay dried in rows, see the barn"]
    assert marked == ["dried"]


def test_a_question_needs_no_threads_of_blas(
    windrow: Windrow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "8")  # somebody's own choice stays
    windrow("search", "hay")
    assert os.environ["OPENBLAS_NUM_THREADS"] == "8"
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    windrow("search", "hay")
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
