"""Tables for people: as wide as the terminal, and what there is to say comes first."""

from __future__ import annotations

from windrow.cli.output import table_lines

COLUMNS = ["id", "title", "docs#", "error"]
ROWS = [["2681fc50a3f2a3b5", "https://example.org/docs/", 49, None], ["b03735e7", "note", 1, None]]


def test_columns_with_nothing_in_them_go_before_anything_is_cut() -> None:
    wide = list(table_lines(COLUMNS, ROWS, 80))
    narrow = list(table_lines(COLUMNS, ROWS, 51))

    assert wide[0].split() == ["id", "title", "docs", "error"]
    assert narrow[0].split() == ["id", "title", "docs"]
    assert "https://example.org/docs/" in narrow[1]


def test_a_table_of_nothing_keeps_its_columns() -> None:
    assert list(table_lines(["name", "error"], [], 5)) == ["name  error"]
