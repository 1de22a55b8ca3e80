"""The pages that conversion is measured on, and the book-keeping of the measuring."""

from __future__ import annotations

from bench import convert


def test_pages_are_of_ordinary_size_and_the_same_in_every_run() -> None:
    pages = convert.make_pages()

    assert pages == convert.make_pages()
    assert all(15_000 < len(page) < 35_000 for page in pages.values())


def test_what_is_measured_keeps_the_content_and_leaves_out_the_framing() -> None:
    pages = convert.make_pages()
    texts = {name: convert.find_contestants()["windrow"](page) for name, page in pages.items()}

    assert texts["article"].count("\n## ") == 7
    assert texts["documentation"].count("```python") == 34
    assert texts["shop"].count("### [") == 60
    assert texts["forum"].count("> ") >= 34
    assert not any("cookies" in text or "/menu/" in text for text in texts.values())


def test_every_contestant_gets_every_page_in_every_round() -> None:
    calls: list[str] = []

    def note(page: str) -> str:
        calls.append(page)
        return ""

    figures = convert.measure({"a": "A", "b": "B"}, {"windrow": note}, 2)

    assert {page: len(of) for page, of in figures["windrow"].items()} == {"a": 2, "b": 2}
    assert len(calls) == 3 * 2 * convert.CALLS
    assert "| a | 0 |" in convert.as_table({"a": "A", "b": "B"}, figures)
