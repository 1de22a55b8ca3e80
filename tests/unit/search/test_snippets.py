from __future__ import annotations

import pytest

from windrow.search.snippets import WIDTH, snippet


def marked(text: str, query: str) -> list[str]:
    shown, highlights = snippet(text, query)
    return [shown[start:end] for start, end in highlights]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        (
            "Renewing a lease renews leases",
            "renew lease",
            ["Renewing", "lease", "renews", "leases"],
        ),
        ("the whole phrase, phrase alone", "whole phrase", ["whole phrase"]),
        ("parse_url(text) and parser", "url", ["url"]),
        ("Straße und GRÜSSE, Grüße", "grüße", ["Grüße"]),
        ("a and an", "a", ["a"]),
        ("A worker is killed", "what happens when a worker is killed", ["worker", "killed"]),
        ("To be, or not to be", "to be", ["To be", "to be"]),
        ("nothing of it", "zebra", []),
        ("(a+b)* is a pattern", "(a+b)*", ["(a+b)*"]),
        ("dots . and ->", "->", []),
        ("", "anything", []),
        ("東京タワー is tall", "tall", ["tall"]),
        ("İİ Leases, leaseholders", "lease", ["Leases"]),
        ("xa_a_a", "a_a", ["a_a"]),
        ("load_file, load file_name", "load_file load", ["load_file", "load"]),
        ("aaaa aaaab bb", "bb aaaa", ["aaaa", "aaaab", "bb"]),
    ],
)
def test_words_of_the_query_are_marked(text: str, query: str, expected: list[str]) -> None:
    assert marked(text, query) == expected


def test_snippet_is_where_most_of_the_words_are() -> None:
    text = "apple " + "filler words here " * 60 + "apple pear plum " + "other words there " * 60
    shown, highlights = snippet(text, "apple pear plum")

    assert len(shown) <= WIDTH
    assert "apple pear plum" in shown
    assert shown in text
    assert [shown[start:end] for start, end in highlights] == ["apple pear plum"]


def test_text_without_any_of_them_is_shown_from_its_beginning() -> None:
    shown, highlights = snippet("beginning " + "x" * 1000, "zebra")
    assert shown.startswith("beginning")
    assert highlights == ()
