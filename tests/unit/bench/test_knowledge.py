"""The tree that ingestion is measured with."""

from __future__ import annotations

from pathlib import Path

from bench.knowledge import make_questions, make_tree


def test_files_are_of_two_kibibytes_and_the_same_in_every_run(tmp_path: Path) -> None:
    size = make_tree(tmp_path / "one", range(120))

    assert 1600 < size / 120 < 2600
    assert make_tree(tmp_path / "two", range(120)) == size
    assert {path.suffix for path in tmp_path.rglob("file-*")} == {".md", ".py", ".txt"}
    assert make_questions() == make_questions()
