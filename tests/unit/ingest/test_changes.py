"""What has changed between two versions of a page."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from windrow.ingest.document import ChangeTracking, Document, Metadata
from windrow.ingest.enrich.changes import MOST_LINES, compare, diff, is_comparable

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def compared(before: str | None, after: str, status: int = 200) -> ChangeTracking:
    document = Document(metadata=Metadata(status_code=status), markdown=after)
    return compare(document, before, None if before is None else NOON, with_diff=True)


@pytest.mark.parametrize(
    ("before", "after", "status", "expected"),
    [
        (None, "hay", 200, "new"),
        ("hay", "hay", 200, "same"),
        ("hay  \n\n\nrow", "hay\n\nrow\n", 200, "same"),
        ("hay", "straw", 200, "changed"),
        ("hay", "Not found", 404, "removed"),
        ("hay", "Gone", 410, "removed"),
    ],
)
def test_status_tells_what_became_of_the_page(
    before: str | None, after: str, status: int, expected: str
) -> None:
    found = compared(before, after, status)
    assert found.change_status == expected
    assert found.previous_scrape_at == (None if before is None else "2026-01-02T12:00:00+00:00")
    assert (found.diff is not None) is (expected == "changed")


def test_answer_of_a_server_in_trouble_is_no_version() -> None:
    assert not is_comparable(Document(metadata=Metadata(status_code=503)))
    assert is_comparable(Document(metadata=Metadata(status_code=404)))


def test_diff_is_the_text_of_git_and_the_same_taken_apart() -> None:
    found = diff("one\ntwo\nthree\nfour", "one\n2\nthree\nfour\nfive")
    assert found.text == "@@ -1,4 +1,5 @@\n one\n-two\n+2\n three\n four\n+five"
    assert msgspec.to_builtins(found.json) == {
        "files": [
            {
                "from": None,
                "to": None,
                "chunks": [
                    {
                        "content": "@@ -1,4 +1,5 @@",
                        "changes": [
                            {"type": "normal", "content": " one", "normal": True}
                            | {"ln1": 1, "ln2": 1},
                            {"type": "del", "content": "-two", "ln": 2},
                            {"type": "add", "content": "+2", "ln": 2},
                            {"type": "normal", "content": " three", "normal": True}
                            | {"ln1": 3, "ln2": 3},
                            {"type": "normal", "content": " four", "normal": True}
                            | {"ln1": 4, "ln2": 4},
                            {"type": "add", "content": "+five", "ln": 5},
                        ],
                    }
                ],
            }
        ]
    }


def test_very_long_pages_are_told_apart_without_looking_for_the_shortest_way() -> None:
    lines = [f"line {number}" for number in range(2 * MOST_LINES)]
    changed = [*lines[:10], "new", *lines[11:20], "newer", *lines[21:]]
    found = diff("\n".join(lines), "\n".join(changed))
    assert found.text.startswith("@@ -11,11 +11,11 @@\n-line 10\n")
    [chunk] = found.json.files[0].chunks
    assert [change.content for change in chunk.changes if change.type == "add"] == [
        "+new",
        *(f"+line {number}" for number in range(11, 20)),
        "+newer",
    ]
