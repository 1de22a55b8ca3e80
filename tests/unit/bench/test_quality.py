"""The questions of the quality figures, and how places become figures."""

from __future__ import annotations

import pytest

from bench.corpus import INSTALL, NOT_READ, folders, read_questions
from bench.quality import figures


def test_recall_and_mean_reciprocal_rank() -> None:
    assert figures([1, 2, 6, 0]) == (0.5, (1 + 1 / 2 + 1 / 6) / 4)


def test_questions_are_many_the_same_and_name_pages_that_are_there() -> None:
    books = folders()
    if not books:
        pytest.skip(f"no documentation: {INSTALL}")
    pages = {
        f"{book}/{path.relative_to(folder).as_posix()}"
        for book, folder in books.items()
        for path in folder.rglob("*.html")
        if not NOT_READ.fullmatch(path.relative_to(folder).as_posix())
    }

    questions = read_questions(books, pages, 400)

    assert len(questions) >= 500
    assert len({question.text for question in questions}) > 0.99 * len(questions)
    assert all(question.pages and question.pages <= pages for question in questions)
    assert questions == read_questions(books, pages, 400)
